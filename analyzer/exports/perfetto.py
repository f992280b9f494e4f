"""Perfetto: thread blocks as slices on the slots of SMs, for ui.perfetto.dev and chrome://tracing.

A launch is a process, a block slot of an SM is a thread, a block is a slice. A trace has no time: a
microsecond represents one instruction of the block's longest warp. Blocks resident on an SM at once
form a wave, and a wave begins when the previous one has ended, as in the replay.

Source: Trace Event Format; docs/getting-started/other-formats.md of github.com/google/perfetto.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import CutraceError
from ...models.replay.device.device import Device, load_devices
from ...models.replay.interface.model import Ints
from ...models.replay.interface.options import DEFAULT_DEVICE, ReplayOptions
from ...models.replay.replay import check_code, fit_launch
from ...models.replay.schedule.place import place
from ...models.replay.schedule.schedule import schedule
from ...traces.reader import LaunchTrace, Trace
from ...traces.unique import sorted_unique
from ..counting.paths import read_columns, read_paths
from ..text.launch_text import launch_text
from ..text.output import write_report

DEVICE = DEFAULT_DEVICE
MOST_BLOCKS = 1 << 20
"""Maximum number of slices: no viewer shows more."""


def write(trace: Trace, out: Path | None, options: ReplayOptions) -> str:
    """Write the launches that the first device can run, or print them."""
    device = load_devices(options.devices, options.set)[0]
    events = [
        event for launch in trace.launches for event in _launch_events(launch, device, options)
    ]
    metadata = {"device": device.key, "unit": "1 us is an instruction of a block's longest warp"}
    whole = {"displayTimeUnit": "ns", "otherData": metadata, "traceEvents": events}
    text = json.dumps(whole, separators=(",", ":")) + "\n"
    if out is None:
        return text
    write_report(out, text)
    return f"{out}\nnext: open it at https://ui.perfetto.dev"


def _launch_events(
    trace: LaunchTrace, device: Device, options: ReplayOptions
) -> Iterator[dict[str, Any]]:
    launch = trace.launch
    check_code(trace, device)
    fit = fit_launch(device, launch, trace.instructions(), options)
    if fit.refusal:
        return
    if launch.blocks > MOST_BLOCKS:
        summary = f"launch {trace.number} has {launch.blocks} blocks"
        raise CutraceError(f"{summary}; {MOST_BLOCKS} slices can be shown at most")
    placement = place(device.chip, launch.blocks, options.profiled_blocks)
    order = schedule(placement, fit.blocks, launch.warps, options.schedule, None)
    steps = steps_of_blocks(trace)
    begins = _begins(order.sm, order.wave, steps)
    accesses = read_columns(trace.access_batches(["block"]), ("block",))["block"]
    accesses = np.bincount(accesses.astype(np.int64), minlength=launch.blocks)
    pid = trace.number
    yield _name("process_name", pid, 0, f"launch {pid}: {launch_text(launch)}")
    seats = order.sm * order.resident + order.slot
    for seat in sorted_unique(seats).tolist():
        sm, slot = divmod(seat, order.resident)
        yield _name("thread_name", pid, seat, f"SM {sm}, place {slot}")
        yield _name("thread_sort_index", pid, seat, seat)
    for block in range(launch.blocks):
        x, y = launch.grid[:2]
        yield {
            "ph": "X",
            "name": f"block ({block % x}, {block // x % y}, {block // x // y})",
            "cat": "block",
            "pid": pid,
            "tid": int(seats[block]),
            "ts": int(begins[block]),
            "dur": int(steps[block]),
            "args": {"accesses": int(accesses[block]), "wave": int(order.wave[block])},
        }


def _name(kind: str, pid: int, tid: int, value: str | int) -> dict[str, Any]:
    key = "sort_index" if isinstance(value, int) else "name"
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {key: value}}


def steps_of_blocks(trace: LaunchTrace) -> Ints:
    """Return the instruction count of each block's longest warp, (blocks,)."""
    control = read_columns(trace.control_batches(), ("block", "step", "path"))
    longest = np.zeros(trace.launch.blocks, np.int64)
    if len(control["block"]):
        lengths = read_paths(trace).lengths
        ends = control["step"].astype(np.int64) + lengths[control["path"]]
        np.maximum.at(longest, control["block"].astype(np.int64), ends)
        return longest
    rows = read_columns(trace.access_batches(["block", "step"]), ("block", "step"))
    np.maximum.at(longest, rows["block"].astype(np.int64), rows["step"].astype(np.int64) + 1)
    return longest


def _begins(sm: Ints, wave: Ints, steps: Ints) -> Ints:
    """Return the start of each block: after the longest block of every earlier wave on its SM."""
    lasts = np.zeros((int(sm.max()) + 1, int(wave.max()) + 1), np.int64)
    np.maximum.at(lasts, (sm, wave), steps)
    # An exclusive prefix sum per SM: the duration of a wave is its longest block.
    begins: Ints = (np.cumsum(lasts, axis=1) - lasts)[sm, wave]
    return begins
