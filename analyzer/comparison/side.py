"""The facts of one variant of a judgement: what a trace costs, and what is wrong with it."""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np

from ...base.cache import Cache
from ...base.errors import KernelFault, place_of
from ...models.analyses.race import find_races
from ...models.replay.device.measured import WITHIN
from ...models.replay.interface.options import ReplayOptions
from ...traces.out_of_bounds import outside_text
from ...traces.reader import LaunchTrace, Trace
from ..advice.advise import advise
from ..evidence.evidence import Finding
from ..launch_profile import LaunchProfile
from ..profile import count, first_alike
from ..text.launch_text import launch_text
from .difference import estimated_range
from .judgement import Side, Values

INSTRUCTIONS = "warp_instructions"


def instructions(side: Side) -> int:
    """Return the warp instructions of a variant."""
    return side.costs.get(INSTRUCTIONS, 0)


def read_side(
    trace: Trace, options: ReplayOptions, values: dict[str, Values] | None, checked: bool
) -> Side:
    """Return the facts of a trace that was recorded whole; raise its fault, if it has one."""
    if trace.manifest.fault:
        raise KernelFault(trace.manifest.fault)
    profile = count(trace, options)
    launches = profile.launches
    checks = [find_races(launch) for launch in _distinct(trace)]
    bounds = [launch.bounds[0] for launch in launches if launch.bounds]
    longest = max(bounds, key=lambda bound: bound.ns, default=None)
    return Side(
        "",
        launches=tuple(launch_text(launch.launch) for launch in launches),
        refusal=next((launch.refusal for launch in launches if launch.refusal), ""),
        races=[_race(race) for check in checks for race in check.races],
        races_unchecked=[*dict.fromkeys(check.refusal for check in checks if check.refusal)],
        outside=[*_outside(trace)],
        initialized=True if checked else None,
        estimate=estimated_range(launches),
        within=launches[0].within if launches else WITHIN,
        bound_ns=sum(bound.ns for bound in bounds) if len(bounds) == len(launches) else None,
        limited_by=longest.resource if longest else "",
        costs=_costs(launches),
        findings=[*_findings(trace, profile, options)],
        arrays=values,
        written=tuple(sorted(_reached(launches, WRITES))),
        loaded=tuple(sorted(_reached(launches, (*LOADS, *ATOMICS)))),
        unset=tuple(sorted(_reached(launches, LOADS) - _set_by_host(trace))),
    )


def _distinct(trace: Trace) -> Iterator[LaunchTrace]:
    """Yield one of each group of equal launches."""
    for index, first in enumerate(first_alike(trace.launches)):
        if index == first:
            yield trace.launches[index]


def _race(race: Any) -> dict[str, Any]:
    one, other = race.first, race.second
    where = f"`{race.variable}`" if race.variable else "shared memory"
    place, second = f"{one.file}:{one.line}", f"{other.file}:{other.line}"
    if place == second:
        places = f"{place} ({one.act}) with itself ({other.act})"
    else:
        places = f"{place} ({one.act}) and {second} ({other.act})"
    return {
        **{"file": one.file, "line": one.line, "access": one.act},
        **{"other_file": other.file, "other_line": other.line, "other_access": other.act},
        **{"array": race.variable, "element": race.element, "pairs": race.pairs},
        "message": f"race at {where}, element {race.element}: {places}, no barrier between",
    }


def _outside(trace: Trace) -> Iterator[dict[str, Any]]:
    for launch in _distinct(trace):
        if launch.launch.outside:
            for _, message in outside_text(launch.launch, launch.instructions()):
                place = place_of(message) or (None, None)
                yield {"file": place[0], "line": place[1], "message": message}


_COUNTERS = {
    "global_transactions": ("global_transactions",),
    "shared_wavefronts": ("shared_wavefronts",),
    "dram_bytes": ("dram_bytes_read", "dram_bytes_written"),
}
"""The counters of each count but the first."""
ATOMICS = ("global_atomic", "global_reduction")
WRITES = ("global_store", *ATOMICS)
LOADS = ("global_load", "texture_load")


def _costs(launches: Sequence[LaunchProfile]) -> dict[str, int]:
    instructions = (int(launch.raw.counts["instructions"].sum()) for launch in launches)
    costs = {INSTRUCTIONS: sum(instructions)}
    for name, counters in _COUNTERS.items():
        values = [launch.counters[counter] for launch in launches for counter in counters]
        if None not in values:
            costs[name] = int(sum(value or 0 for value in values))
    return costs


def _set_by_host(trace: Trace) -> set[str]:
    """Return the arrays that the host has filled or copied to."""
    events = trace.manifest.events
    return {e.array for e in events if e.kind == "set" or e.direction in ("HtoD", "DtoD")}


def _reached(launches: Sequence[LaunchProfile], kinds: tuple[str, ...]) -> set[str]:
    """Return the arrays that kernels access in one of some ways."""
    names: set[str] = set()
    for launch in launches:
        for table in (launch.raw.counts, launch.mixed):
            for name in table.columns:
                if name.startswith(kinds) and name.endswith("_requests"):
                    names |= set(table.filter(table[name] > 0)["array"].to_list())
    return names - {""}


def _findings(trace: Trace, profile: Any, options: ReplayOptions) -> Iterator[dict[str, Any]]:
    """Yield the advice on each kernel's first launch."""
    seen: set[tuple[object, ...]] = set()
    first = {launch.launch.kernel: launch for launch in reversed(profile.launches)}
    chosen = replace(profile, launches=tuple(sorted(first.values(), key=lambda one: one.number)))
    for launch, findings in advise(trace, chosen, options):
        for finding in findings:
            place = place_of(f"{finding.place}:") or (None, None)
            mark = (finding.rule, finding.place, finding.what)
            if mark in seen:
                continue
            seen.add(mark)
            yield {
                **{"rule": finding.rule, "file": place[0], "line": place[1]},
                **{"launch": launch.number, "what": finding.what, "change": finding.change},
                **{"share": finding.share, "gain_ns": finding.gain},
                **{"estimate_ns": finding.estimate, "saved_ns": _saved(finding, launch)},
                "access": finding.access,
            }


def _saved(finding: Finding, launch: LaunchProfile) -> float | None:
    """Return what a change saves of the estimate; None without an estimate."""
    if launch.estimate and finding.estimate is not None:
        return max(0.0, launch.estimate.ns - finding.estimate)
    return None


def _pack(side: Side) -> bytes:
    """Return a side as bytes: its facts as JSON, then its arrays."""
    facts = {k: v for k, v in asdict(replace(side, arrays=None)).items() if k != "arrays"}
    head = json.dumps({**facts, "has_arrays": side.arrays is not None}).encode()
    tail = io.BytesIO()
    for name, values in (side.arrays or {}).items():
        np.save(tail, np.frombuffer(name.encode(), np.uint8))
        np.save(tail, values)
    return len(head).to_bytes(8, "little") + head + tail.getvalue()


def _unpack(data: bytes) -> Side:
    size = int.from_bytes(data[:8], "little")
    facts, stream = json.loads(data[8 : 8 + size]), io.BytesIO(data[8 + size :])
    arrays: dict[str, Values] | None = {} if facts.pop("has_arrays") else None
    while arrays is not None and stream.tell() < len(data) - 8 - size:
        name = np.load(stream).tobytes().decode()
        arrays[name] = np.load(stream)
    ends = facts["estimate"]
    known = {each.name for each in fields(Side)}
    named = {key: value for key, value in facts.items() if key in known}
    return Side(**{**named, "estimate": tuple(ends) if ends else None, "arrays": arrays})


SIDES: Cache[tuple[Side, bool]] = Cache(
    "judged",
    1 << 28,
    lambda made: None if made[1] else _pack(made[0]),
    lambda data: (_unpack(data), False),
)
"""Variants that were run before; not those that a limit of time has stopped."""
