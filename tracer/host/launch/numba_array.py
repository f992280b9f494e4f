"""Arrays as Numba's kernels take them: one argument, for which PTX has many parameters.

Numba's PTX names tell the arguments' types: `Array<float, 2, C, mutable, aligned>`. An array is
handed over member by member, 64 bits each: two pointers that kernels leave alone, the number of
elements, the bytes of one, the data, the shape and the strides in bytes (ArrayModel in
numba/core/datamodel/models.py).
"""

import re

from ..array import DeviceArray

_ARRAY = re.compile(r"Array<(.+), (\d+), [ACF], \w+, \w+>")
_DATA, _BEFORE_SHAPE = 4, 5


def array_of(c_type: str) -> tuple[str, int]:
    """The elements' C type and the dimensions of one of Numba's arrays; `("", 0)` for another."""
    found = _ARRAY.fullmatch(c_type)
    return (found[1], int(found[2])) if found else ("", 0)


def count_words(c_type: str) -> int:
    """How many parameters of PTX such an argument takes: 7 for an array of one dimension."""
    _, dimensions = array_of(c_type)
    return _BEFORE_SHAPE + 2 * dimensions if dimensions else 1


def unfold(array: DeviceArray) -> bytes:
    """The members of an array, as a kernel of Numba takes them."""
    strides = array.elements().strides
    members = (0, 0, array.size, array.dtype.itemsize, array.address, *array.shape, *strides)
    return b"".join(member.to_bytes(8, "little") for member in members)


def data_address(members: bytes) -> int:
    """Where the elements of an array lie, of its members as a kernel takes them."""
    return int.from_bytes(members[8 * _DATA : 8 * _DATA + 8], "little")
