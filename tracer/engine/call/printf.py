"""Device `printf`: the format string and the packed arguments of each lane, as C prints them."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....traces.schema import Space
from ..array.program import Group
from ..memory.memory import WINDOWS

_CONVERSION = re.compile(r"%(?P<flags>[-+ #0]*)(?P<width>\d+|\*)?(?:\.(?P<precision>\d+|\*))?"
                         r"(?P<size>hh|h|ll|l|L|z|j|t)?(?P<kind>[diouxXeEfFgGaAcsp%])")  # fmt: skip


def print_lanes(
    group: Group, forms: NDArray[Any], values: NDArray[Any], places: NDArray[Any]
) -> NDArray[Any]:
    """Print a line a lane, in order; return how many arguments each had.

    `forms` and `values` (n,) are generic addresses of the format and of the argument buffer,
    `places` (n,) the lanes' places in the group's shape.
    """
    output = group.wave.program.launch.output
    counts = []
    for form, value, place in zip(forms, values, places, strict=True):
        lane = int(group.place[place // 32]) * 32 + int(place) % 32
        text, count = _format(group, lane, _string(group, lane, int(form)), int(value))
        output(text)
        counts.append(count)
    return np.array(counts, dtype=np.uint32)


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
    return arena.bytes[address - arena.base :]


def string_at(group: Group, place: int, address: int) -> str:
    """Return the string at a generic address, as the lane at a place of the group sees it."""
    lane = int(group.place[place // 32]) * 32 + place % 32
    return _string(group, lane, address)


def _string(group: Group, lane: int, address: int) -> str:
    data = bytes_at(group, lane, address)[:4096]
    end = np.flatnonzero(data == 0)
    return bytes(data[: int(end[0]) if end.size else len(data)]).decode("utf-8", "replace")


def _format(group: Group, lane: int, form: str, values: int) -> tuple[str, int]:
    """Format one lane's text; an argument is aligned to its own size of 4 or 8 bytes."""
    offset = 0
    count = 0

    def take(dtype: str) -> Any:
        nonlocal offset, count
        size = np.dtype(dtype).itemsize
        offset = -(-offset // size) * size
        data = bytes_at(group, lane, values)[offset : offset + size]
        offset += size
        count += 1
        return np.frombuffer(bytes(data), dtype=dtype)[0]

    def convert(match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind == "%":
            return "%"
        width = int(take("i4")) if match["width"] == "*" else match["width"] or ""
        precision = int(take("i4")) if match["precision"] == "*" else match["precision"]
        spec = f"%{match['flags']}{width}{'' if precision is None else f'.{precision}'}"
        long = match["size"] in ("l", "ll", "z", "j", "t")
        if kind in "di":
            return f"{spec}d" % int(take("i8" if long else "i4"))
        if kind in "ouxX":
            return f"{spec}{'d' if kind == 'u' else kind}" % int(take("u8" if long else "u4"))
        if kind == "c":
            return f"{spec}c" % chr(int(take("i4")) & 0xFF)
        if kind == "s":
            return f"{spec}s" % _string(group, lane, int(take("u8")))
        if kind == "p":
            return f"{spec}s" % f"{int(take('u8')):#x}"
        return _float_text(spec, kind, float(take("f8")))

    return _CONVERSION.sub(convert, form), count


def _float_text(spec: str, kind: str, value: float) -> str:
    return value.hex() if kind in "aA" else f"{spec}{kind}" % value
