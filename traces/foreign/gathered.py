"""Gathered: the rows of one launch of another tool, held until all of it is known."""

from collections import Counter
from dataclasses import asdict, field, fields, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...errors import CutraceError
from ...lazy_dataclass import dataclass
from ..schema import INSTRUCTIONS, LANES, Space
from .lanes import Accesses, find_spaces, lanes_of, make_accesses
from .sass import UNTRACED, facts_of
from .seam import Code, Head, Ints, Rows

HELD_BYTES = 1 << 32
"""What is held of one launch: a file that unpacks to more is refused."""
MOST_ADDRESS = 1 << 61
"""Addresses of global memory end far below on any device."""


@dataclass(eq=False)
class Gathered:
    """One launch: chunks are taken, and turned into whole columns when the next launch begins."""

    head: Head
    codes: dict[Code, int] = field(default_factory=dict)
    rows: int = 0
    _columns: list[tuple[npt.NDArray[np.uint32], ...]] = field(default_factory=list)
    _accesses: list[tuple[int, int, Accesses]] = field(default_factory=list)
    _patterns: int = 0
    _held: int = 0

    def take(self, rows: Rows) -> None:
        """Keep a chunk. CutraceError for what no launch has, naming the place."""
        self._check(rows)
        known = [self.codes.setdefault(code, len(self.codes)) for code in rows.codes]
        which = np.array(known, np.int64)[rows.which]
        mask = rows.mask & 0xFFFFFFFF
        kept = (
            which.astype(np.uint32),
            rows.block.astype(np.uint32),
            rows.warp.astype(np.uint32),
            mask.astype(np.uint32),
        )
        self._columns.append(kept)
        accesses = self._reached(rows, which, mask)
        self._accesses.append((self.rows, self._patterns, accesses))
        self.rows += len(which)
        self._patterns += len(accesses.active)
        self._held += 16 * len(which) + accesses.offsets.nbytes + 48 * len(accesses.row)
        if self._held > HELD_BYTES:
            raise CutraceError(
                f"{rows.place}: the launch of {self.head.kernel} has more than {self.rows} "
                "instructions, which take more than 4 GiB: trace fewer blocks of it"
            )

    def _check(self, rows: Rows) -> None:
        blocks = int(np.prod(np.array(self.head.grid, object)))
        if len(rows.block) and not 0 <= int(rows.block.min()) <= int(rows.block.max()) < blocks:
            wrong = int(rows.block[(rows.block < 0) | (rows.block >= blocks)][0])
            raise CutraceError(f"{rows.place}: block {wrong} of a grid of {blocks} blocks")

    def _reached(self, rows: Rows, which: Ints, mask: Ints) -> Accesses:
        """The accesses of a chunk; those of instructions that access nothing are dropped."""
        facts = [facts_of(code.mnemonic) for code in rows.codes]
        reach = np.array([f.reads | f.writes for f in facts], np.int64)[rows.which[rows.memory]]
        chosen = np.flatnonzero(reach)
        row, addresses = rows.memory[chosen], rows.addresses[chosen]
        head = self.head
        spaces = find_spaces(addresses, reach[chosen], head.shared_window, head.local_window)
        on = lanes_of(mask[row])
        first_lanes = np.array([_lanes(code.mnemonic) for code in rows.codes])[rows.which[row]]
        on &= np.arange(LANES) < first_lanes[:, None]
        far = on & (spaces == Space.GLOBAL) & (addresses >= np.uint64(MOST_ADDRESS))
        if far.any():
            raise CutraceError(
                f"{rows.place}: address {int(addresses[far][0]):#x} in a launch of {head.kernel}; "
                "no device has addresses of more than 61 bits: is the line whole?"
            )
        return make_accesses(row, addresses, on, spaces)

    def columns(self) -> tuple[Ints, Ints, Ints, Ints]:
        """All rows: which code, block, warp, mask."""
        none = np.empty(0, np.uint32)
        parts = [np.concatenate([none, *column]) for column in zip(*self._columns, strict=True)]
        which, block, warp, mask = (p.astype(np.int64) for p in parts or [none] * 4)
        return which, block, warp, mask

    def accesses(self) -> Accesses:
        """All accesses, with rows and patterns counted through the launch."""
        none = make_accesses(
            np.empty(0, np.int64),
            np.empty((0, LANES), np.uint64),
            np.empty((0, LANES), bool),
            np.empty((0, LANES), np.uint8),
        )
        parts = [none]
        for rows, patterns, each in self._accesses:
            parts.append(replace(each, row=each.row + rows, pattern=each.pattern + patterns))
        names = [column.name for column in fields(Accesses)]
        return Accesses(*(np.concatenate([getattr(p, name) for p in parts]) for name in names))

    def untraced(self) -> Counter[str]:
        """Opcodes that access memory of which the tool tells no address, and how many there are."""
        opcodes = (facts_of(code.mnemonic).opcode for code in self.codes)
        return Counter(opcode for opcode in opcodes if opcode in UNTRACED)


def _lanes(mnemonic: str) -> int:
    """How many lanes give addresses: of a matrix load 8 for each matrix."""
    opcode, *modifiers = mnemonic.split(".")
    if opcode not in ("LDSM", "STSM"):
        return LANES
    return 8 * next((int(m) for m in modifiers[::-1] if m in ("1", "2", "4")), 1)


def instruction_table(
    codes: list[Code], block: Ints, predicated: Ints, head: Head, source: str
) -> pa.Table:
    """The table INSTRUCTIONS of machine instructions, which are in order of pc."""
    rows = []
    for pc, code in enumerate(codes):
        facts = facts_of(code.mnemonic)
        own = {
            "pc": pc,
            "block": int(block[pc]),
            "function": head.kernel,
            "mnemonic": code.mnemonic,
            "predicate": code.predicate or ("P" if predicated[pc] else ""),
            "type": "",
            "class": facts.kind,
            "result_read": facts.access != "reduction",
            "file": source if code.line else "",
            "line": code.line,
            "column": 0,
            "inlined_at": [],
            "text": code.text if code.pc < 0 else f"/*{code.pc:04x}*/ {code.text}",
        }
        rows.append(asdict(facts) | own)
    return pa.Table.from_pylist(rows, schema=INSTRUCTIONS)
