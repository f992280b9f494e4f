"""Build the profiles of launches from their counts on a device, in batches of one kernel.

Each query on a frame costs a fraction of a millisecond, however few rows there are. So the counts
of all launches of one kernel are concatenated, and derived columns are added to all of them at
once. Launches are replayed in this process, in worker processes, or by an executor.
"""

import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from os import environ
from platform import node
from time import monotonic
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ..base import progress
from ..base.cores import cores
from ..base.dataclass import dataclass
from ..base.errors import CutraceError
from ..base.executor import Executor, run_tasks
from ..models.replay.device.device import Device, load_devices
from ..models.replay.device.measured import Measured, load_interval, load_measured
from ..models.replay.histogram.counts import LaunchCounts
from ..models.replay.interface.options import CODE, DEFAULT_DEVICE, ReplayOptions
from ..models.replay.replay import replay_in_jobs, run_beside
from ..traces.reader import Trace
from ..traces.remote import bring, origin
from ..traces.schema import Launch, Manifest
from .counting.atomic_contention import AtomicContention, count_contention
from .counting.bounds import Bound, find_bounds, find_roof, sampled_bounds
from .counting.derived_columns import (
    HOST_COLUMNS,
    LAUNCH_COLUMN,
    Added,
    launch_facts,
    sums_of_each,
    widen,
    with_apart,
    with_host_memory,
    with_levels,
    with_zeros,
)
from .counting.evaluate import Raw, pack_together
from .counting.footprint import Footprint
from .counting.instruction_mix import (
    FLOP_COLUMNS,
    MIX_COLUMNS,
    NOTHING,
    did_nothing,
    with_flops,
    with_lanes,
    with_mix,
    with_pipes,
)
from .counting.interval import sum_intervals
from .counting.left_out import find_left_out
from .counting.vocabulary import with_counters
from .launch_profile import LaunchProfile, count_totals
from .machine.machine_code import SINCE, machine_shares
from .occupancy.occupancy import resident_text
from .text.launch_text import kept_text
from .time.estimate import Estimate, EstimateInput, estimate, estimate_between, sum_by_pc
from .time.host_memory import find_host_traffic, moved_pages, why_no_estimate
from .time.sample_warps import Ran, SampledWarps
from .time.units import PROFILED


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """Devices by key, and the options of replay and counting."""

    devices: Mapping[str, Device]
    options: ReplayOptions


@dataclass(frozen=True, slots=True, eq=False)
class ReplayResult:
    """The counts of one launch on one device, and a function that replays its trace once more.

    `supposed` describes a hypothetical layout of the arrays (`pad`, `align`); it is reported first.
    """

    counts: LaunchCounts
    instructions: pa.Table
    footprint: Callable[[], pl.DataFrame]
    supposed: tuple[str, ...]
    contention: Callable[[], AtomicContention]
    ran: Callable[[], Ran] | None


def _profile_group(
    question: ProfileRequest, manifest: Manifest, counted: Mapping[int, Sequence[ReplayResult]]
) -> dict[int, list[LaunchProfile]]:
    """Build the profiles of launches from their counts on devices and their source lines."""
    every = [one for each in counted.values() for one in each]
    kernels: list[pa.Table] = []
    groups: dict[tuple[int, str, Hashable], list[int]] = {}
    for number, one in enumerate(every):
        matches = (n for n, table in enumerate(kernels) if table.equals(one.instructions))
        if (kernel := next(matches, len(kernels))) == len(kernels):
            kernels.append(one.instructions)
        key = kernel, one.counts.device, tuple(one.counts.counts.columns)
        groups.setdefault(key, []).append(number)
    places = [find_places(table, manifest) for table in kernels]
    profiles: dict[int, LaunchProfile] = {}
    for (kernel, *_), numbers in groups.items():
        some = [every[number] for number in numbers]
        profiles |= zip(numbers, _profile_alike(question, places[kernel], some), strict=True)
    order = iter(range(len(every)))
    return {number: [profiles[next(order)] for _ in each] for number, each in counted.items()}


def _profile_alike(
    question: ProfileRequest, places: pl.DataFrame, counted: Sequence[ReplayResult]
) -> Iterator[LaunchProfile]:
    """Yield the profiles of launches of one kernel counted on one device."""
    first = counted[0]
    device, instructions = question.devices[first.counts.device], first.instructions
    launches = [one.counts.launch for one in counted]
    table = with_host_memory(_together([one.counts.counts for one in counted]), launches, device)
    lanes_on = _together([one.counts.lanes_on for one in counted])
    table = with_mix(
        with_flops(with_lanes(table, lanes_on, instructions), instructions), instructions
    )
    table.drop_in_place("lanes")
    table = with_apart(with_levels(table), instructions, device.capability)
    table = with_pipes(table, instructions, device.capability)
    sums, by_pc = sums_of_each(table, len(counted)), sum_by_pc(table)
    around = Added(pl.col(name) for name in places.columns if name != "pc")
    table = widen(table, places, around)
    mixed = _together([one.counts.mixed for one in counted])
    if mixed.height:
        mixed = with_zeros(mixed, (*FLOP_COLUMNS, *MIX_COLUMNS, *HOST_COLUMNS))
        mixed = with_levels(mixed)
        mixed = with_pipes(
            with_apart(mixed, instructions, device.capability), instructions, device.capability
        )
        mixed = widen(mixed, places, around)
    else:
        mixed = table.clear()
    all_counts, all_mixed = _split(table, len(counted)), _split(mixed, len(counted))
    for number, (one, counts, mix) in enumerate(zip(counted, all_counts, all_mixed, strict=True)):
        yield _profile(question, one, counts, mix, places, sums[number], by_pc.get(number, {}))


def _together(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate frames and add the index of each as column WHOSE."""
    owners = [number for number, frame in enumerate(frames) for _ in range(frame.height)]
    return pl.concat(frames, rechunk=True).hstack([pl.Series(LAUNCH_COLUMN, owners, pl.UInt32)])


def _split(together: pl.DataFrame, frames: int) -> Iterator[pl.DataFrame]:
    """Split a concatenation into its frames; all empty frames are one object."""
    owners = together.drop_in_place(LAUNCH_COLUMN)
    heights = np.bincount(owners.to_numpy(), minlength=frames).tolist()
    start, empty = 0, together.clear()
    for height in heights:
        yield together.slice(start, height) if height else empty
        start += height


def _profile(
    question: ProfileRequest,
    one: ReplayResult,
    counts: pl.DataFrame,
    mixed: pl.DataFrame,
    places: pl.DataFrame,
    sums: Mapping[str, int],
    by_pc: Mapping[int, Mapping[str, int]],
) -> LaunchProfile:
    """Return the profile of one launch on one device from its counts, totals and counts per pc."""
    counted, as_if = one.counts, question.options.as_if
    launch, device = counted.launch, question.devices[counted.device]
    refusal = "" if as_if else counted.occupancy.refusal
    shares = machine_shares(counts, launch, one.instructions, device)
    bounds = () if refusal else find_bounds(sums, device, launch, one.contention, shares)
    facts = {
        **launch_facts(counted, device),
        "bound_ps": round(bounds[0].ns * 1000) if bounds else None,
    }
    unknown = why_no_estimate(counts, launch, one.instructions, by_pc)
    estimated = None if unknown else _estimate(one, by_pc, bounds, device, counts)
    facts["estimated_ps"] = round(estimated.ns * 1000) if estimated else None
    for unit in PROFILED:
        facts[f"busy_{unit.lower()}"] = round(estimated.busy[unit] * 10**6) if estimated else None
    facts["millionths"] = 10**6
    facts["ps_of_ns"] = 1000  # a column: polars would divide many launches by a scalar differently
    unread = _unread_code(launch, device) if question.options.code == CODE[0] else ""
    warnings = (*kept_text(launch), *one.supposed, *_warnings(counted, sums, as_if))
    warnings = (*warnings, unread) if unread and not refusal else warnings
    assumption = moved_pages(counts, launch) if estimated else ""
    warnings = (*warnings, assumption) if assumption else warnings
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
        estimate_between=None if refusal or unknown else _between(one, raw, by_pc, device),
        within=load_interval(device),
        unknown=unknown,
        footprint=one.footprint if launch.kept.has_accesses else None,
    )


def _estimate(
    one: ReplayResult,
    by_pc: Mapping[int, Mapping[str, int]],
    bounds: Sequence[Bound],
    device: Device,
    counts: pl.DataFrame,
) -> Estimate | None:
    """Return the time estimate of a launch with bounds, on a device with measured latencies."""
    measured = load_measured(device)
    if not bounds or not one.ran or not measured or not device.chip.clock_mhz:
        return None
    request = _estimate_input(one, by_pc, bounds, device, measured)
    link = device.chip.host_gb_per_s
    request = replace(request, host=find_host_traffic(counts, one.counts.launch, link))
    return estimate(request, one.ran(), measured)


def _between(
    one: ReplayResult, raw: Raw, by_pc: Mapping[int, Mapping[str, int]], device: Device
) -> tuple[Estimate, Estimate] | None:
    """Return the lower and upper time estimate of a sampled launch, if latencies were measured."""
    measured, launch = load_measured(device), one.counts.launch
    if not launch.kept.sample.blocks or not one.ran or not measured or not device.chip.clock_mhz:
        return None
    executed = sum_intervals(raw, launch, {"executed": ["instructions"]}).get("executed")
    request = _estimate_input(one, by_pc, (), device, measured)
    return estimate_between(request, one.ran(), measured, executed) if executed else None


def _estimate_input(
    one: ReplayResult,
    by_pc: Mapping[int, Mapping[str, int]],
    bounds: Sequence[Bound],
    device: Device,
    measured: Measured,
) -> EstimateInput:
    """Return the input of the estimate, at the clock that the profiler sets."""
    launch, resident = one.counts.launch, one.counts.occupancy.blocks
    mhz = min(measured.profiler_mhz, device.chip.clock_mhz)
    return EstimateInput(
        by_pc, one.instructions, bounds, launch, resident, device, mhz, one.contention
    )


def _warnings(counts: LaunchCounts, sums: Mapping[str, int], as_if: bool) -> Iterator[str]:
    """Yield warnings that invalidate or restrict the numbers of a launch on a device."""
    if counts.occupancy.refusal and not as_if:
        return
    if counts.occupancy.refusal:
        yield f"{counts.occupancy.refusal}; counted as if it could"
    if counts.launch.kept.is_whole and did_nothing(sums):
        yield NOTHING


def _unread_code(launch: Launch, device: Device) -> str:
    """Return a warning if a device's own assembler may change accesses that are counted as in PTX.

    What ptxas does to them for the oldest architecture whose machine code is read tells whether.
    """
    if device.capability < SINCE or launch.assembled_for(device.capability):
        return ""
    changed = sum(len(each.accesses) for each in launch.assembled[:1])
    if not changed:
        return ""
    major, minor = device.capability
    accesses = "a load or store" if changed == 1 else f"{changed} loads and stores"
    return (
        f"counted as in the PTX: for {launch.assembled[0].arch} the assembler changes {accesses} of"
        f" this kernel; its machine code for {major}.{minor} is not read"
    )


def _remarks(
    counts: LaunchCounts,
    sums: Mapping[str, int],
    bounds: Sequence[Bound],
    device: Device,
    as_if: bool,
) -> Iterator[str]:
    """Yield further remarks on one launch on one device: occupancy, roofline."""
    if counts.occupancy.refusal and not as_if:
        return
    yield resident_text(counts.occupancy)
    if roof := find_roof(sums, bounds, device.chip.memory_gb_per_s):
        yield str(roof)


def find_places(instructions: pa.Table, manifest: Manifest) -> pl.DataFrame:
    """Return the source line of each pc: `file`, `line`, `text`, and the PTX `ptx`.

    The line is the innermost one with text in the trace: an atomic wrapped by a header of the
    compiler is attributed to the caller. `stack` holds all lines, outermost first: one `FILE:LINE`
    per line of text.
    """
    places = instructions.select(["file", "line", "inlined_at"]).to_pylist()
    records = [_source_place(place, manifest) for place in places]
    table = pl.DataFrame(instructions.select(["pc", "file", "line", "text"])).rename(
        {"text": "ptx"}
    )
    table = table.with_columns(
        file=pl.Series([place["file"] for place in records], dtype=pl.String),
        line=pl.Series([place["line"] for place in records], dtype=pl.UInt32),
    )
    lines = {
        name: text.encode(errors="replace").decode().splitlines()  # no lone surrogates in Arrow
        for name, text in manifest.sources.items()
    }
    texts = [
        lines[file][line - 1] if 0 < line <= len(lines.get(file, ())) else ""
        for file, line in table.select("file", "line").iter_rows()
    ]
    stacks = map(_stack, places)
    return table.with_columns(
        text=pl.Series(texts, dtype=pl.String), stack=pl.Series([*stacks], dtype=pl.String)
    )


def _source_place(row: Mapping[str, Any], manifest: Manifest) -> Mapping[str, Any]:
    """Return the innermost place with known text, or else the place of the instruction."""
    chain = (row, *row["inlined_at"])
    return next((place for place in chain if place["file"] in manifest.sources), row)


def _stack(row: Mapping[str, Any]) -> str:
    chain = [f"{place['file']}:{place['line']}" for place in (row, *row["inlined_at"])]
    return "\n".join(reversed(chain))


TOGETHER = 64
"""Launches profiled in one batch; a trace with more keeps its frames packed."""
WORTH_PROCESSES = 3.0
"""Seconds of replay that justify worker processes: each takes about one to load."""
TASK_LAUNCHES, TASK_ROWS = 16, 1 << 18
"""Maximum launches of a task, and the number of access rows that fills one: a tenth of a second or
more of replay, while sending a task to a worker takes a hundredth."""
TASKS = 32
"""Number of tasks from which each covers several devices: they share one pass over a launch's
rows."""


def profile_launches(
    options: ReplayOptions, trace: Trace, numbers: Sequence[int]
) -> dict[int, list[LaunchProfile]]:
    """Replay launches, given by index, on the devices of the options; compute totals.

    Raises `CutraceError` for an unknown device.
    """
    names = options.devices or (environ.get("CUTRACE_DEVICE") or DEFAULT_DEVICE,)
    devices = {device.key: device for device in load_devices(names, options.set)}
    question = ProfileRequest(devices, options)
    if executor := options.executor:
        return _profile_elsewhere(executor, question, trace, numbers)
    return _profile_here(question, trace, numbers)


def _profile_here(
    question: ProfileRequest, trace: Trace, numbers: Sequence[int]
) -> dict[int, list[LaunchProfile]]:
    """Replay launches on every device, in several processes if the rest would take seconds;
    compute totals."""
    began, jobs, tail = monotonic(), 1, numbers
    profiles_by_number, counted = dict[int, list[LaunchProfile]](), dict[int, list[ReplayResult]]()
    for index, number in enumerate(numbers):
        if len(counted) == TOGETHER:
            profiles_by_number |= _settle(trace, _profile_group(question, trace.manifest, counted))
            counted.clear()
        if index:  # also if the counts of the previous launch were cached
            progress.report(index / len(numbers))
        launch, devices = trace.launches[number], list(question.devices.values())
        instructions, footprint = launch.instructions(), Footprint(launch)
        rounds = cache(partial(count_contention, launch))
        ran = None if trace.manifest.is_foreign else SampledWarps(launch, devices)
        with progress.part(index, 1, len(numbers)), ran.sampling() if ran else nullcontext():
            counted[number] = [
                ReplayResult(counts, instructions, footprint, launch.what_if, rounds, ran)
                for counts in replay_in_jobs(launch, devices, question.options)
            ]
        tail = numbers[index + 1 :]
        seconds = (monotonic() - began) / (index + 1) * len(tail)
        if (jobs := _jobs(question.options.jobs, len(tail), seconds)) > 1:
            break
    profiles_by_number |= _profile_group(question, trace.manifest, counted)
    count_totals(profile for profiles in profiles_by_number.values() for profile in profiles)
    if jobs <= 1:
        return profiles_by_number
    with progress.part(len(numbers) - len(tail), len(tail), len(numbers)):
        return profiles_by_number | _spread(question, trace, tail, jobs)


def _settle(
    trace: Trace, profiles_by_number: dict[int, list[LaunchProfile]]
) -> dict[int, list[LaunchProfile]]:
    """Compute totals, and release memory: there may be thousands of launches."""
    profiles = [profile for each in profiles_by_number.values() for profile in each]
    count_totals(profiles)
    pack_together(profiles)
    pack_together([profile.raw for profile in profiles])
    for number in profiles_by_number:
        trace.launches[number].forget()
    return profiles_by_number


def _jobs(limit: int | None, launches: int, seconds: float) -> int:
    """Return the number of processes for launches that take `seconds` in one process."""
    return min(limit or (cores() if seconds > WORTH_PROCESSES else 1), launches, cores())


def _spread(
    question: ProfileRequest, trace: Trace, numbers: Sequence[int], jobs: int
) -> dict[int, list[LaunchProfile]]:
    """Replay launches in several worker processes."""
    serial = replace(question, options=replace(question.options, jobs=1))
    silent = replace(question, options=question.options.for_worker)
    mine, *others = [numbers[n::jobs] for n in range(jobs)]
    results = run_beside(
        lambda: _profile_here(serial, trace, mine),
        _profile_here,
        [(silent, trace, part) for part in others],
    )
    return {number: profiles for each in results for number, profiles in each.items()}


@dataclass(frozen=True, slots=True)
class _Task:
    """A task: launches to replay on some devices. `trace` holds these launches only and is a copy
    of `url`, if any; profiles are `packed` if there are many more.
    """

    question: ProfileRequest
    trace: Trace
    url: str
    packed: bool


def _profile_elsewhere(
    executor: Executor, question: ProfileRequest, trace: Trace, numbers: Sequence[int]
) -> dict[int, list[LaunchProfile]]:
    """Submit the launches to an executor's workers, a task per group of launches and devices."""
    url, packed = origin(trace.path), len(numbers) > TOGETHER
    manifest, parts = replace(trace.manifest, launches=()), [*_cut(trace, numbers)]
    keys = list(question.devices)
    # With many parts a task covers several devices, which share one read of the rows; with few
    # parts each device is a task, for more parallelism.
    many = max(1, len(keys) * len(parts) // TASKS)
    tasks, batches = list[_Task](), list[Sequence[int]]()
    for part in parts:
        some = Trace(trace.path, manifest, tuple(trace.launches[number] for number in part))
        for start in range(0, len(keys), many):
            devices = {key: question.devices[key] for key in keys[start : start + many]}
            tasks.append(
                _Task(ProfileRequest(devices, question.options.for_worker), some, url, packed)
            )
            batches.append(part)
    profiles_by_key: dict[tuple[int, str], LaunchProfile] = {}
    for count, (task, answer) in enumerate(run_tasks(executor, _do_task, tasks), 1):
        if isinstance(answer, CutraceError):
            raise answer
        for number, profiles in zip(batches[task], answer, strict=True):
            profiles_by_key |= {(number, profile.device): profile for profile in profiles}
        progress.report(count / len(tasks))
    return {number: [profiles_by_key[number, key] for key in keys] for number in numbers}


def _cut(trace: Trace, numbers: Sequence[int]) -> Iterator[list[int]]:
    """Split launches into groups that are each worth a task."""
    part, rows = list[int](), 0
    for number in numbers:
        part.append(number)
        rows += trace.launches[number].count("accesses")
        trace.launches[number].forget()
        if len(part) == TASK_LAUNCHES or rows >= TASK_ROWS:
            yield part
            part, rows = [], 0
    if part:
        yield part


def _do_task(task: _Task) -> list[list[LaunchProfile]]:
    """Replay the launches of a task; the worker opens the local trace or fetches it from its
    address.
    """
    if not os.path.exists(task.trace.path):
        if not task.url:
            raise CutraceError(
                f"{task.trace.label}: the worker on {node()} does not see it; put it into a folder"
                " that all workers see, or to an address, say s3://..."
            )
        bring(task.url, task.trace.path)
    trace = deepcopy(task.trace)  # threads of one process would share open files
    counters = [device.counters for device in task.question.devices.values()]
    unheard = progress.listening(progress.ignore, progress.ignore)  # an executor may call in place
    with with_counters(counters), unheard:
        profiles_by_number = _profile_here(task.question, trace, range(len(trace.launches)))
        if task.packed:
            _settle(trace, profiles_by_number)
    for launch in trace.launches:
        launch.forget()
    return [*profiles_by_number.values()]
