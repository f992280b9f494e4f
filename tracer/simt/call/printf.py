"""Device `printf`: format the packed arguments of each lane as C does.

CUDA formats on the host, with its C library: each conversion calls this host's `snprintf` with its
own arguments (CUDA C++ Programming Guide, "Formatted Output").
"""

import ctypes
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import KernelFault
from ....traces.schema import Space
from ..memory.memory import WINDOWS
from ..warp.program import Group

_CONVERSION = re.compile(
    rb"%(?P<flags>[-+ #0']*)(?P<width>\d+|\*)?(?P<precision>\.(?:-?\d+|\*)?)?"
    rb"(?P<size>hh|h|ll|l|L|q|z|j|t|w)?(?P<kind>[diouxXeEfFgGaAcsp%])",
    re.ASCII,
)
_LONG = (b"l", b"ll", b"L", b"q", b"z", b"j", b"t")
MOST_PRINTED = 1 << 20
"""Maximum bytes of one conversion: the size of the buffer in which a chip sends its output (CUDA's
default limit `cudaLimitPrintfFifoSize`)."""

CType: TypeAlias = Callable[[Any], Any]


def _find_snprintf() -> Any:
    windows = sys.platform == "win32"
    library = ctypes.CDLL("msvcrt" if windows else None)
    function = library._snprintf if windows else library.snprintf
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p]  # variadic
    return function


_SNPRINTF = _find_snprintf()


@dataclass(frozen=True, slots=True)
class Conversion:
    """One conversion of a format: its text, and the NumPy and C types of its arguments.

    `left` is the text for a negative width of `*`, thus `-`: that turns `0` off, but not for floats
    of older C libraries (glibc 2.36).
    """

    text: bytes
    left: bytes
    takes: tuple[tuple[str, CType], ...]


def print_lanes(
    group: Group, words: Sequence[Sequence[int]], places: NDArray[np.intp]
) -> NDArray[np.uint32]:
    """Print the output of each lane, in order; return each lane's number of arguments, -1 without a
    format.

    `words` are for each lane the generic addresses of the format and of the argument buffer,
    `places` (n,) the lanes' places in the group's shape.
    """
    output = group.wave.program.launch.output
    counts = []
    for (form, value), place in zip(words, places.tolist(), strict=True):
        if not form:
            counts.append(-1)
            continue
        lane = int(group.place[place // 32]) * 32 + place % 32
        text, count = _format(group, lane, _string(group, lane, form), value)
        output(text.decode("utf-8", "surrogateescape"))
        counts.append(count)
    return np.array(counts, dtype=np.int32).view(np.uint32)


def bytes_at(group: Group, lane: int, address: int) -> NDArray[np.uint8]:
    """Return the bytes from a generic address on, as this lane of the wave sees them."""
    wave = group.wave
    start, end = WINDOWS[Space.LOCAL]
    if start <= address < end:
        return wave.local[lane, address - start :]
    start, end = WINDOWS[Space.SHARED]
    if start <= address < end:
        return wave.shared[lane // wave.columns, address - start :]
    start, end = WINDOWS[Space.CONST]
    if start <= address < end:
        return wave.program.memory.const.bytes[address - start :]
    arena = wave.program.memory.global_
    if not 0 <= address - arena.base < len(arena.bytes):
        raise KernelFault(f"a called function reads {address:#x}, where nothing lies", "outside")
    return arena.bytes[address - arena.base :]


def string_at(group: Group, place: int, address: int) -> str:
    """Return the string at a generic address, as the lane at this place of the group sees it."""
    lane = int(group.place[place // 32]) * 32 + place % 32
    return _string(group, lane, address).decode("utf-8", "replace")


def _string(group: Group, lane: int, address: int) -> bytes:
    data = bytes_at(group, lane, address)[:4096]
    end = np.flatnonzero(data == 0)
    return bytes(data[: int(end[0]) if end.size else len(data)])


@lru_cache(maxsize=256)
def _read_format(form: bytes) -> tuple[bytes | Conversion, ...]:
    """Split a format into plain text and conversions."""
    parts: list[bytes | Conversion] = []
    end = 0
    for match in _CONVERSION.finditer(form):
        parts += [form[end : match.start()], _read_conversion(match)]
        end = match.end()
    return (*parts, form[end:])


def _read_conversion(match: re.Match[bytes]) -> bytes | Conversion:
    flags, width, precision, size, kind = (group or b"" for group in match.groups())
    if kind == b"%":
        return kind
    stars = (("<i4", ctypes.c_int),) * (width + precision).count(b"*")
    is_long = size in _LONG and kind in b"diouxX"
    size = b"ll" if is_long else size if kind in b"diouxX" else b""
    c_type = _TAKEN.get(kind) or _INTEGERS[is_long, kind in b"di"]
    suffix = width + precision + size + kind
    star_flags = flags.replace(b"0", b"") if width == b"*" else flags
    return Conversion(b"%" + flags + suffix, b"%" + star_flags + suffix, (*stars, c_type))


_INTEGERS: Mapping[tuple[bool, bool], tuple[str, CType]] = {
    (False, False): ("<u4", ctypes.c_uint),
    (False, True): ("<i4", ctypes.c_int),
    (True, False): ("<u8", ctypes.c_ulonglong),
    (True, True): ("<i8", ctypes.c_longlong),
}
"""The types of integer arguments, by whether they are long and signed."""
_TAKEN: Mapping[bytes, tuple[str, CType]] = {
    b"c": ("<i4", ctypes.c_int),
    b"s": ("<u8", ctypes.c_char_p),
    b"p": ("<u8", ctypes.c_void_p),
    **{bytes([kind]): ("<f8", ctypes.c_double) for kind in b"eEfFgGaA"},
}


def _format(group: Group, lane: int, form: bytes, values: int) -> tuple[bytes, int]:
    """Format the text of one lane; an argument is aligned to its own size of 4 or 8 bytes."""
    text, offset, count = bytearray(), 0, 0
    for part in _read_format(form):
        if isinstance(part, bytes):
            text += part
            continue
        arguments: list[Any] = []
        for dtype, ctype in part.takes:
            size = np.dtype(dtype).itemsize
            offset = -(-offset // size) * size
            data = bytes_at(group, lane, values)[offset : offset + size]
            value = np.frombuffer(bytes(data), dtype)[0].item()
            if ctype is ctypes.c_char_p:
                value = _string(group, lane, value) if value else None
            arguments.append(ctype(value))
            offset += size
            count += 1
        is_left = part.left != part.text and arguments[0].value < 0
        text += convert(part.left if is_left else part.text, *arguments)
    return bytes(text), count


def convert(conversion: bytes, *arguments: Any) -> bytes:
    """Format the arguments of one conversion with the C library."""
    size = _SNPRINTF(None, 0, conversion, *arguments)
    if not 0 <= size <= MOST_PRINTED:
        raise KernelFault(
            f"printf: `{conversion.decode(errors='replace')}` prints {size} bytes, expected at "
            f"most {MOST_PRINTED}"
        )
    buffer = ctypes.create_string_buffer(size + 1)
    _SNPRINTF(buffer, size + 1, conversion, *arguments)
    return buffer.raw[:size]
