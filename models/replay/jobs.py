"""Parallel replay in several processes: devices of one launch, or launches of one trace.

A process takes a second to start, so this pays for replays of many seconds. Results do not depend
on the number of processes.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import CutraceError
from .device.device import Device
from .kept import keep_counts, keys_of, load_counts
from .options import ReplayOptions, tell_nobody
from .replay import launch_counts, replay
from .tally.counts import LaunchCounts

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace

Found = TypeVar("Found")

_WORK = f"from {__name__} import work; work()"


def run_beside(
    mine: Callable[[], list[Found]],
    work: Callable[..., list[Found]],
    others: Sequence[tuple[Any, ...]],
) -> list[Found]:
    """Do `mine` here, and `work` with each of the other arguments in a process of its own.

    Returns what all found, one after another. `work` is a function of a module, and pickled by its
    name; what it raises is raised here.
    """
    children = [_start(work, arguments) for arguments in others]
    try:
        found = mine()
        return found + [each for child in children for each in _finish(child)]
    finally:
        for child in children:
            child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()


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


def _start(work: Callable[..., Any], arguments: tuple[Any, ...]) -> "subprocess.Popen[bytes]":
    """Start a process that calls a function."""
    child = subprocess.Popen(
        [sys.executable, "-c", _WORK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert child.stdin is not None
    child.stdin.write(pickle.dumps((work, arguments)))
    child.stdin.close()
    child.stdin = None
    return child


def _finish(child: "subprocess.Popen[bytes]") -> list[Any]:
    """Wait for a process and return its result, or raise its exception."""
    answer, _ = child.communicate()
    if child.returncode or not answer:
        raise CutraceError(f"a process that replays ended with status {child.returncode}")
    found = pickle.loads(answer)
    if isinstance(found, Exception):
        raise found
    return list(found)


def work() -> None:
    """The main function of a process: the call on stdin, the answer on stdout."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who started it, and ends it
    function, arguments = pickle.load(sys.stdin.buffer)
    try:
        answer: object = function(*arguments)
    except CutraceError as error:
        answer = error
    sys.stdout.buffer.write(pickle.dumps(answer))
