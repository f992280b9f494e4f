"""What the comments of a kernel of tests/golden/ptx say: what it takes and leaves."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Golden:
    """A kernel of one block; `fault` is the message with which it has to fail, or empty."""

    name: str
    block: int
    sources: list[NDArray[Any]]
    wanted: list[NDArray[Any]]
    fault: str


def read_golden(text: str) -> Golden:
    """Read `// in: u32 0..31`, `// out: u32 7*32`, `// block: 32` and `// fault: TEXT`."""
    said = re.findall(r"^// (in|out|block): (.*?)\s*(?:#.*)?$", text, re.MULTILINE)
    (name,) = re.findall(r"\.entry\s+(\w+)", text)
    fault = re.search(r"^// fault: (.*)$", text, re.MULTILINE)
    return Golden(
        name,
        next((int(value) for word, value in said if word == "block"), 32),
        [read_array(value) for word, value in said if word == "in"],
        [read_array(value) for word, value in said if word == "out"],
        fault[1] if fault else "",
    )


def read_array(text: str) -> NDArray[Any]:
    """`u32 0..3 7*2` as an array: ranges, repetitions, plain values."""
    kind, *words = text.split()
    dtype = np.dtype({"u": "u", "s": "i", "i": "i", "f": "f"}[kind[0]] + str(int(kind[1:]) // 8))
    values: list[Any] = []
    for word in words:
        value, _, times = word.partition("*")
        first, _, last = value.partition("..")
        if last:
            step = 1 if int(last, 0) >= int(first, 0) else -1
            piece: list[Any] = list(range(int(first, 0), int(last, 0) + step, step))
        else:
            piece = [float(first) if kind[0] == "f" else int(first, 0)]
        values += piece * int(times or 1)
    if kind[0] != "f":
        bits = [value & (1 << 8 * dtype.itemsize) - 1 for value in values]
        return np.array(bits, f"u{dtype.itemsize}").view(dtype)
    return np.array(values).astype(dtype)
