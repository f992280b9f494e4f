"""Launches of a trace made into profiles: here, in processes beside, or by an executor."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache, partial
from platform import node
from time import monotonic

from ..errors import CutraceError
from ..lazy_dataclass import dataclass
from ..models.replay.jobs import cores, replay_in_jobs, run_beside
from ..models.replay.options import tell_part
from ..spread import Executor, spread
from ..traces.reader import LaunchTrace, Trace
from ..traces.remote import bring, origin
from .counted import Counted, Question, profile_counted
from .counting.footprint import Touched
from .counting.packed import pack_together
from .counting.turns import count_turns
from .counting.vocabulary import with_counters
from .launch_profile import LaunchProfile, count_totals
from .time.sample_beside import SampledWarps

TOGETHER = 64
"""Launches whose profiles are made at once; of a trace of more the frames are packed."""
WORTH_PROCESSES = 3.0
"""Seconds of replay that are worth starting processes for: each takes about one to load."""
TASK_LAUNCHES, TASK_ROWS = 16, 1 << 18
"""Launches of a task at most, and rows of accesses from which on it gets no more: a tenth of a
second or more, where giving it to a worker takes a hundredth."""
TASKS = 32
"""Tasks from which on each has several devices: they go through a launch's rows together."""


def profile_launches(
    question: Question, trace: Trace, numbers: Sequence[int]
) -> dict[int, list[LaunchProfile]]:
    """Replay some launches, by their places in the list, on every device; work out totals."""
    if executor := question.options.executor:
        return _profile_elsewhere(executor, question, trace, numbers)
    return dict(_profile_part(question, trace, numbers))


def _profile_launches(
    question: Question, trace: Trace, numbers: Sequence[int]
) -> dict[int, list[LaunchProfile]]:
    """Replay launches on every device, in several processes once the rest would take seconds."""
    began, jobs, rest, tell = monotonic(), 1, numbers, question.options.tell
    found, counted = dict[int, list[LaunchProfile]](), dict[int, list[Counted]]()
    for done, number in enumerate(numbers):
        if len(counted) == TOGETHER:
            found |= _settle(trace, _profile(question, trace, counted))
            counted.clear()
        if done:  # also where what the one before counts was kept
            tell(done / len(numbers))
        part = partial(tell_part, tell, done, 1, len(numbers))
        is_ptx = not trace.manifest.is_machine_code
        counted[number] = [*_on_devices(question, trace.launches[number], is_ptx, part)]
        rest = numbers[done + 1 :]
        left = (monotonic() - began) / (done + 1) * len(rest)
        if (jobs := _jobs(question.options.jobs, len(rest), left)) > 1:
            break
    found |= _profile(question, trace, counted)
    if jobs <= 1:
        return found
    part = partial(tell_part, tell, len(numbers) - len(rest), len(rest), len(numbers))
    told = replace(question, options=replace(question.options, tell=part))
    return found | _spread(told, trace, rest, jobs)


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
    silent = replace(question, options=question.options.alone)
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


@dataclass(frozen=True, slots=True)
class _Task:
    """Launches to replay on some devices. The trace has these alone, and is a copy of `url`, if
    any; profiles are `packed` where there are many more.
    """

    question: Question
    trace: Trace
    url: str
    packed: bool


def _profile_elsewhere(
    executor: Executor, question: Question, trace: Trace, numbers: Sequence[int]
) -> dict[int, list[LaunchProfile]]:
    """Have the workers of an executor replay the launches, some of them on some devices a task."""
    url, packed = origin(trace.path), len(numbers) > TOGETHER
    manifest, parts = replace(trace.manifest, launches=()), [*_cut(trace, numbers)]
    keys = list(question.devices)
    many = max(1, len(keys) * len(parts) // TASKS)
    tasks, whose = list[_Task](), list[Sequence[int]]()
    for part in parts:
        some = Trace(trace.path, manifest, tuple(trace.launches[number] for number in part))
        for start in range(0, len(keys), many):
            devices = {key: question.devices[key] for key in keys[start : start + many]}
            tasks.append(_Task(Question(devices, question.options.alone), some, url, packed))
            whose.append(part)
    found: dict[tuple[int, str], LaunchProfile] = {}
    for done, (task, answer) in enumerate(spread(executor, _do_task, tasks), 1):
        if isinstance(answer, CutraceError):
            raise answer
        for number, profiles in zip(whose[task], answer, strict=True):
            found |= {(number, profile.device): profile for profile in profiles}
        question.options.tell(done / len(tasks))
    return {number: [found[number, key] for key in keys] for number in numbers}


def _cut(trace: Trace, numbers: Sequence[int]) -> Iterator[list[int]]:
    """Cut launches into parts that are worth a task each."""
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
    """Replay the launches of a task, where the trace is or can be had."""
    if not os.path.exists(task.trace.path):
        if not task.url:
            raise CutraceError(
                f"{task.trace.label}: the worker on {node()} does not see it; put it into a folder"
                " that all workers see, or to an address, say s3://..."
            )
        bring(task.url, task.trace.path)
    trace = deepcopy(task.trace)  # the threads of a process would share its open files
    with with_counters(device.counters for device in task.question.devices.values()):
        found = _profile_launches(task.question, trace, range(len(trace.launches)))
        if task.packed:
            _settle(trace, found)
        count_totals(profile for profiles in found.values() for profile in profiles)
    for launch in trace.launches:
        launch.forget()
    return [*found.values()]


def _on_devices(
    question: Question, launch: LaunchTrace, is_ptx: bool, tell: Callable[[float], None]
) -> Iterator[Counted]:
    """Replay a launch on every device."""
    instructions, touched = launch.instructions(), Touched(launch)
    turns = cache(partial(count_turns, launch))
    devices = list(question.devices.values())
    ran = SampledWarps(launch, devices) if is_ptx else None
    tell = ran.begin_beside(tell) if ran else tell
    for counts in replay_in_jobs(launch, devices, question.options, tell):
        yield Counted(counts, instructions, touched, launch.supposed, turns, ran)
