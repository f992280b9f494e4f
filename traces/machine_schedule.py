"""Schedules of machine code: stalls and scoreboards, encoded as text in a trace's manifest.

The text is base64 of zlib of three little-endian 32-bit words per instruction, in order: its pc,
the bit fields of `_FIELDS` from the lowest bit on, and the index of its branch target.
"""

import base64
import zlib
from collections.abc import Sequence

import numpy as np

from ..base.dataclass import dataclass

CODE_BYTES = 16
"""Bytes of a machine instruction since 7.0."""

NO_SCOREBOARD = 7
_FIELDS = {"operation": 9, "stall": 4, "sets": 3, "reads": 3, "waits": 6, "guarded": 1}
"""Width of each field in bits."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A machine instruction: the lowest 9 bits of its opcode, and its stalls and scoreboards.

    `pc` is the PTX instruction that it was compiled from. `stall` is the number of cycles before
    the warp may issue its next instruction; it `sets` a scoreboard until its result is available
    and `reads` one until its operands are read (NO_SCOREBOARD: none), and waits for the scoreboards
    in the mask `waits`. `target` is the index of a branch's target in the function, -1 for others.
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


def count_instructions(text: str) -> int:
    """Return how many instructions a schedule has, without reading them."""
    return len(zlib.decompress(base64.b64decode(text))) // 12 if text else 0


def unpack_schedule(text: str) -> tuple[Scheduled, ...]:
    """Return the schedule of a text; empty for an empty text. ValueError if the text is
    malformed."""
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
