"""A trace replayed and counted: the value that every report renders."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from os import PathLike, environ
from pathlib import Path
from time import monotonic
from typing import Any

import polars as pl
import pyarrow as pa

from ..models.replay.count.counts import LaunchCounts
from ..models.replay.device.device import Device, load_devices
from ..models.replay.device.measured import load_measured
from ..models.replay.jobs import cores, replay_in_jobs, run_beside
from ..models.replay.options import DEFAULT_DEVICE, ReplayOptions, tell_nobody
from ..models.replay.whatif.suppose import suppose
from ..option import taking
from ..traces.reader import LaunchTrace, Trace, read_trace
from ..traces.schema import Launch, Manifest
from .counting.arithmetic import with_flops, with_lanes, without_flops
from .counting.bounds import Bound, find_bounds, sampled_bounds
from .counting.evaluate import Raw
from .counting.footprint import Touched
from .counting.idle import NOTHING, did_nothing
from .counting.instruction_mix import with_mix, without_mix
from .counting.launch_facts import launch_facts
from .counting.left_out import find_left_out
from .counting.levels import with_levels
from .counting.lsu_exclusions import with_apart
from .counting.roofline import find_roof
from .counting.turns import Turns, count_turns
from .counting.with_columns import Added, widen
from .launch_profile import LaunchProfile, count_totals
from .sheet.view import View
from .text.kept_text import kept_text
from .time.estimate import Asked, Estimate, estimate
from .time.sample_warps import Ran, sample_warps
from .time.throughput import PROFILED

FRAME = {
    "launch": pl.Int64,
    "kernel": pl.String,
    "device": pl.String,
    "counter": pl.String,
    "value": pl.Float64,
}
"""Columns of `Profile.frame`."""
TOGETHER = 64
"""Launches whose totals are worked out at once; of a trace of more the frames are packed."""
WORTH_PROCESSES = 3.0
"""Seconds of replay that are worth starting processes for: each takes about one to load."""


@dataclass(frozen=True, repr=False)
class Profile:
    """Every launch of a trace on every device asked for, launch by launch."""

    launches: tuple[LaunchProfile, ...]
    manifest: Manifest
    view: View = field(default_factory=View)

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices, in the order asked for."""
        return tuple(dict.fromkeys(p.device for p in self.launches))

    @property
    def numbers(self) -> tuple[int, ...]:
        """The launches' numbers, in order."""
        return tuple(dict.fromkeys(p.number for p in self.launches))

    def of(self, number: int) -> tuple[LaunchProfile, ...]:
        """One launch on all devices."""
        return tuple(self._by_number.get(number, ()))

    @cached_property
    def _by_number(self) -> Mapping[int, Sequence[LaunchProfile]]:
        found: dict[int, list[LaunchProfile]] = {}
        for launch in self.launches:
            found.setdefault(launch.number, []).append(launch)
        return found

    def __repr__(self) -> str:
        """How many launches on which devices: all else is asked for."""
        launches = f"{len(self.numbers)} launch{'es' * (len(self.numbers) != 1)}"
        return f"<profile of {launches} on {', '.join(self.devices) or 'no device'}>"

    def frame(self) -> pl.DataFrame:
        """A row for each launch, device and counter, as `compare` has them for variants.

        Columns are `launch` (its number), `kernel`, `device`, `counter` (the headings of
        `LaunchProfile.counters`) and `value` (float64, null where the device has no such counter).
        """
        rows = [
            (p.number, p.launch.name, p.device, counter, value)
            for p in self.launches
            for counter, value in p.counters.items()
        ]
        return pl.DataFrame(rows, FRAME, orient="row", strict=False)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from .sheet.notebook import show_launches

        return show_launches(self.launches, self.view)


@taking(ReplayOptions)
def analyze(trace: Trace | str | PathLike[str], options: ReplayOptions) -> Profile:
    """Replay a trace on one device or several and count.

    `trace` is a path, or what `read_trace` gave. `device` is a name of `cutrace devices`, the path
    of a device file, or several of them; none means `$CUTRACE_DEVICE`, else h100. `scope="all"`
    makes the first profiler's counters count the whole grid instead of one SM or cluster;
    `profiled_blocks` is the number of blocks that the profiled cluster received. `dlcm` is `ca` or
    `cg`, `registers` a thread's instead of the assembler's. `schedule`, `round-robin` or
    `greedy-oldest`, is the order of warps that caches see (`models/replay/schedule`). `set`
    gives values in place of a device file's, `{"coalescer.load": "sector"}`. `as_if` counts what a
    device would refuse. Without `caches` hits and misses are None, and a replay takes a part of the
    time. `pad` and `align` suppose other arrays: `{"tile": 1}` rows one element
    longer, `{"in": 128}` a base at a multiple of 128 bytes (`models.replay.suppose` has the rest).
    Launches or devices are served by `jobs` processes at once; without it launches that would take
    seconds are, on all cores. `tell` is called now and then with how much is done, from 0 to 1.

    Raises `CutraceError` for a trace that cannot be read and for unknown devices and values.
    """
    return count(trace, options)


def count(trace: Trace | str | PathLike[str], options: ReplayOptions) -> Profile:
    """Replay a trace as the options say and count."""
    opened = trace if isinstance(trace, Trace) else read_trace(trace)
    return count_supposed(suppose(opened, options.pad, options.align), options)


def count_supposed(trace: Trace, options: ReplayOptions) -> Profile:
    """Replay a trace that is as `pad` and `align` suppose it already."""
    return Profile(tuple(_each_launch(read_question(options), trace)), trace.manifest)


def _each_launch(question: "Question", trace: Trace) -> Iterator[LaunchProfile]:
    """Replay every launch on every device; what repeats an earlier one is not replayed again."""
    first = first_alike(trace.launches)
    profiles = dict(_profile_part(question, trace, list(dict.fromkeys(first))))
    for number, launch in enumerate(trace.launches):
        for profile in profiles[first[number]]:
            repeats = first[number] != number
            yield profile.repeated(launch.number, launch.launch) if repeats else profile


def first_alike(launches: Sequence[LaunchTrace]) -> list[int]:
    """For each launch the place in the list of the first that did the same: often its own."""
    alike: dict[Path, list[int]] = {}
    firsts = []
    for number, launch in enumerate(launches):
        before = alike.setdefault(launch.place, [])
        known = (n for n in before if _repeats(launch, launches[n].launch))
        firsts.append(next(known, number))
        if firsts[-1] == number:
            before.append(number)
    return firsts


def _profile_launches(
    question: "Question", trace: Trace, numbers: Sequence[int]
) -> dict[int, list[LaunchProfile]]:
    """Replay launches on every device, in several processes once the rest would take seconds."""
    began, found = monotonic(), dict[int, list[LaunchProfile]]()
    for done, number in enumerate(numbers):
        if done and done % TOGETHER == 0:
            _settle(trace, {n: found[n] for n in numbers[done - TOGETHER : done]})
        part = partial(_tell_part, question.options.tell, done, len(numbers))
        found[number] = [*_on_devices(question, trace.launches[number], trace.manifest, part)]
        rest = numbers[done + 1 :]
        left = (monotonic() - began) / (done + 1) * len(rest)
        if (jobs := _jobs(question.options.jobs, len(rest), left)) > 1:
            return found | _spread(question, trace, rest, jobs)
    return found


def _settle(trace: Trace, found: Mapping[int, Sequence[LaunchProfile]]) -> None:
    """Work out totals, and hold as little as can be of launches that may be thousands."""
    count_totals(profile for profiles in found.values() for profile in profiles)
    for number, profiles in found.items():
        trace.launches[number].forget()
        for profile in profiles:
            profile.pack()


def _jobs(asked: int | None, launches: int, seconds: float) -> int:
    """In how many processes to replay launches that take these seconds in one."""
    return min(asked or (cores() if seconds > WORTH_PROCESSES else 1), launches, cores())


def _spread(
    question: "Question", trace: Trace, numbers: Sequence[int], jobs: int
) -> dict[int, list[LaunchProfile]]:
    """Replay launches in several processes."""
    alone = replace(question, options=replace(question.options, jobs=1))
    silent = replace(alone, options=replace(alone.options, tell=tell_nobody))
    mine, *others = [numbers[n::jobs] for n in range(jobs)]
    found = run_beside(
        lambda: _profile_part(alone, trace, mine),
        _profile_part,
        [(silent, trace, part) for part in others],
    )
    return dict(found)


def _profile_part(
    question: "Question", trace: Trace, numbers: Sequence[int]
) -> list[tuple[int, list[LaunchProfile]]]:
    """What one process replays; the totals are worked out there, too."""
    found = _profile_launches(question, trace, numbers)
    count_totals(profile for profiles in found.values() for profile in profiles)
    return [*found.items()]


def _tell_part(tell: Callable[[float], None], number: int, of: int, done: float) -> None:
    tell((number + done) / of)


def _repeats(launch: LaunchTrace, first: Launch) -> bool:
    """Whether a launch with the tables of another differs in its arguments and its caller only."""
    alike = replace(
        launch.launch,
        arguments=first.arguments,
        called_at=first.called_at,
        ranges=first.ranges,
    )
    return alike == first


def _on_devices(
    question: "Question",
    launch: LaunchTrace,
    manifest: Manifest,
    tell: Callable[[float], None],
) -> Iterator[LaunchProfile]:
    """Replay a launch on every device."""
    instructions = launch.instructions()
    places = find_places(instructions, manifest)
    touched = Touched(launch)
    turns = cache(partial(count_turns, launch))
    ran = None if manifest.is_machine_code else cache(partial(sample_warps, launch))
    devices = list(question.devices.values())
    for counts in replay_in_jobs(launch, devices, question.options, tell):
        yield launch_profile(
            question, counts, instructions, places, touched, launch.supposed, turns, ran
        )


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every launch: the devices by key, and how to replay and count."""

    devices: Mapping[str, Device]
    options: ReplayOptions


def read_question(options: ReplayOptions) -> Question:
    """Read the devices that the options name, else the default. `CutraceError` if unknown."""
    names = options.devices or (environ.get("CUTRACE_DEVICE") or DEFAULT_DEVICE,)
    return Question({found.key: found for found in load_devices(names, options.set)}, options)


def _with_computing(counts: LaunchCounts, instructions: pa.Table) -> pl.DataFrame:
    """The models' counts, and beside them what the instructions computed."""
    lanes = with_lanes(counts, instructions)
    return with_levels(with_mix(with_flops(lanes, instructions), instructions).drop("lanes"))


def launch_profile(
    question: Question,
    counts: LaunchCounts,
    instructions: pa.Table,
    places: pl.DataFrame,
    touched: Callable[[], pl.DataFrame] | None,
    supposed: tuple[str, ...],
    turns: Callable[[], Turns] | None = None,
    ran: Callable[[], Ran] | None = None,
) -> LaunchProfile:
    """One launch on one device, its counts joined with the places of its instructions.

    What is `supposed` of the launch is said before all else. `touched`, `turns` and `ran`
    read the trace once more, if there is one.
    """
    device, as_if = question.devices[counts.device], question.options.as_if
    told = with_apart(_with_computing(counts, instructions), instructions, device.capability)
    mixed = with_levels(without_mix(without_flops(counts.mixed)))
    mixed = with_apart(mixed, instructions, device.capability)
    counts = replace(counts, counts=told)
    refusal = "" if as_if else counts.refusal
    bounds = () if refusal else find_bounds(told, device, counts.launch, turns)
    facts = {**launch_facts(counts, device), "bound_ps": _picoseconds(bounds)}
    estimated = _estimate(counts, instructions, bounds, device, turns, ran)
    facts["estimated_ps"] = round(estimated.ns * 1000) if estimated else None
    for unit in PROFILED:
        facts[f"busy_{unit.lower()}"] = round(estimated.busy[unit] * 10**6) if estimated else None
    facts["millionths"] = 10**6
    facts["ps_of_ns"] = 1000  # a column, as polars divides many launches by a number otherwise
    around = Added(pl.col(name) for name in places.columns if name != "pc")
    warnings = (*kept_text(counts.launch), *supposed, *_warnings(counts, as_if))
    left_out = find_left_out(counts.launch, instructions, counts.counts.columns, places)
    raw = Raw(
        widen(counts.counts, places, around),
        facts,
        whole=question.options.scope == "all",
        left_out=left_out,
    )
    return LaunchProfile(
        number=counts.number,
        launch=counts.launch,
        device=device.key,
        device_name=device.name,
        capability=device.capability,
        raw=raw,
        mixed=widen(mixed, places, around),
        blocks={"sm": counts.blocks_of_sm, "cluster": counts.blocks_of_cluster},
        refusal=refusal,
        substitutions=counts.substitutions,
        remarks=(*warnings, *_remarks(counts, device, as_if)),
        warnings=warnings,
        device_file=str(device.path),
        bounds=bounds,
        bounds_between=() if refusal else sampled_bounds(raw, device, counts.launch),
        estimate=estimated,
        touched=touched if counts.launch.kept.has_accesses else None,
    )


def _estimate(
    counts: LaunchCounts,
    instructions: pa.Table,
    bounds: Sequence[Bound],
    device: Device,
    turns: Callable[[], Turns] | None,
    ran: Callable[[], Ran] | None,
) -> Estimate | None:
    """The time of a launch that has bounds, on a device of which latencies were measured."""
    measured = load_measured(device)
    if not bounds or not ran or not measured or not device.chip.clock_mhz:
        return None
    mhz = min(measured.profiler_mhz, device.chip.clock_mhz)
    resident = counts.occupancy.blocks
    asked = Asked(counts.counts, instructions, bounds, counts.launch, resident, device, mhz, turns)
    return estimate(asked, ran(), measured)


def _picoseconds(bounds: Sequence[Bound]) -> int | None:
    return round(bounds[0].ns * 1000) if bounds else None


def _warnings(counts: LaunchCounts, as_if: bool) -> Iterator[str]:
    """What the numbers of a launch on a device must not be read without, if there are any."""
    if counts.refusal and not as_if:
        return
    if counts.refusal:
        yield f"{counts.refusal}; counted as if it could"
    if counts.launch.kept.is_whole and did_nothing(counts.counts):
        yield NOTHING


def _remarks(counts: LaunchCounts, device: Device, as_if: bool) -> Iterator[str]:
    """What else is to be said about one launch on one device, if there are any numbers."""
    if counts.refusal and not as_if:
        return
    resident = counts.occupancy
    registers = "an unknown number of" if resident.registers is None else resident.registers
    fit = "1 block fits" if resident.blocks == 1 else f"{resident.blocks} blocks fit"
    yield (
        f"{fit} on an SM, limited by {', '.join(resident.limited_by)},"
        f" with {registers} registers a thread ({resident.registers_from})"
    )
    if (roof := find_roof(counts.counts, device)) and counts.launch.kept.is_whole:
        yield str(roof)


def find_places(instructions: pa.Table, manifest: Manifest) -> pl.DataFrame:
    """For each pc the source line that it came from: `file`, `line`, `text`, and the PTX `ptx`.

    `stack` has it and those into which it was inlined, outermost first: `FILE:LINE` a line of text.
    """
    chosen = instructions.select(["pc", "file", "line", "text"])
    table = pl.DataFrame(chosen).rename({"text": "ptx"})
    lines = {
        name: text.encode(errors="replace").decode().splitlines()  # no table holds half a pair
        for name, text in manifest.sources.items()
    }
    found = [
        lines[file][line - 1] if 0 < line <= len(lines.get(file, ())) else ""
        for file, line in table.select("file", "line").iter_rows()
    ]
    stacks = map(_stack, instructions.select(["file", "line", "inlined_at"]).to_pylist())
    return table.with_columns(
        text=pl.Series(found, dtype=pl.String), stack=pl.Series([*stacks], dtype=pl.String)
    )


def _stack(row: Mapping[str, Any]) -> str:
    chain = [f"{place['file']}:{place['line']}" for place in (row, *row["inlined_at"])]
    return "\n".join(reversed(chain))
