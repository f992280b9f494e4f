"""What compiled routines are written in: plain Python functions over integers and arrays.

`translate` turns such functions into LLVM assembly. They know 64-bit integers, arrays of smaller
or equal ones (`I32`...; a slice `a[n:]` is a pointer into one), and structures of both; `if`,
`while`, `for ... in range(...)`, `return`, calls of one another. Operands of `//` and `%` must not
be negative. The same functions run as Python, on NumPy arrays, so that a test can look at them.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....native.machine_code import address

U8: TypeAlias = NDArray[np.uint8]
U16: TypeAlias = NDArray[np.uint16]
I32: TypeAlias = NDArray[np.int32]
U32: TypeAlias = NDArray[np.uint32]
I64: TypeAlias = NDArray[np.int64]

ELEMENTS = {
    "U8": ("i8", "zext"),
    "U16": ("i16", "zext"),
    "I32": ("i32", "sext"),
    "U32": ("i32", "zext"),
    "I64": ("i64", ""),
}
"""LLVM's type of an array's elements, and how one becomes 64 bits wide."""


class Struct:
    """Integers, arrays and other structures under names, in 64-bit words that compiled code reads.

    The names are the annotations of a subclass, in order; the word of an array or a structure is
    its address.
    """

    _places: ClassVar[Mapping[str, int]] = {}

    def __init_subclass__(cls) -> None:
        cls._places = {name: number for number, name in enumerate(cls.__annotations__)}
        for name, number in cls._places.items():
            setattr(cls, name, _reader(name, number))

    def __init__(self) -> None:
        words = np.zeros(len(self._places), dtype=np.int64)  # a view of it is faster to index
        self.__dict__.update(_arrays={}, words=words, _view=words.data)

    def __setattr__(self, name: str, value: "int | NDArray[Any] | Struct") -> None:
        own = self.__dict__
        if type(value) is not int and isinstance(value, (np.ndarray, Struct)):
            own["_arrays"][name] = value
            value = value.address if isinstance(value, Struct) else address(value)
        own["_view"][self._places[name]] = value

    @property
    def address(self) -> int:
        """Where its words lie."""
        return address(self.__dict__["words"])


def _reader(name: str, number: int) -> property:
    """What returns a structure's array or structure of this name, or else its integer."""

    def read(structure: Struct) -> Any:
        own = structure.__dict__
        found = own["_arrays"].get(name)
        return own["_view"][number] if found is None else found

    return property(read)


def assembly(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Mark a function whose compiled form is written out: LLVM assembly that defines its name."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__dict__["assembly"] = text
        return function

    return mark


def trailing_zeros(x: int) -> int:
    """Return the place of the lowest one bit."""
    return (x & -x).bit_length() - 1


def invoke(function: int, context: Struct) -> int:
    """Call a compiled function by its address; only compiled code can."""
    raise NotImplementedError
