"""Replay on several devices in several processes: each reads the trace for a part of the devices.

A process of its own is started for each part but one: it takes a second to load, so this pays for
replays that take many, with caches or on many devices. Results are the same whatever the number.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...errors import CutraceError
from .count.counts import LaunchCounts
from .device.device import Device
from .kept import keep_counts, keys_of, load_counts
from .options import ReplayOptions, tell_nobody
from .replay import launch_counts, replay

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace

_WORK = f"from {__name__} import work; work()"


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
    return [
        launch_counts(trace, device, options, frames)
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
    jobs = min(options.jobs, len(devices), os.cpu_count() or 1)
    parts = [devices[number::jobs] for number in range(jobs)]
    if len(parts) < 2:
        return replay(trace, devices, options, tell)
    children = [_start(trace, part, options) for part in parts[1:]]
    try:
        found = replay(trace, parts[0], options, tell)
        found += [counts for child in children for counts in _finish(child)]
    finally:
        for child in children:
            child.kill()
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
    return found


def _start(
    trace: "LaunchTrace", devices: Sequence[Device], options: ReplayOptions
) -> "subprocess.Popen[bytes]":
    """Start a process that replays on some devices."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    child = subprocess.Popen(
        [sys.executable, "-c", _WORK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert child.stdin is not None
    child.stdin.write(pickle.dumps((trace, list(devices), options.of_a_device)))
    child.stdin.close()
    child.stdin = None
    return child


def _finish(child: "subprocess.Popen[bytes]") -> list[LaunchCounts]:
    """Wait for a process and return what it found, or raise what it raised."""
    answer, _ = child.communicate()
    if child.returncode or not answer:
        raise CutraceError(f"a process that replays ended with status {child.returncode}")
    found = pickle.loads(answer)
    if isinstance(found, Exception):
        raise found
    return list(found)


def work() -> None:
    """What such a process does: the question on stdin, the answer on stdout."""
    trace, devices, options = pickle.load(sys.stdin.buffer)
    try:
        answer: object = replay(trace, devices, options)
    except CutraceError as error:
        answer = error
    sys.stdout.buffer.write(pickle.dumps(answer))
