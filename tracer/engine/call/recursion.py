"""Recursion: the registers that a call must find again, and local memory, by depth of each lane.

A function that can call itself, directly or through others, has one set of register slots. What is
live after such a call is put aside before it, in a stack for each lane, and taken back where the
call returns; its local variables lie further up for each level.
"""

import numpy as np
from numpy.typing import NDArray

from ....errors import KernelFault
from ..array.program import Group, Program, Step, Wave
from ..kernel.source_line import source_line
from ..lanes import LANES
from .frame_stack import FrameStack


def lane_numbers(group: Group) -> NDArray[np.intp]:
    """Return the number in the wave of each lane of the group's shape."""
    numbers = group.place[:, None] * LANES + np.arange(LANES)
    return numbers.reshape(group.rows, group.columns)


def save_frame(slots: tuple[int, ...], pc: int, levels: int) -> Step:
    """Return the step that puts registers aside before a call, for the lanes that make it.

    KernelFault for a lane that is `levels` deep already.
    """

    def save(group: Group) -> None:
        shape = (group.rows, group.columns)
        active = np.broadcast_to(True if group.lanes is None else group.lanes, shape)
        lanes = lane_numbers(group)[active]
        stack = _stack(group.wave)
        if lanes.size and int(stack.depth[lanes].max()) >= levels - 1:
            raise too_deep(group.wave.program, pc, levels)
        values = {s: np.broadcast_to(group.frame[s], shape)[active] for s in slots}
        stack.push(lanes, values)

    return save


def too_deep(program: Program, pc: int, levels: int) -> KernelFault:
    """Return the fault of a lane that calls itself when it is `levels` deep."""
    return KernelFault(
        f"{source_line(program.kernel, pc)}: kernel `{program.name}` calls itself "
        f"more than {levels} level{'s' * (levels > 1)} deep"
    )


def restore_frame(slots: tuple[int, ...]) -> Step:
    """Return the step that takes registers back where a call has returned."""

    def restore(group: Group) -> None:
        shape = (group.rows, group.columns)
        active = np.broadcast_to(True if group.lanes is None else group.lanes, shape)
        values = _stack(group.wave).pop(lane_numbers(group)[active], slots)
        for slot, value in zip(slots, values, strict=True):
            whole = np.array(np.broadcast_to(group.frame[slot], shape), order="C")
            whole[active] = value.view(whole.dtype)
            group.frame[slot] = whole

    return restore


def _stack(wave: Wave) -> FrameStack:
    if wave.frames is None:
        wave.frames = FrameStack(wave.warps * LANES)
    return wave.frames
