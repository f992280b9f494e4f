"""One access of memory: its checks and rows, and the lanes' bytes.

`reach` (reach.py) checks the lanes of a group, writes their rows and points them at their bytes;
`lane_move.py` moves these.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ....base.dataclass import dataclass
from ....jit.loop_codegen import compile_routines
from ....jit.machine_code import address
from ....traces.schema import Space
from ..memory.memory import GLOBAL_BASE, WINDOWS
from ..ops.lanes import LANES, Array, Bits, Mask, pack, unpack
from ..warp.program import Group
from .bounds import fault_of, uninitialized
from .cluster import GENERIC
from .lane_move import load_lanes, store_lanes
from .reach import reach

Fetch: TypeAlias = Callable[[list[Array]], Array]
"""Reads a value from a frame, as one NumPy type."""


@dataclass(frozen=True, slots=True)
class Access:
    """One memory instruction: `space` None is generic; `count` elements of `dtype` per lane.

    A hidden one writes no rows: it fetches the handle behind a texture reference, or a function's
    parameter. A narrow one has 32-bit addresses, the low half of a global address
    (`.address_size 32`).
    """

    pc: int
    position: int
    space: Space | None
    dtype: np.dtype[Any]
    count: int
    address: Fetch
    offset: int
    guard: Fetch | None
    part: int = 0
    hidden: bool = False
    narrow: bool = False

    @property
    def width(self) -> int:
        """Bytes per lane."""
        return self.dtype.itemsize * self.count

    def addresses(self, group: Group, value: Array) -> Array:
        """Return the address of each lane of a group, (warps, 32), from the base value."""
        addresses = as_addresses(add_offset(value, self.offset))
        if self.narrow:
            addresses = addresses + np.where(self.is_global(addresses), GLOBAL_BASE, 0)
        shape = group.shape
        if addresses.shape == shape:
            return np.ascontiguousarray(addresses)
        return np.array(np.broadcast_to(addresses, shape), order="C")

    def is_global(self, addresses: Array) -> Mask:
        """Return which addresses are of global memory."""
        if self.space is not None:
            return np.full((1, 1), self.space == Space.GLOBAL)
        inside = [(addresses >= start) & (addresses < end) for start, end in _WINDOWS]
        outside: Mask = ~np.logical_or.reduce(inside)
        return outside


_WINDOWS = (*(WINDOWS[space] for space in (Space.SHARED, Space.LOCAL, Space.CONST)), GENERIC)


def as_addresses(value: Array) -> Array:
    """Return the bits of a 32- or 64-bit register as int64: 32-bit values are unsigned."""
    if value.dtype.itemsize == 8:
        return value.view(np.int64)
    return value.view(np.uint32).astype(np.int64)


def add_offset(value: Array, delta: int) -> Array:
    """Return a register's value plus `delta`, wrapped to the register's width."""
    if not delta:
        return value
    bits = np.dtype(f"u{value.dtype.itemsize}")
    further: Array = value.view(bits) + bits.type(delta & int(np.iinfo(bits).max))
    return further


class Reached:
    """The bytes that the lanes of a group access: a pointer for each of the `lanes`, one mask per
    warp, which stays valid until the next access.
    """

    def __init__(self, group: Group, lanes: Bits) -> None:
        self._machine = group.wave.machine
        self.pointers, self.lanes = self._machine.pointers, lanes

    def mark_written(self, access: Access) -> None:
        """Mark the bytes that the lanes store as written."""
        if self._machine.is_watched:
            watched, mark = self._watched(), _mark(access.dtype)
            for element in range(access.count):
                store_lanes(self._machine.written_at, watched, element, access.dtype, mark)

    def require_written(self, group: Group, access: Access, addresses: Array) -> None:
        """Raise KernelFault if a lane loads an uninitialized byte."""
        if not self._machine.is_watched:
            return
        watched, mark = self._watched(), _mark(access.dtype)
        missing = np.zeros(group.shape, np.bool_)
        for element in range(access.count):
            written = load_lanes(self._machine.written_at, watched, element, access.dtype)
            missing |= written != mark
        missing &= unpack(watched)
        if missing.any():
            lane = int(missing.argmax())
            where = access.space, int(addresses.reshape(-1)[lane])
            raise uninitialized(group, access.pc, access.width, where, lane)

    def _watched(self) -> Bits:
        """Return the lanes whose bytes have a map of the written ones."""
        places = self._machine.written_at[: len(self.lanes) * LANES].reshape(-1, LANES)
        return self.lanes & pack(places != 0)


def _mark(dtype: np.dtype[Any]) -> Array:
    """Return an element with all bytes 1, (1, 1)."""
    return np.frombuffer(b"\1" * dtype.itemsize, dtype).reshape(1, 1)


def read(group: Group, lanes: Mask | None, access: Access, value: Array) -> list[Array]:
    """Load under `lanes`, record the rows, and return `count` arrays of elements."""
    addresses = access.addresses(group, value)
    reached = resolve(group, lanes, access, addresses)
    reached.require_written(group, access, addresses)
    pointers, dtype = reached.pointers, access.dtype
    return [load_lanes(pointers, reached.lanes, each, dtype) for each in range(access.count)]


def write(
    group: Group, lanes: Mask | None, access: Access, value: Array, values: list[Array]
) -> None:
    """Store `count` arrays of elements under `lanes`, and record the rows."""
    reached = resolve(group, lanes, access, access.addresses(group, value))
    for element, stored in enumerate(values):
        store_lanes(reached.pointers, reached.lanes, element, access.dtype, stored)
    reached.mark_written(access)


def resolve(group: Group, lanes: Mask | None, access: Access, addresses: Array) -> Reached:
    """Check the lanes, record their rows, and return their bytes; KernelFault for the first lane
    at fault.
    """
    wave = group.wave
    m, rows = wave.machine, wave.rows.accesses
    masks = group.active if lanes is None or lanes is group.lanes else group.pack(lanes)
    m.reach_lanes[: len(masks)] = masks
    place, space = address(addresses), int(access.space or 0)
    left, (take_lanes,) = 1, compile_routines(reach)
    while left:
        rows.reserve_more(len(masks))
        left = take_lanes(
            m.address, place, LANES, 0, 0, space, access.pc, access.position, access.width,
            access.part, access.hidden, 0, m.sites,
        )  # fmt: skip
    if m.fault_site >= 0:
        raise fault_of(wave)
    return Reached(group, masks)
