"""Global memory as a program asks for it: what is allocated, freed, copied and set."""

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
"""Of cudaMemcpyKind; 0 stands for a set."""

_DEVICE_TO_DEVICE = 3
_BLOCK, _REGION = 2 << 20, 32 << 20
_MALLOC_HEAP = 2
"""cudaLimitMallocHeapSize."""


def _place_rule(size: int, align: int) -> tuple[int, int]:
    """What an allocation's address is a multiple of, and the block whose ends it does not cross.

    Measured on an H200 (driver 580): up to 1 MB allocations share blocks of 2 MB, at multiples of
    512 bytes; larger ones lie at multiples of 2 MB in regions of 32, or from the start of one.
    """
    if align:
        return align, 0
    return (512, _BLOCK) if size <= _BLOCK // 2 else (_BLOCK, _REGION)


class Storage:
    """The program's arrays by address. One without a name gets that of the first parameter of a
    kernel to which it is passed.

    `owner` is the process that is being answered, which arrays belong to that it allocates.
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
        self._sites = Sites()

    @property
    def verbs(self) -> Verbs:
        """What it answers."""
        return {
            "ALLOCATE": self.allocate,
            "FREE": self.free,
            "RESERVE": self.reserve,
            "UNRESERVE": self.unreserve,
            "MAP": self.map,
            "COPIED": self.note_copy,
            "LIBRARY": self.note_library,
            "LIMIT": self.note_limit,
        }

    def note_limit(self, which: int, value: int) -> Answer:
        """Keep how much memory kernels may take by `malloc`, for code that is loaded later."""
        if which == _MALLOC_HEAP and value <= self._most:
            self._recording.memory.heap_bytes = value
        return SUCCESS

    def allocate(
        self, size: int, align: int, name: bytes, stack: bytes, base: int, file: bytes
    ) -> Answer:
        """Reserve memory: at multiples of `align`, or where the driver would put it if it is 0."""
        if self._used + size > self._most:
            return OUT_OF_MEMORY
        made_at = self._sites.name(stack, base, file)
        label = self._recording.new_name(name.decode() or made_at or None)
        try:
            place = self._arena.allocate(size, label, *_place_rule(size, align))
        except CutraceError:
            return OUT_OF_MEMORY
        self._made_at[place.address] = made_at
        self._take(place, is_named=bool(name))
        return (place.address,)

    def _describe(self, place: Allocation) -> Array:
        return replace(describe(place), made_at=self._made_at.get(place.address, ""))

    def _take(self, place: Allocation, is_named: bool) -> None:
        self._used += place.size
        self._owners[place.address] = self.owner
        self._recording.arrays.append(self._describe(place))
        if not is_named:
            self._unnamed.add(place.address)

    def reserve(self, size: int, align: int) -> Answer:
        """Reserve addresses."""
        try:
            return (self._arena.reserve(size, align),)
        except CutraceError:
            return OUT_OF_MEMORY

    def unreserve(self, address: int) -> Answer:
        """Give reserved addresses back."""
        return () if self._arena.unreserve(address) else INVALID_VALUE

    def map(self, address: int, size: int) -> Answer:
        """Put memory at reserved addresses."""
        if self._used + size > self._most:
            return OUT_OF_MEMORY
        place = self._arena.allocate_at(address, size, self._recording.new_name(None))
        if place is None:
            return INVALID_VALUE
        self._take(place, is_named=False)
        return ()

    def free(self, address: int) -> Answer:
        """Give memory back."""
        place = self.find(address)
        if place is None or place.address != address:
            return INVALID_VALUE
        self._used -= place.size
        self._arena.free(place)
        self._unnamed.discard(address)
        self._recording.arrays.remove(self._describe(place))
        self._made_at.pop(address, None)
        del self._owners[address]
        self._describe_textures(place.name, "")
        return ()

    def free_all(self) -> None:
        """Give back what the process has that is being answered: it has ended."""
        for address in [each for each, owner in self._owners.items() if owner == self.owner]:
            self.free(address)

    def note_copy(self, direction: int, size: int, address: int) -> Answer:
        """Keep what the program did to an array."""
        place = self.find(address)
        name = place.name if place else ""
        kind = "copy" if direction else "set"
        self._recording.note(Event(kind, size, _DIRECTIONS.get(direction, ""), name))
        if place and _DIRECTIONS.get(direction) != "DtoH":
            self._recording.memory.mark_written(place)
        return SUCCESS

    def note_library(self, name: bytes, address: int) -> Answer:
        """Keep that a library's call was computed by the program, and what it wrote."""
        place = self.find(address)
        event = Event("library", array=place.name if place else "", name=name.decode())
        self._recording.note(event)
        if place:
            self._recording.memory.mark_written(place)
        return SUCCESS

    def do_for_kernel(self, request: DeviceCopy | DeviceSet) -> None:
        """Copy or set memory as a kernel has asked; KernelFault outside of every array."""
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
        """The array in which an address lies."""
        place = self._arena.find(address)
        return place if place and address < place.address + place.size else None

    def name(self, place: Allocation, base: str) -> Allocation:
        """Call an array so, if it has no name yet and begins there; return it as it is then."""
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
        """Name the array below textures anew; none once it is freed."""
        textures = self._recording.memory.textures
        for number, texture in enumerate(textures):
            if texture.description.array == old:
                described = replace(texture.description, array=new)
                textures[number] = replace(texture, description=described)
