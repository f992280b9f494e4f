"""Device memory: arenas of global, constant and surface memory, and their allocations.

Allocations start at multiples of 256 bytes, in order, from a fixed base, with a guard gap between
them. So the same calls give the same addresses on every machine, and an index past the end of one
array never reaches the next. Global memory is mapped in pages, as on a chip: up to the end of the
last allocation's page there are bytes, zeros until written.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ....traces.schema import MAPPED_BYTES, Space
from .device_runtime import BYTES as HEAP_BYTES
from .device_runtime import DeviceLaunches, Heap
from .surface import Surface
from .texture import Texture

ALIGNMENT = 256
CONSTANT_BYTES = 64 * 1024
GLOBAL_BASE = 0x7_0000_0000
WINDOWS: Mapping[Space, tuple[int, int]] = {
    Space.SHARED: (0x1_0000_0000, 0x1_0100_0000),
    Space.LOCAL: (0x0200_0000, 0x0300_0000),
    Space.CONST: (0x0300_0000, 0x0400_0000),
    Space.GLOBAL: (GLOBAL_BASE, 1 << 62),
}
"""The window of each state space in generic addresses: first address, end. As on the hardware the
lower half of a generic address of shared memory is the address there: programs cut it off."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """An allocation of device memory. `address` is as a kernel sees it: generic for global memory,
    an offset in the bank for constants.
    """

    name: str
    address: int
    size: int
    space: Space = Space.GLOBAL
    itemsize: int = 0
    shape: tuple[int, ...] = ()
    pitch: int = 0

    @property
    def offset(self) -> int:
        """The address in the window of its space, as in the trace."""
        return self.address - (GLOBAL_BASE if self.space == Space.GLOBAL else 0)


class ReservedBytes(Protocol):
    """Zeroed bytes that the caller reserved for an arena: they do not move or grow."""

    bytes: NDArray[np.uint8]

    def wipe(self, start: int, end: int) -> None:
        """Zero these bytes; their contents are no longer needed."""


class Arena:
    """The bytes of one state space, and its allocations in order of address.

    Between allocations there are `guard` bytes; memory is mapped in multiples of `page` bytes. The
    bytes are those of `buffer` if given, else they grow on demand. The first `before` bytes, whole
    pages, are always mapped and never allocated.
    """

    def __init__(
        self, space: Space, base: int, guard: int, limit: int, is_watched: bool = False,
        page: int = 1, buffer: ReservedBytes | None = None, before: int = 0,
    ) -> None:  # fmt: skip
        self.space = space
        self.base = base
        self.bytes: NDArray[np.uint8] = (
            np.zeros(1 << 16, np.uint8) if buffer is None else buffer.bytes
        )
        self.written = np.zeros(1 << 16, dtype=np.uint8) if is_watched else None
        self.allocations: list[Allocation] = []
        self.mapped = before
        """Bytes from `base` up to the end of the last page that was ever mapped."""
        self._guard = guard
        self._page = page
        self._limit = limit if buffer is None else buffer.bytes.size - max(guard, page)
        self._wipe = self._write_zeros if buffer is None else buffer.wipe
        self._starts: list[int] = []
        self._holes: list[tuple[int, int]] = []
        self._reserved: dict[int, int] = {}
        self._bounds: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        self._mapped_ranges: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
        self._end = self._before = before
        self._grow(before)

    def allocate(self, size: int, name: str, align: int, block: int = 0, itemsize: int = 0,
                 shape: tuple[int, ...] = (), pitch: int = 0) -> Allocation:  # fmt: skip
        """Allocate `size` zeroed bytes; raise CutraceError if the space or the machine has no room.

        They cross no multiple of `block`; larger allocations begin at one. The gap before them
        stays free for smaller ones.
        """
        start = self._take_hole(size, align, block)
        if start is None:
            start = self._take_end(size, name, align, block)
        allocation = Allocation(name, self.base + start, size, self.space, itemsize, shape, pitch)
        self._insert(allocation)
        return allocation

    def _insert(self, allocation: Allocation) -> None:
        self._bounds = self._mapped_ranges = None
        place = bisect_right(self._starts, allocation.address)
        self.allocations.insert(place, allocation)
        self._starts.insert(place, allocation.address)

    def reserve(self, size: int, align: int) -> int:
        """Reserve an address range for `allocate_at`; raise CutraceError if there is no room."""
        start = self._take_hole(size, align)
        if start is None:
            start = self._take_end(size, "reserved addresses", align)
        self._reserved[start] = size
        return self.base + start

    def allocate_at(self, address: int, size: int, name: str) -> Allocation | None:
        """Allocate zeroed bytes in a reserved range; None if outside of all ranges, or if
        occupied.
        """
        start = address - self.base
        before = self.find(address + size - 1)
        is_free = before is None or before.address + before.size <= address
        if not is_free or not self._is_reserved(start, size):
            return None
        allocation = Allocation(name, address, size, self.space)
        self._clear(start, start + size)
        self._insert(allocation)
        return allocation

    def _is_reserved(self, start: int, size: int) -> bool:
        return any(
            first <= start and start + size <= first + length
            for first, length in self._reserved.items()
        )

    def unreserve(self, address: int) -> bool:
        """Free a reserved range; False if none begins there or an allocation is in it."""
        start = address - self.base
        size = self._reserved.get(start, 0)
        last = self.find(address + size - 1)
        if not size or (last and last.address + last.size > address):
            return False
        del self._reserved[start]
        self._give(start, start + size + self._guard)
        return True

    def _give(self, start: int, end: int) -> None:
        self._holes.append((start, end))
        self._holes = _joined(self._holes)

    def free(self, allocation: Allocation) -> None:
        """Free an allocation and zero its bytes; a later allocation may reuse them."""
        place = bisect_right(self._starts, allocation.address) - 1
        del self.allocations[place], self._starts[place]
        self._bounds = self._mapped_ranges = None
        start = allocation.address - self.base
        self._clear(start, start + allocation.size)
        # A reserved range stays reserved: only `allocate_at` may use it again.
        if not self._is_reserved(start, allocation.size):
            self._give(start, start + allocation.size + self._guard)

    def _write_zeros(self, start: int, end: int) -> None:
        self.bytes[start:end] = 0

    def _take_hole(self, size: int, align: int, block: int = 0) -> int | None:
        """Return the first free hole of `size` bytes, if any (first fit)."""
        for number, (start, end) in enumerate(self._holes):
            begin = _fit(start, size, align, block)
            tail_start = begin + size + self._guard
            if tail_start <= end:
                remainder = ((start, begin), (tail_start, end))
                self._holes[number : number + 1] = [each for each in remainder if each[0] < each[1]]
                self._clear(begin, tail_start)
                return begin
        return None

    def _take_end(self, size: int, name: str, align: int, block: int = 0) -> int:
        """Return a place behind all allocations; raise CutraceError if there is no room."""
        start = _fit(self._end, size, align, block)
        if start + size > self._limit:
            raise CutraceError(
                f"`{name}` needs {size} bytes of {self.space.name.lower()} memory; "
                f"{max(self._limit - start, 0)} of {self._limit} are free"
            )
        mapped = -(-(start + size) // self._page) * self._page
        try:
            self._grow(max(start + size + self._guard, mapped))
        except MemoryError:
            raise CutraceError(
                f"`{name}` needs {size} bytes of {self.space.name.lower()} memory, and this "
                "machine has not got them: give it fewer elements"
            ) from None
        if block and start > self._end:
            self._give(self._end, start)
        self._end = start + size + self._guard
        self._clear(start, min(start + size, self.mapped))
        self.mapped = max(self.mapped, mapped)
        return start

    def _clear(self, start: int, end: int) -> None:
        """Zero bytes that were mapped before: a kernel may have written there."""
        if end > start:
            self._wipe(start, end)
            if self.written is not None:
                self.written[start:end] = 0

    @property
    def used(self) -> NDArray[np.uint8]:
        """The bytes of all allocations and gaps; valid until the next allocation."""
        return self.bytes[: self._end]

    def widen(self, size: int) -> None:
        """Raise the limit by `size` bytes."""
        self._limit += size

    def _grow(self, needed: int) -> None:
        if needed > self.bytes.size:
            self.bytes = _grown(self.bytes, max(needed, 2 * self.bytes.size))
        if self.written is not None and needed > self.written.size:
            self.written = _grown(self.written, max(needed, 2 * self.written.size))

    def rename(self, allocation: Allocation, name: str) -> Allocation:
        """Rename an allocation; return the new one."""
        place = bisect_right(self._starts, allocation.address) - 1
        self.allocations[place] = replace(allocation, name=name)
        return self.allocations[place]

    def find(self, address: int) -> Allocation | None:
        """Return the last allocation that starts at or below `address`, if any."""
        place = bisect_right(self._starts, address)
        return self.allocations[place - 1] if place else None

    def view(self, allocation: Allocation) -> NDArray[np.uint8]:
        """Return the allocation's bytes; valid until the next allocation."""
        start = allocation.address - self.base
        return self.bytes[start : start + allocation.size]

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the starts and the ends of the allocations, each with a final 0."""
        if self._bounds is None:
            ends = [a.address + a.size for a in self.allocations]
            self._bounds = np.array([*self._starts, 0], np.int64), np.array([*ends, 0], np.int64)
        return self._bounds

    def mapped_ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the starts and the ends of the mapped ranges, ascending, each with a final 0.

        Mapped are the bytes before all allocations, and the pages of the allocations.
        """
        if self._mapped_ranges is None:
            self._mapped_ranges = self._find_mapped_ranges()
        return self._mapped_ranges

    def _find_mapped_ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        starts, ends = (each[:-1] - self.base for each in self.bounds())
        starts, ends = np.append(0, starts), np.append(self._before, ends)
        first, last = starts // self._page, -(-ends // self._page)
        first, last = first[last > first], np.maximum.accumulate(last[last > first])
        # Coalesce pages: a range opens where its first page is behind all pages so far, and closes
        # before the next range opens.
        opens = np.append(True, first[1:] > last[:-1])[: len(first)]
        closes = np.append(opens[1:], True)[: len(first)]
        return (
            np.append(first[opens] * self._page + self.base, 0),
            np.append(last[closes] * self._page + self.base, 0),
        )

    def view_written(self, allocation: Allocation) -> NDArray[np.uint8] | None:
        """Return a map of the allocation, 1 for each written byte; None if not watched.

        Valid until the next allocation.
        """
        start = allocation.address - self.base
        return None if self.written is None else self.written[start : start + allocation.size]


def _fit(start: int, size: int, align: int, block: int) -> int:
    """Return the first multiple of `align` from `start` on where the bytes cross no multiple
    of `block`.
    """
    begin = -(-start // align) * align
    if block and begin % block + size > block:
        begin = -(-begin // block) * block
    return begin


def _joined(holes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return holes in order, adjacent ones coalesced."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(holes):
        if joined and joined[-1][1] >= start:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _grown(old: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    grown = np.zeros(size, dtype=np.uint8)
    grown[: old.size] = old
    return grown


class Memory:
    """All device memory of a session: `global_`, the constant bank, textures and surfaces.

    `is_watched` keeps a map of the written bytes of global memory. `buffers` are the bytes of some
    spaces, for a program; its constant bank may then be larger than a device's, and a page of
    global memory precedes the first array, as the driver's own does.
    """

    def __init__(
        self, is_watched: bool = False, buffers: Mapping[Space, ReservedBytes] | None = None
    ) -> None:
        buffers_by_space = buffers or {}
        self.global_ = Arena(
            Space.GLOBAL, GLOBAL_BASE, ALIGNMENT, 1 << 40, is_watched, MAPPED_BYTES,
            buffers_by_space.get(Space.GLOBAL),
            MAPPED_BYTES if Space.GLOBAL in buffers_by_space else 0,
        )  # fmt: skip
        self.const = Arena(
            Space.CONST, 0, 0, CONSTANT_BYTES, buffer=buffers_by_space.get(Space.CONST)
        )
        self.surface = Arena(
            Space.SURFACE, 0, ALIGNMENT, 1 << 40, buffer=buffers_by_space.get(Space.SURFACE)
        )
        self.textures: list[Texture] = []
        self.surfaces: list[Surface] = []
        self.heap: Heap | None = None
        """The allocator of `malloc`, once a module that calls it is loaded."""
        self.heap_bytes = HEAP_BYTES
        self.device_launches = DeviceLaunches()
        self._heap_place: Allocation | None = None

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        """All allocations: global memory first, each space in order of address."""
        return (*self.global_.allocations, *self.const.allocations)

    def arena(self, space: Space) -> Arena:
        """Return the arena of GLOBAL, CONST or SURFACE."""
        own = {Space.CONST: self.const, Space.SURFACE: self.surface}
        return own.get(space, self.global_)

    def allocate(self, size: int, name: str, itemsize: int = 0,
                 shape: tuple[int, ...] = (), pitch: int = 0) -> Allocation:  # fmt: skip
        """Allocate zeroed global memory at a multiple of 256 bytes."""
        return self.global_.allocate(
            size, name, ALIGNMENT, itemsize=itemsize, shape=shape, pitch=pitch
        )

    def view(self, allocation: Allocation) -> NDArray[np.uint8]:
        """Return an allocation's bytes to read and write; valid until the next allocation."""
        return self.arena(allocation.space).view(allocation)

    def view_written(self, allocation: Allocation) -> NDArray[np.uint8] | None:
        """Return a map of the allocation, 1 for each written byte; None if not watched.

        Valid until the next allocation.
        """
        return self.arena(allocation.space).view_written(allocation)

    def mark_written(self, allocation: Allocation) -> None:
        """Mark all of an allocation's bytes as written."""
        written = self.view_written(allocation)
        if written is not None:
            written[:] = 1

    def add_texture(self, texture: Texture) -> int:
        """Register a texture; return its handle, the 64-bit number that kernels take."""
        self.textures.append(texture)
        return len(self.textures)

    def add_surface(self, surface: Surface) -> Allocation:
        """Allocate zeroed memory for a surface, set its address, and register it."""
        bytes_, rows = surface.texel_bytes, (surface.slices, surface.rows, surface.extent[0])
        place = self.surface.allocate(
            surface.nbytes, surface.name, ALIGNMENT, 0, bytes_, rows, surface.pitch
        )
        self.surfaces.append(replace(surface, address=place.address))
        return place

    def set_heap_aside(self) -> Allocation:
        """Return the device heap, allocated once."""
        if self._heap_place is None:
            self._heap_place = self.allocate(self.heap_bytes, "malloc heap")
            self.heap = Heap(self._heap_place)
        return self._heap_place


class Shadow:
    """Maps of written bytes: of a wave's shared and local memory, and of global memory."""

    def __init__(self, shared: NDArray[np.uint8], local: NDArray[np.uint8], memory: Memory) -> None:
        self._own = {Space.SHARED: np.zeros_like(shared), Space.LOCAL: np.zeros_like(local)}
        self._memory = memory

    def of(self, space: Space) -> NDArray[np.uint8] | None:
        """Return the map of a space, None if it is not watched."""
        return self._memory.global_.written if space == Space.GLOBAL else self._own.get(space)


MOST_BYTES = 1 << 28
"""Maximum size of a cached free buffer; larger ones are freed with their session."""


class Sized(Protocol):
    """An object with a size in bytes."""

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""


T = TypeVar("T", bound=Sized)


class BufferPool(Generic[T]):
    """Lends each session, keyed by its memory, one buffer, made by `make` or reused.

    At most one free buffer is cached.
    """

    _all: ClassVar[list["BufferPool[Any]"]] = []

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lent: WeakKeyDictionary[Memory, T] = WeakKeyDictionary()
        self._kept: list[T] = []
        self._all.append(self)

    def of(self, memory: Memory) -> T:
        """Return the session's buffer; a reused one still has the previous session's contents."""
        instance = self._lent.get(memory)
        if instance is None:
            instance = self._lent[memory] = self._take()
        return instance

    def _take(self) -> T:
        try:
            return self._kept.pop()
        except IndexError:  # empty, or another thread took the last one
            return self._make()

    @classmethod
    def end(cls, memory: Memory) -> None:
        """Take back the buffers of a session that launches nothing more."""
        for each in cls._all:
            instance = each._lent.pop(memory, None)
            if instance is not None and instance.nbytes <= MOST_BYTES:
                each._kept[:] = [instance]
