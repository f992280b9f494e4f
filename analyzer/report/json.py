"""JSON: the whole profile as one object, for programs. A missing value is null."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from ..counting.bounds import Bound
from ..counting.evaluate import Value
from ..profile import Profile
from ..sheet import Block, Row, Sheet, sheets
from ..summary import Summary
from ..time.estimate import Estimate
from ..time.estimate_text import WaitingLine, estimate_interval

FORMAT = "cutrace-profile-1"


def render(profile: Profile) -> str:
    """Return the profile as JSON, keys in a fixed order."""
    document = {
        "format": FORMAT,
        "fix": profile.view.fix,
        "launches": [_sheet(sheet) for sheet in sheets(profile.launches, profile.view)],
    }
    return json.dumps(document, indent=1) + "\n"


def _sheet(sheet: Sheet) -> dict[str, object]:
    """Return one launch: its facts, its result on each device, and the counters."""
    devices = zip(
        *(sheet.devices, sheet.refusals, sheet.costliest, sheet.bounds),
        *(sheet.bounds_between, sheet.estimates, sheet.estimates_between, sheet.waiting),
        sheet.summaries,
        strict=True,
    )
    return {
        "launch": sheet.number,
        "kernel": sheet.heading,
        **({"ranges": sheet.ranges} if sheet.ranges else {}),
        "devices": [
            {
                "device": device,
                "refusal": refusal,
                "limited_by": bounds[0].resource if bounds else None,
                "bounds": [asdict(bound) for bound in bounds],
                **_between(between),
                "estimate": _estimate(estimate, waiting),
                **_least_and_most(ends),
                **_summary(summary),
                "costs_most": None
                if top is None
                else {
                    "file": top.file,
                    "line": top.line,
                    "text": top.text,
                    "share": top.share,
                    "of": top.what,
                },
            }
            for device, refusal, top, bounds, between, estimate, ends, waiting, summary in devices
        ],
        "notes": list(sheet.notes),
        "counters": [entry for block in sheet.blocks for entry in _block(block, sheet.devices)],
    }


def _summary(summary: Summary | None) -> dict[str, object]:
    """Return the facts of the first screen that the estimate does not have."""
    if summary is None:
        return {}
    facts = asdict(summary)
    del facts["busy"], facts["stalls"]
    return facts


def _between(ends: Sequence[tuple[Bound, Bound]]) -> dict[str, object]:
    """Return, for a sample, the least and the greatest value of each bound that can be inferred."""
    return {"bounds_between": [[*map(asdict, each)] for each in ends]} if ends else {}


def _least_and_most(ends: tuple[Estimate, Estimate] | None) -> dict[str, object]:
    """Return, for a sample, the least and the greatest time of a launch."""
    return {"estimate_between": [_estimate(each, ()) for each in ends]} if ends else {}


def _estimate(
    estimate: Estimate | None, waiting: Sequence[WaitingLine]
) -> dict[str, object] | None:
    """Return the time estimate of a launch and its components; null if latencies were not
    measured."""
    if estimate is None:
        return None
    return {
        "ns": estimate.ns,
        "interval_ns": list(estimate_interval((estimate.ns, estimate.ns))),
        "mhz": estimate.mhz,
        "parts": [asdict(part) for part in estimate.parts],
        "waits": dict(estimate.stalls),
        "busy": dict(estimate.busy),
        "lines": [asdict(line) for line in waiting],
    }


def _block(block: Block, devices: tuple[str, ...]) -> list[dict[str, object]]:
    """Return the counters of a group, each with a value per device."""
    return [
        {
            **block.key,
            "vocabulary": section.vocabulary,
            "counter": row.counter.name,
            "unit": row.counter.unit,
            "values": dict(zip(devices, row.values, strict=True)),
            **_ends(row, devices),
        }
        for section in block.sections
        for row in section.rows
    ]


def _ends(row: Row, devices: tuple[str, ...]) -> dict[str, dict[str, Value]]:
    """Return the confidence intervals of a sample; null if a value is exact or unknown."""
    if not row.intervals:
        return {}
    intervals = [interval or (None, None) for interval in row.intervals]
    low, high = zip(*intervals, strict=True)
    ends = {"low": low, "high": high}
    return {end: dict(zip(devices, values, strict=True)) for end, values in ends.items()}
