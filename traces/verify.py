"""Verification of a trace against FORMAT.md: the checks in order, and their findings."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias

from ..errors import CutraceError
from .checks import check_access as access
from .checks import check_code as code
from .checks import check_control as control
from .checks import check_kept as kept
from .checks import check_order as order
from .checks.check_manifest import check_events, check_folders, check_warps
from .checks.recorded import Finding, Recorded
from .reader import LaunchTrace, Trace

Check: TypeAlias = Callable[[Recorded], Iterator[Finding]]

STAGES: tuple[Mapping[str, Sequence[Check]], ...] = (
    {"instructions": [code.check_instructions]},
    {"patterns": [access.check_patterns], "paths": [control.check_path_entries]},
    {
        "lanes_on": [code.check_lanes_on],
        "control": [
            *(control.check_control_lanes, control.check_control_steps),
            *(control.check_all_warps_ran, kept.check_kept_control),
        ],
        "accesses": [
            *(access.check_spaces, access.check_widths, kept.check_kept_rows),
            *(access.check_access_lanes, order.check_access_order),
            *(access.check_addresses, access.check_outside_rows),
        ],
        "texels": [access.check_texels, kept.check_kept_texels, order.check_texel_order],
    },
    {"accesses": [control.check_accesses_ran], "texels": [control.check_texels_ran]},
)
"""What is checked of a launch. A stage builds on those before: it is skipped if one of them broke.

That identifiers, blocks, warps and pcs are in range, that instructions have their pcs and the lists
of a path one length, is checked by the reader, whenever it reads; of the manifest all but events.
"""


MOST_ALIKE = 100


def verify(trace: Trace) -> list[str]:
    """Return broken promises of a trace, as sentences that begin with the place: all of them, but
    of the manifest's events and of the folder MOST_ALIKE each."""
    findings = [f"manifest: {finding}" for finding in _some(check_events(trace.manifest))]
    findings += [f"folder: {finding}" for finding in _some(check_folders(trace))]
    for launch in trace.launches:
        place = f"launch {launch.number} ({launch.launch.kernel})"
        findings += [f"{place}: {finding}" for finding in _verify_launch(launch)]
    return findings


def _some(findings: Iterator[str]) -> Iterator[str]:
    """Yield the first of them, and how many more there are."""
    yield from islice(findings, MOST_ALIKE)
    if left := sum(1 for _ in findings):
        yield f"and {left} more"


def _verify_launch(launch: LaunchTrace) -> list[str]:
    found = list(check_warps(launch.launch))
    recorded = Recorded(launch)
    for stage in STAGES:
        if found:
            break
        for table, checks in stage.items():
            for check in checks:
                found += _run(check, recorded, table)
    return list(dict.fromkeys(found))


def _run(check: Check, recorded: Recorded, table: str) -> list[str]:
    merged: dict[str, Finding] = {}
    try:
        for finding in check(recorded):
            before = merged.setdefault(finding.text, finding._replace(rows=0))
            merged[finding.text] = before._replace(rows=before.rows + finding.rows)
    except CutraceError as error:
        return [str(error)]
    return [f"{table}: {_sentence(finding)}" for finding in merged.values()]


def _sentence(finding: Finding) -> str:
    place = f"row {finding.row}: " if finding.row >= 0 else ""
    more = f" (and {finding.rows - 1} more rows)" if finding.rows > 1 else ""
    return f"{place}{finding.text}{more}"
