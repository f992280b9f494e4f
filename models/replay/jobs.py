"""Parallel replay in several processes: devices of one launch, or launches of one trace.

A process takes a second to start, so this pays for replays of many seconds. Results do not depend
on the number of processes.
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...processes import Process
from .device.device import Device
from .kept import keep_counts, keys_of, load_counts
from .options import ReplayOptions, tell_nobody
from .replay import launch_counts, replay
from .tally.counts import LaunchCounts

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace

Found = TypeVar("Found")


def run_beside(
    mine: Callable[[], list[Found]],
    work: Callable[..., list[Found]],
    others: Sequence[tuple[Any, ...]],
) -> list[Found]:
    """Do `mine` here, and `work` with each of the other arguments in a process of its own.

    Returns what all found, one after another. `work` is a function of a module, and pickled by its
    name; what it raises is raised here.
    """
    children = [Process() for _ in others]
    try:
        for child, arguments in zip(children, others, strict=True):
            child.send(work, *arguments)
        found = mine()
        return found + [each for child in children for each in child.receive()]
    finally:
        for child in children:
            child.end()


def cores() -> int:
    """How many processes run at once on this machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def replay_in_jobs(
    trace: "LaunchTrace",
    devices: Sequence[Device],
    options: ReplayOptions,
    tell: Callable[[float], None] = tell_nobody,
) -> list[LaunchCounts]:
    """Count one launch on each device, in at most `options.jobs` processes, a core each.

    What was counted before, in this process or another, is not counted again (`kept.py`). `tell` is
    called with how much is done, from 0 to 1.
    """
    keys = {d.key: key for d, key in zip(devices, keys_of(trace, devices, options), strict=True)}
    known = {device.key: load_counts(keys[device.key]) for device in devices}
    unknown = [device for device in devices if known[device.key] is None]
    fresh = {c.device: c for c in _count(trace, unknown, options, tell)} if unknown else {}
    trace.check_unchanged()
    for name, counts in fresh.items():
        keep_counts(keys[name], (counts.counts, counts.mixed, counts.lanes_on))
    told = trace.launch, trace.number, trace.instructions()
    return [
        launch_counts(told, device, options, frames)
        if (frames := known[device.key])
        else fresh[device.key]
        for device in devices
    ]


def _count(
    trace: "LaunchTrace",
    devices: Sequence[Device],
    options: ReplayOptions,
    tell: Callable[[float], None],
) -> list[LaunchCounts]:
    """Replay on devices, in several processes if there are several devices."""
    jobs = min(options.jobs or 1, len(devices), cores())
    first, *others = [devices[number::jobs] for number in range(jobs)]
    return run_beside(
        lambda: replay(trace, first, options, tell),
        replay,
        [(trace, part, options.of_a_device) for part in others],
    )
