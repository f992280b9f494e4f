"""The schedule of a kernel's machine code, as a text in a trace's manifest.

A text is base64 of zlib of three little-endian words of 32 bits for each instruction, in order:
its pc, the bits of `_FIELDS` from the lowest on, and the place of its target.
"""

import base64
import zlib
from collections.abc import Sequence

import numpy as np

from ..base.dataclass import dataclass

NO_SCOREBOARD = 7
_FIELDS = {"operation": 9, "stall": 4, "sets": 3, "reads": 3, "waits": 6, "guarded": 1}
"""How many bits each has."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A machine instruction: the lowest 9 bits of its opcode, and what its warp waits.

    `pc` is the PTX instruction that it comes from. `stall` is how many cycles later the warp's next
    one may start; it `sets` a scoreboard until its result is there and `reads` one until its
    operands are read (NO_SCOREBOARD: none), and waits for those whose bit is in `waits`. `target`
    is the place in the function where a branch goes, -1 for others.
    """

    pc: int
    operation: int
    stall: int
    sets: int
    reads: int
    waits: int
    guarded: int
    target: int


def pack_schedule(schedule: Sequence[Scheduled]) -> str:
    """Return the text of a schedule."""
    words = np.zeros((len(schedule), 3), "<i4")
    for row, each in zip(words, schedule, strict=True):
        bits = shift = 0
        for name, width in _FIELDS.items():
            bits, shift = bits | getattr(each, name) << shift, shift + width
        row[:] = each.pc, bits, each.target
    return base64.b64encode(zlib.compress(words.T.tobytes(), 9)).decode() if schedule else ""


def unpack_schedule(text: str) -> tuple[Scheduled, ...]:
    """Return the schedule of a text; none of an empty one. ValueError if it is no such text."""
    try:
        data = zlib.decompress(base64.b64decode(text, validate=True)) if text else b""
        pcs, bits, targets = np.frombuffer(data, "<i4").reshape(3, -1)
    except (ValueError, zlib.error) as problem:
        raise ValueError(f"no schedule of machine code: {problem}") from problem
    fields, shift = {"pc": pcs.tolist(), "target": targets.tolist()}, 0
    for name, width in _FIELDS.items():
        fields[name], shift = (bits >> shift & (1 << width) - 1).tolist(), shift + width
    return tuple(
        Scheduled(**dict(zip(fields, row, strict=True)))
        for row in zip(*fields.values(), strict=True)
    )
