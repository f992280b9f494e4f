"""A trace replayed and counted: the value that every report renders."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, cached_property, partial
from os import PathLike
from pathlib import Path
from time import monotonic

import polars as pl

from ..lazy_dataclass import dataclass
from ..models.replay.jobs import cores, replay_in_jobs, run_beside
from ..models.replay.options import ReplayOptions, tell_nobody
from ..models.replay.whatif.suppose import suppose
from ..option import taking
from ..traces.reader import LaunchTrace, Trace, read_trace
from ..traces.schema import Launch, Manifest
from .counted import Counted, Question, profile_counted, read_question
from .counting.footprint import Touched
from .counting.packed import pack_together
from .counting.turns import count_turns
from .launch_profile import LaunchProfile, count_totals
from .sheet.view import View
from .time.sample_warps import sample_warps

FRAME = {
    "launch": pl.Int64,
    "kernel": pl.String,
    "device": pl.String,
    "counter": pl.String,
    "value": pl.Float64,
}
"""Columns of `Profile.frame`."""
TOGETHER = 64
"""Launches whose profiles are made at once; of a trace of more the frames are packed."""
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


def _each_launch(question: Question, trace: Trace) -> Iterator[LaunchProfile]:
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
    question: Question, trace: Trace, numbers: Sequence[int]
) -> dict[int, list[LaunchProfile]]:
    """Replay launches on every device, in several processes once the rest would take seconds."""
    began, jobs, rest = monotonic(), 1, numbers
    found, counted = dict[int, list[LaunchProfile]](), dict[int, list[Counted]]()
    for done, number in enumerate(numbers):
        if len(counted) == TOGETHER:
            found |= _settle(trace, _profile(question, trace, counted))
            counted.clear()
        part = partial(_tell_part, question.options.tell, done, len(numbers))
        is_ptx = not trace.manifest.is_machine_code
        counted[number] = [*_on_devices(question, trace.launches[number], is_ptx, part)]
        rest = numbers[done + 1 :]
        left = (monotonic() - began) / (done + 1) * len(rest)
        if (jobs := _jobs(question.options.jobs, len(rest), left)) > 1:
            break
    found |= _profile(question, trace, counted)
    return found | _spread(question, trace, rest, jobs) if jobs > 1 else found


def _profile(
    question: Question, trace: Trace, counted: Mapping[int, Sequence[Counted]]
) -> dict[int, list[LaunchProfile]]:
    """Make profiles of launches that were counted on devices."""
    every = [one for each in counted.values() for one in each]
    profiles = iter(profile_counted(question, trace.manifest, every))
    return {number: [next(profiles) for _ in each] for number, each in counted.items()}


def _settle(trace: Trace, found: dict[int, list[LaunchProfile]]) -> dict[int, list[LaunchProfile]]:
    """Work out totals, and hold as little as can be of launches that may be thousands."""
    profiles = [profile for each in found.values() for profile in each]
    count_totals(profiles)
    pack_together(profiles)
    pack_together([profile.raw for profile in profiles])
    for number in found:
        trace.launches[number].forget()
    return found


def _jobs(asked: int | None, launches: int, seconds: float) -> int:
    """In how many processes to replay launches that take these seconds in one."""
    return min(asked or (cores() if seconds > WORTH_PROCESSES else 1), launches, cores())


def _spread(
    question: Question, trace: Trace, numbers: Sequence[int], jobs: int
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
    question: Question, trace: Trace, numbers: Sequence[int]
) -> list[tuple[int, list[LaunchProfile]]]:
    """Replay a part of the launches in this process, and work out totals."""
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
    question: Question, launch: LaunchTrace, is_ptx: bool, tell: Callable[[float], None]
) -> Iterator[Counted]:
    """Replay a launch on every device."""
    instructions, touched = launch.instructions(), Touched(launch)
    turns = cache(partial(count_turns, launch))
    ran = cache(partial(sample_warps, launch)) if is_ptx else None
    devices = list(question.devices.values())
    for counts in replay_in_jobs(launch, devices, question.options, tell):
        yield Counted(counts, instructions, touched, launch.supposed, turns, ran)
