"""Recursion: the registers that a call must find again, and local memory, by depth of each lane.

A function that can call itself, directly or through others, has one set of register slots. What is
live after such a call is put aside before it, in a stack for each lane, and taken back where the
call returns; its local variables lie further up for each level.
"""

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ....errors import KernelFault
from ...ptx.kernel import Kernel
from ..array.program import Program, Step
from ..kernel.function_pointer import calls
from ..kernel.same_kernel import KERNELS, Alike, alike
from ..lanes import LANES, Array
from ..memory.fault import source_line

if TYPE_CHECKING:
    from ..array.group import Group
    from ..array.wave import Wave

DEEPEST = 256
"""Levels of recursion that a lane has room for."""

LOCAL_BYTES = 512 * 1024
"""Local memory that a lane may have in all its levels, as on every device."""


def levels_within(frame: int) -> int:
    """Return how many levels of `frame` bytes of local variables a lane has room for."""
    return min(DEEPEST, max(LOCAL_BYTES // max(frame, 1), 1))


def recursive_functions(kernel: Kernel) -> frozenset[int]:
    """Return the indices of the functions that can call themselves."""
    return _recursive(alike(kernel))


@lru_cache(maxsize=KERNELS)
def _recursive(like: Alike) -> frozenset[int]:
    import networkx as nx

    kernel = like.kernel
    graph: nx.DiGraph[int] = nx.DiGraph((caller, callee) for caller, _, callee in calls(kernel))
    groups = nx.strongly_connected_components(graph)
    return frozenset(f for group in groups for f in group if len(group) > 1 or graph.has_edge(f, f))


class FrameStack:
    """What each lane of a wave has put aside: values by slot and depth, (levels, lanes)."""

    def __init__(self, lanes: int) -> None:
        self.depth: NDArray[np.int32] = np.zeros(lanes, dtype=np.int32)
        self._saved: dict[int, Array] = {}

    def push(self, lanes: NDArray[np.intp], values: dict[int, Array]) -> None:
        """Put aside values (n,) of `lanes` (n,), one array a slot, and go a level deeper."""
        depth = self.depth[lanes]
        for slot, value in values.items():
            self._room(slot, int(depth.max()) + 1, value)[depth, lanes] = value
        self.depth[lanes] += 1

    def pop(self, lanes: NDArray[np.intp], slots: tuple[int, ...]) -> list[Array]:
        """Come up a level; return what `lanes` (n,) had put aside, an array (n,) a slot."""
        self.depth[lanes] -= 1
        depth = self.depth[lanes]
        return [self._saved[slot][depth, lanes] for slot in slots]

    def _room(self, slot: int, levels: int, value: Array) -> Array:
        saved = self._saved.get(slot)
        if saved is None or len(saved) < levels:
            grown = np.zeros((max(2 * levels, 4), len(self.depth)), dtype=value.dtype)
            if saved is not None:
                grown[: len(saved)] = saved
            saved = self._saved[slot] = grown
        return saved.view(value.dtype)


def lane_numbers(group: "Group") -> NDArray[np.intp]:
    """Return the number in the wave of each lane of the group's shape."""
    numbers = group.place[:, None] * LANES + np.arange(LANES)
    return numbers.reshape(group.rows, group.columns)


def save_frame(slots: tuple[int, ...], pc: int, levels: int) -> Step:
    """Return the step that puts registers aside before a call, for the lanes that make it.

    KernelFault for a lane that is `levels` deep already.
    """

    def save(group: "Group") -> None:
        shape = (group.rows, group.columns)
        active = np.broadcast_to(True if group.lanes is None else group.lanes, shape)
        lanes = lane_numbers(group)[active]
        stack = _stack(group.wave)
        if lanes.size and int(stack.depth[lanes].max()) >= levels - 1:
            raise too_deep(group.wave.program, pc, levels)
        values = {s: np.broadcast_to(group.frame[s], shape)[active] for s in slots}
        stack.push(lanes, values)

    return save


def too_deep(program: "Program", pc: int, levels: int) -> KernelFault:
    """Return the fault of a lane that calls itself when it is `levels` deep."""
    return KernelFault(
        f"{source_line(program.kernel, pc)}: kernel `{program.name}` calls itself "
        f"more than {levels} level{'s' * (levels > 1)} deep"
    )


def restore_frame(slots: tuple[int, ...]) -> Step:
    """Return the step that takes registers back where a call has returned."""

    def restore(group: "Group") -> None:
        shape = (group.rows, group.columns)
        active = np.broadcast_to(True if group.lanes is None else group.lanes, shape)
        values = _stack(group.wave).pop(lane_numbers(group)[active], slots)
        for slot, value in zip(slots, values, strict=True):
            whole = np.array(np.broadcast_to(group.frame[slot], shape), order="C")
            whole[active] = value.view(whole.dtype)
            group.frame[slot] = whole

    return restore


def _stack(wave: "Wave") -> FrameStack:
    if wave.frames is None:
        wave.frames = FrameStack(wave.warps * LANES)
    return wave.frames
