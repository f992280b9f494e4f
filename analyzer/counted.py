"""Launches that were counted on a device, made into profiles: many of a kernel in one go.

Each query over frames costs a fraction of a millisecond, however few rows there are. So the counts
of launches of one kernel are put below one another, and columns added to all of them at once.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from os import environ
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ..lazy_dataclass import dataclass
from ..models.replay.device.device import Device, load_devices
from ..models.replay.device.measured import Measured, load_measured
from ..models.replay.options import DEFAULT_DEVICE, ReplayOptions
from ..models.replay.tally.counts import LaunchCounts
from ..traces.schema import Manifest
from .counting.arithmetic import COLUMNS as FLOPS
from .counting.arithmetic import with_flops, with_lanes
from .counting.bounds import Bound, find_bounds, sampled_bounds
from .counting.evaluate import Raw
from .counting.idle import NOTHING, did_nothing
from .counting.instruction_mix import COLUMNS as MIX
from .counting.instruction_mix import with_mix
from .counting.interval import sum_intervals
from .counting.launch_facts import launch_facts
from .counting.left_out import find_left_out
from .counting.levels import with_levels
from .counting.lsu_exclusions import with_apart
from .counting.machine_least import machine_shares
from .counting.roofline import find_roof
from .counting.turns import Turns
from .counting.with_columns import WHOSE, Added, sums_of_each, widen, with_zeros
from .launch_profile import LaunchProfile
from .occupancy.occupancy_text import resident_text
from .text.kept_text import kept_text
from .time.estimate import Asked, Estimate, estimate, sum_by_pc
from .time.sample_warps import Ran
from .time.sampled_estimate import estimate_between
from .time.throughput import PROFILED


@dataclass(frozen=True, slots=True)
class Question:
    """The devices by key, and the options of replay and counting."""

    devices: Mapping[str, Device]
    options: ReplayOptions


def read_question(options: ReplayOptions) -> Question:
    """Read the devices that the options name, else the default. `CutraceError` if unknown."""
    names = options.devices or (environ.get("CUTRACE_DEVICE") or DEFAULT_DEVICE,)
    return Question({found.key: found for found in load_devices(names, options.set)}, options)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A launch counted on a device, and what reads its trace once more.

    What is `supposed` of the launch is said before all else.
    """

    counts: LaunchCounts
    instructions: pa.Table
    touched: Callable[[], pl.DataFrame]
    supposed: tuple[str, ...]
    turns: Callable[[], Turns]
    ran: Callable[[], Ran] | None


def profile_counted(
    question: Question, manifest: Manifest, counted: Sequence[Counted]
) -> list[LaunchProfile]:
    """The profile of each launch, its counts joined with the places of its instructions."""
    kernels: list[pa.Table] = []
    alike: dict[tuple[int, str, Hashable], list[int]] = {}
    for number, one in enumerate(counted):
        known = (n for n, table in enumerate(kernels) if table.equals(one.instructions))
        if (kernel := next(known, len(kernels))) == len(kernels):
            kernels.append(one.instructions)
        key = kernel, one.counts.device, tuple(one.counts.counts.columns)
        alike.setdefault(key, []).append(number)
    places = [find_places(table, manifest) for table in kernels]
    found: dict[int, LaunchProfile] = {}
    for (kernel, *_), numbers in alike.items():
        some = [counted[number] for number in numbers]
        found |= zip(numbers, _profile_alike(question, places[kernel], some), strict=True)
    return [found[number] for number in range(len(counted))]


def _profile_alike(
    question: Question, places: pl.DataFrame, counted: Sequence[Counted]
) -> Iterator[LaunchProfile]:
    """The profiles of launches of one kernel that one device counted."""
    first = counted[0]
    device, instructions = question.devices[first.counts.device], first.instructions
    told = _together([one.counts.counts for one in counted])
    lanes_on = _together([one.counts.lanes_on for one in counted])
    told = with_mix(
        with_flops(with_lanes(told, lanes_on, instructions), instructions), instructions
    )
    told.drop_in_place("lanes")
    told = with_apart(with_levels(told), instructions, device.capability)
    sums, by_pc = sums_of_each(told, len(counted)), sum_by_pc(told)
    around = Added(pl.col(name) for name in places.columns if name != "pc")
    told = widen(told, places, around)
    mixed = _together([one.counts.mixed for one in counted])
    if mixed.height:
        mixed = with_levels(with_zeros(mixed, (*FLOPS, *MIX)))
        mixed = widen(with_apart(mixed, instructions, device.capability), places, around)
    else:
        mixed = told.clear()
    all_counts, all_mixed = _apart(told, len(counted)), _apart(mixed, len(counted))
    for number, (one, counts, mix) in enumerate(zip(counted, all_counts, all_mixed, strict=True)):
        yield _profile(question, one, counts, mix, places, sums[number], by_pc.get(number, {}))


def _together(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Frames below one another, with the number of each in WHOSE."""
    whose = [number for number, frame in enumerate(frames) for _ in range(frame.height)]
    return pl.concat(frames, rechunk=True).hstack([pl.Series(WHOSE, whose, pl.UInt32)])


def _apart(together: pl.DataFrame, frames: int) -> Iterator[pl.DataFrame]:
    """The frames that were put together; empty ones are one."""
    whose = together.drop_in_place(WHOSE)
    heights = np.bincount(whose.to_numpy(), minlength=frames).tolist()
    start, empty = 0, together.clear()
    for height in heights:
        yield together.slice(start, height) if height else empty
        start += height


def _profile(
    question: Question,
    one: Counted,
    counts: pl.DataFrame,
    mixed: pl.DataFrame,
    places: pl.DataFrame,
    sums: Mapping[str, int],
    by_pc: Mapping[int, Mapping[str, int]],
) -> LaunchProfile:
    """One launch on one device, from its counts, their sums, and those of each pc."""
    counted, as_if = one.counts, question.options.as_if
    launch, device = counted.launch, question.devices[counted.device]
    refusal = "" if as_if else counted.refusal
    shares = machine_shares(counts, launch, one.instructions, device)
    bounds = () if refusal else find_bounds(sums, device, launch, one.turns, shares)
    facts = {
        **launch_facts(counted, device),
        "bound_ps": round(bounds[0].ns * 1000) if bounds else None,
    }
    estimated = _estimate(one, by_pc, bounds, device)
    facts["estimated_ps"] = round(estimated.ns * 1000) if estimated else None
    for unit in PROFILED:
        facts[f"busy_{unit.lower()}"] = round(estimated.busy[unit] * 10**6) if estimated else None
    facts["millionths"] = 10**6
    facts["ps_of_ns"] = 1000  # a column, as polars divides many launches by a number otherwise
    warnings = (*kept_text(launch), *one.supposed, *_warnings(counted, sums, as_if))
    raw = Raw(
        counts,
        facts,
        whole=question.options.scope == "all",
        left_out=find_left_out(launch, one.instructions, [*sums], places),
    )
    return LaunchProfile(
        number=counted.number,
        launch=launch,
        device=device.key,
        device_name=device.name,
        capability=device.capability,
        raw=raw,
        mixed=mixed,
        blocks={"sm": counted.blocks_of_sm, "cluster": counted.blocks_of_cluster},
        occupancy=counted.occupancy,
        refusal=refusal,
        substitutions=counted.substitutions,
        remarks=(*warnings, *_remarks(counted, sums, bounds, device, as_if)),
        warnings=warnings,
        device_file=str(device.path),
        bounds=bounds,
        bounds_between=() if refusal else sampled_bounds(raw, device, launch, shares),
        estimate=estimated,
        estimate_between=None if refusal else _between(one, raw, by_pc, device),
        touched=one.touched if launch.kept.has_accesses else None,
    )


def _estimate(
    one: Counted,
    by_pc: Mapping[int, Mapping[str, int]],
    bounds: Sequence[Bound],
    device: Device,
) -> Estimate | None:
    """The time of a launch that has bounds, on a device of which latencies were measured."""
    measured = load_measured(device)
    if not bounds or not one.ran or not measured or not device.chip.clock_mhz:
        return None
    return estimate(_asked(one, by_pc, bounds, device, measured), one.ran(), measured)


def _between(
    one: Counted, raw: Raw, by_pc: Mapping[int, Mapping[str, int]], device: Device
) -> tuple[Estimate, Estimate] | None:
    """Between what times a sampled launch lies on such a device."""
    measured, launch = load_measured(device), one.counts.launch
    if not launch.kept.sample.blocks or not one.ran or not measured or not device.chip.clock_mhz:
        return None
    executed = sum_intervals(raw, launch, {"executed": ["instructions"]}).get("executed")
    asked = _asked(one, by_pc, (), device, measured)
    return estimate_between(asked, one.ran(), measured, executed) if executed else None


def _asked(
    one: Counted,
    by_pc: Mapping[int, Mapping[str, int]],
    bounds: Sequence[Bound],
    device: Device,
    measured: Measured,
) -> Asked:
    """The input of an estimate, at the clock that the profiler sets."""
    launch, resident = one.counts.launch, one.counts.occupancy.blocks
    mhz = min(measured.profiler_mhz, device.chip.clock_mhz)
    return Asked(by_pc, one.instructions, bounds, launch, resident, device, mhz, one.turns)


def _warnings(counts: LaunchCounts, sums: Mapping[str, int], as_if: bool) -> Iterator[str]:
    """Warnings without which the numbers of a launch on a device must not be read."""
    if counts.refusal and not as_if:
        return
    if counts.refusal:
        yield f"{counts.refusal}; counted as if it could"
    if counts.launch.kept.is_whole and did_nothing(sums):
        yield NOTHING


def _remarks(
    counts: LaunchCounts,
    sums: Mapping[str, int],
    bounds: Sequence[Bound],
    device: Device,
    as_if: bool,
) -> Iterator[str]:
    """Further remarks on one launch on one device: occupancy, roofline."""
    if counts.refusal and not as_if:
        return
    yield resident_text(counts.occupancy)
    if roof := find_roof(sums, bounds, device.chip.memory_gb_per_s):
        yield str(roof)


def find_places(instructions: pa.Table, manifest: Manifest) -> pl.DataFrame:
    """For each pc the source line that it came from: `file`, `line`, `text`, and the PTX `ptx`.

    It is the innermost whose text the trace has: an atomic that a header of the compiler's wraps is
    its caller's. `stack` has all of them, outermost first: `FILE:LINE` a line of text.
    """
    places = instructions.select(["file", "line", "inlined_at"]).to_pylist()
    told = [_told(place, manifest) for place in places]
    table = pl.DataFrame(instructions.select(["pc", "file", "line", "text"])).rename(
        {"text": "ptx"}
    )
    table = table.with_columns(
        file=pl.Series([place["file"] for place in told], dtype=pl.String),
        line=pl.Series([place["line"] for place in told], dtype=pl.UInt32),
    )
    lines = {
        name: text.encode(errors="replace").decode().splitlines()  # no table holds half a pair
        for name, text in manifest.sources.items()
    }
    found = [
        lines[file][line - 1] if 0 < line <= len(lines.get(file, ())) else ""
        for file, line in table.select("file", "line").iter_rows()
    ]
    stacks = map(_stack, places)
    return table.with_columns(
        text=pl.Series(found, dtype=pl.String), stack=pl.Series([*stacks], dtype=pl.String)
    )


def _told(row: Mapping[str, Any], manifest: Manifest) -> Mapping[str, Any]:
    """The innermost place whose text is known; where none is, that of the instruction."""
    chain = (row, *row["inlined_at"])
    return next((place for place in chain if place["file"] in manifest.sources), row)


def _stack(row: Mapping[str, Any]) -> str:
    chain = [f"{place['file']}:{place['line']}" for place in (row, *row["inlined_at"])]
    return "\n".join(reversed(chain))
