"""Structures that Python and compiled routines share: named integers and arrays."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeAlias
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from .machine_code import address

U8: TypeAlias = NDArray[np.uint8]
U16: TypeAlias = NDArray[np.uint16]
I32: TypeAlias = NDArray[np.int32]
U32: TypeAlias = NDArray[np.uint32]
I64: TypeAlias = NDArray[np.int64]
"""Arrays of routines are pointers to elements, and so is a slice `a[n:]`."""
Column: TypeAlias = NDArray[Any]
"""An array of a loop, of integers of any width."""


class Struct:
    """Named integers, arrays and structures in 64-bit words that compiled code reads.

    The names are the annotations of a subclass, in order; the word of an array or a structure is
    its address. A subclass of a subclass adds its names behind: it is a structure of both kinds.
    """

    fields: ClassVar[Mapping[str, Any]] = {}
    """The annotation of each name."""
    _places: ClassVar[Mapping[str, int]] = {}
    address: int
    """The address of its words."""

    def __init_subclass__(cls) -> None:
        cls.fields = {**cls.fields, **cls.__annotations__}
        cls._places = {name: number for number, name in enumerate(cls.fields)}
        for name, number in cls._places.items():
            setattr(cls, name, _reader(name, number, cls.fields[name] is int))

    def __init__(self) -> None:
        words = np.zeros(len(self._places), dtype=np.int64)  # a memoryview is faster to index
        self.__dict__.update(_arrays={}, words=words, _view=words.data, address=address(words))

    def __setattr__(self, name: str, value: "int | NDArray[Any] | Struct") -> None:
        own = self.__dict__
        if type(value) is not int and isinstance(value, (np.ndarray, Struct)):
            own["_arrays"][name] = value
            value = value.address if isinstance(value, Struct) else address(value)
        own["_view"][self._places[name]] = value

    def bind(self, binding: "Binding") -> None:
        """Set the fields of a binding."""
        own = self.__dict__
        own["words"][binding.places] = binding.words
        own["_arrays"].update(binding.arrays)

    def copy(self) -> Self:
        """Return a copy with the same integers and arrays."""
        other = object.__new__(type(self))
        words = self.__dict__["words"].copy()
        arrays = dict(self.__dict__["_arrays"])
        own = {"_arrays": arrays, "words": words, "_view": words.data}
        other.__dict__.update(own, address=address(words))
        return other

    def take_fields(self, base: "Struct") -> None:
        """Take all integers and arrays of a structure that this one extends."""
        words = base.__dict__["words"]
        self.__dict__["words"][: len(words)] = words
        self.__dict__["_arrays"].update(base.__dict__["_arrays"])

    def share(self, other: Self, names: Iterable[str]) -> None:
        """Take some arrays of another structure, where they differ."""
        mine, its = self.__dict__["_arrays"], other.__dict__["_arrays"]
        for name in names:
            if mine[name] is not its[name]:
                setattr(self, name, its[name])

    def begin_as(self, other: Self) -> None:
        """Replace all integers and arrays by those of another structure."""
        own = self.__dict__
        own["words"][:] = other.__dict__["words"]
        own["_arrays"] = dict(other.__dict__["_arrays"])


class Binding:
    """Fields of structures of a `kind`, with the addresses of arrays: set together, in a tenth of
    the time.
    """

    def __init__(self, kind: type[Struct], fields: Mapping[str, int | Column | Struct]) -> None:
        made = kind()
        for name, value in fields.items():
            setattr(made, name, value)
        own = made.__dict__
        self.places = np.array([kind._places[name] for name in fields], np.intp)
        self.words = own["words"][self.places]
        self.arrays: dict[str, Any] = own["_arrays"]


class Lender:
    """Lends arrays of bytes: new memory takes a call of the system, and new pages."""

    def __init__(self, most: int) -> None:
        self._free: dict[int, list[memoryview]] = {}
        self._most, self.free_bytes = most, 0

    @contextmanager
    def keep(self, most: int) -> Iterator[None]:
        """Keep up to so many bytes for a while: threads that map memory wait for one another."""
        before, self._most = self._most, most
        try:
            yield
        finally:
            self._most = before
            for free in self._free.values():
                while free and self.free_bytes > before:
                    self.free_bytes -= free.pop().nbytes

    def lend(self, size: int) -> NDArray[np.uint8]:
        """Return an array of bytes, which may hold any."""
        if size < LEAST_LENT:
            return np.empty(size, np.uint8)
        room = 1 << (size - 1).bit_length()
        try:
            owner = self._free.get(room, []).pop()
            self.free_bytes -= room
        except IndexError:
            owner = np.empty(room, np.uint8).data
        lease = np.frombuffer(owner, np.uint8)  # all views of it hold it, and not the owner alone
        finalize(lease, self._take_back, owner).atexit = False
        return lease[:size]

    def _take_back(self, owner: memoryview) -> None:
        if self.free_bytes + owner.nbytes <= self._most:
            self.free_bytes += owner.nbytes
            self._free.setdefault(owner.nbytes, []).append(owner)


LEAST_LENT = 1 << 17
"""Bytes from which memory is worth keeping."""

LENDER = Lender(1 << 26)
"""Memory of columns of rows."""


class Layout:
    """Arrays of these dtypes for structures of a `kind`, side by side in memory, the widest first:
    given together, in a fifth of the time.
    """

    def __init__(self, kind: type[Struct], dtypes: Mapping[str, str]) -> None:
        sizes = [np.dtype(each).itemsize for each in dtypes.values()]
        ends = np.cumsum(sizes).tolist()
        self._spans = list(zip(dtypes.items(), [0, *ends], ends, strict=False))
        self._places = np.array([kind._places[name] for name in dtypes], np.intp)
        self._starts = np.array([0, *ends[:-1]], np.int64)

    def give(self, structure: Struct, count: int) -> dict[str, Column]:
        """Give a structure the addresses of arrays of `count` elements; return the arrays."""
        data = LENDER.lend(count * self._spans[-1][2])
        structure.__dict__["words"][self._places] = address(data) + count * self._starts
        return {
            name: data[count * first : count * last].view(dtype)
            for (name, dtype), first, last in self._spans
        }


def _reader(name: str, number: int, is_integer: bool) -> property:
    """Return a property that reads the array, structure or integer of this name."""

    def read_integer(structure: Struct) -> int:
        value: int = structure.__dict__["_view"][number]
        return value

    def read(structure: Struct) -> Any:
        own = structure.__dict__
        array = own["_arrays"].get(name)
        return own["_view"][number] if array is None else array

    return property(read_integer if is_integer else read)
