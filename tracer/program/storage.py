"""Global memory of a program: allocations, frees, copies and sets."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...base.errors import CutraceError, KernelFault
from ...traces.schema import Array, Event
from ..session.array import describe
from ..simt.memory.device_runtime import DeviceCopy, DeviceSet
from ..simt.memory.memory import Allocation
from .session import ProgramSession
from .sites import Sites
from .wire import INVALID_VALUE, OUT_OF_MEMORY, SUCCESS, Answer, Verbs

_DIRECTIONS = {1: "HtoD", 2: "DtoH", 3: "DtoD"}
"""Values of cudaMemcpyKind; 0 means a set."""

_DEVICE_TO_DEVICE = 3
MANAGED, PINNED = 2, 3
PLACES = {MANAGED: "managed", PINNED: "pinned"}
"""Numbers of `enum place`, and what the trace says of memory that is not the device's."""
MOVED = "moved"
"""What the trace says of managed memory that a launch was given before."""
_BLOCK, _REGION = 2 << 20, 32 << 20
_MALLOC_HEAP = 2
"""cudaLimitMallocHeapSize."""


def _place_rule(size: int, align: int) -> tuple[int, int]:
    """Return the alignment of an allocation, and the block size that it must not straddle.

    Measured on an H200 (driver 580): allocations up to 1 MB share blocks of 2 MB, at multiples of
    512 bytes; larger ones are aligned to 2 MB within regions of 32 MB, or start at one.
    """
    if align:
        return align, 0
    return (512, _BLOCK) if size <= _BLOCK // 2 else (_BLOCK, _REGION)


class Storage:
    """The program's arrays by address.

    An array without a name gets that of the first kernel parameter that points to it. `owner`
    is the process being served; arrays that it allocates belong to it.
    """

    def __init__(self, session: ProgramSession, most_bytes: int) -> None:
        self._recording = session.recording
        self._arena = session.recording.memory.global_
        self._most = most_bytes
        self._used = 0
        self.owner = 0
        self._owners: dict[int, int] = {}
        self._unnamed: set[int] = set()
        self._made_at: dict[int, str] = {}
        self._memory: dict[int, str] = {}
        self._sites = Sites()

    @property
    def verbs(self) -> Verbs:
        """The handlers of its messages."""
        return {
            "ALLOCATE": self.allocate,
            "FREE": self.free,
            "RESERVE": self.reserve,
            "UNRESERVE": self.unreserve,
            "MAP": self.map,
            "COPIED": self.note_copy,
            "LIBRARY": self.note_library,
            "LIMIT": self.note_limit,
            "NAME": self.note_name,
        }

    def note_limit(self, which: int, value: int) -> Answer:
        """Set the size of the device-side `malloc` heap for modules that are loaded later."""
        if which == _MALLOC_HEAP and value <= self._most:
            self._recording.memory.heap_bytes = value
        return SUCCESS

    def allocate(
        self, size: int, align: int, name: bytes, stack: bytes, base: int, file: bytes, place: int
    ) -> Answer:
        """Allocate memory aligned to `align`, or with the driver's own placement if it is 0."""
        if self._used + size > self._most:
            return OUT_OF_MEMORY
        made_at = self._sites.name(stack, base, file)
        label = self._recording.new_name(name.decode() or made_at or None)
        try:
            taken = self._arena.allocate(size, label, *_place_rule(size, align))
        except CutraceError:
            return OUT_OF_MEMORY
        self._made_at[taken.address] = made_at
        if kind := PLACES.get(place):
            self._memory[taken.address] = kind
        self._take(taken, is_named=bool(name))
        return (taken.address,)

    def _describe(self, place: Allocation) -> Array:
        address = place.address
        made_at, memory = self._made_at.get(address, ""), self._memory.get(address, "")
        return replace(describe(place), made_at=made_at, memory=memory)

    def note_use(self, names: Collection[object]) -> None:
        """Note that a launch was given arrays: the pages of managed ones are on the device now."""
        for number, array in enumerate(self._recording.arrays):
            if array.memory == PLACES[MANAGED] and array.name in names:
                self._recording.arrays[number] = replace(array, memory=MOVED)
                self._memory[self._arena.base + array.offset] = MOVED

    def _take(self, place: Allocation, is_named: bool) -> None:
        self._used += place.size
        self._owners[place.address] = self.owner
        self._recording.arrays.append(self._describe(place))
        if not is_named:
            self._unnamed.add(place.address)

    def reserve(self, size: int, align: int) -> Answer:
        """Reserve address space."""
        try:
            return (self._arena.reserve(size, align),)
        except CutraceError:
            return OUT_OF_MEMORY

    def unreserve(self, address: int) -> Answer:
        """Release reserved address space."""
        return () if self._arena.unreserve(address) else INVALID_VALUE

    def map(self, address: int, size: int) -> Answer:
        """Map memory at reserved addresses."""
        if self._used + size > self._most:
            return OUT_OF_MEMORY
        place = self._arena.allocate_at(address, size, self._recording.new_name(None))
        if place is None:
            return INVALID_VALUE
        self._take(place, is_named=False)
        return ()

    def free(self, address: int) -> Answer:
        """Free memory."""
        place = self.find(address)
        if place is None or place.address != address:
            return INVALID_VALUE
        self._used -= place.size
        self._arena.free(place)
        self._unnamed.discard(address)
        self._recording.arrays.remove(self._describe(place))
        self._made_at.pop(address, None)
        self._memory.pop(address, None)
        del self._owners[address]
        self._describe_textures(place.name, "")
        return ()

    def free_all(self) -> None:
        """Free all arrays of the process being served: it has exited."""
        for address in [each for each, owner in self._owners.items() if owner == self.owner]:
            self.free(address)

    def note_copy(self, direction: int, size: int, address: int) -> Answer:
        """Record a copy or set by the program in the trace."""
        place = self.find(address)
        name = place.name if place else ""
        kind = "copy" if direction else "set"
        self._recording.note(Event(kind, size, _DIRECTIONS.get(direction, ""), name))
        if place and _DIRECTIONS.get(direction) != "DtoH":
            self._recording.memory.mark_written(place)
        return SUCCESS

    def note_name(self, address: int, name: bytes) -> Answer:
        """Name the array that begins at an address, unless it has a name."""
        place = self.find(address)
        if place and place.address == address:
            self.name(place, name.decode(errors="replace"))
        return SUCCESS

    def note_library(self, name: bytes, address: int) -> Answer:
        """Record that a library call was computed on the host, and the array that it wrote."""
        place = self.find(address)
        event = Event("library", array=place.name if place else "", name=name.decode())
        self._recording.note(event)
        if place:
            self._recording.memory.mark_written(place)
        return SUCCESS

    def do_for_kernel(self, request: DeviceCopy | DeviceSet) -> None:
        """Perform a copy or set for a kernel; raise KernelFault outside of every array."""
        to = self._bytes(request.to, request.size)
        if isinstance(request, DeviceSet):
            to[:] = request.value
            self.note_copy(0, request.size, request.to)
        else:
            to[:] = self._bytes(request.source, request.size).copy()
            self.note_copy(_DEVICE_TO_DEVICE, request.size, request.to)

    def _bytes(self, address: int, size: int) -> NDArray[np.uint8]:
        place = self.find(address)
        if place is None or address + size > place.address + place.size:
            raise KernelFault(
                f"a copy or set that the kernel asked for takes {size} bytes at global address "
                f"{address:#x}, outside of every array", "outside",
            )  # fmt: skip
        start = address - self._arena.base
        return self._arena.bytes[start : start + size]

    def find(self, address: int) -> Allocation | None:
        """Return the array that contains an address."""
        place = self._arena.find(address)
        return place if place and address < place.address + place.size else None

    def name(self, place: Allocation, base: str) -> Allocation:
        """Name an array that has no name and begins at `base`; return the updated allocation."""
        if place.address not in self._unnamed:
            return place
        self._unnamed.discard(place.address)
        new = self._recording.new_name(base)
        self._recording.trace.rename(place.name, new)
        self._describe_textures(place.name, new)
        number = self._recording.arrays.index(self._describe(place))
        renamed = self._arena.rename(place, new)
        self._recording.arrays[number] = self._describe(renamed)
        return renamed

    def _describe_textures(self, old: str, new: str) -> None:
        """Rename the array under textures; an empty name means that it was freed."""
        textures = self._recording.memory.textures
        for number, texture in enumerate(textures):
            if texture.description.array == old:
                described = replace(texture.description, array=new)
                textures[number] = replace(texture, description=described)
