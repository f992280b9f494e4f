"""Collect the rows of one launch of another tool until it is complete.

`Gathered` takes chunks and returns whole columns; `make_accesses` turns addresses per lane into
rows and deduplicated patterns.
"""

from collections import Counter
from dataclasses import asdict, field, fields, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ..schema import INSTRUCTIONS, LANES, Space
from .reader_interface import Code, Head, Ints, Rows, Words
from .sass import UNTRACED, facts_of

Flags = npt.NDArray[np.bool_]

WINDOW = 1 << 24
"""Bytes of the windows that map shared and local memory into generic addresses (NVIDIA's drivers,
since Volta; windows are aligned to that size)."""
REACH = (1 << 31) - 1
"""Maximum distance of a lane from the base address of its row."""


@dataclass(frozen=True, slots=True, eq=False)
class Accesses:
    """Rows of ACCESSES of one launch, except that `pattern` indexes `active` and `offsets`.

    `row` (n,) is the executed instruction of each access.
    """

    row: Ints
    part: Ints
    space: Ints
    base: Words
    pattern: Ints
    active: npt.NDArray[np.uint32]
    offsets: npt.NDArray[np.int32]


def lanes_of(masks: Ints) -> Flags:
    """Return (n, 32) flags: whether the mask contains the lane."""
    return (masks[:, None] >> np.arange(LANES) & 1).astype(bool)


def find_spaces(addresses: Words, reach: Ints, shared: int, local: int) -> npt.NDArray[np.uint8]:
    """Return the space of each lane's address, (n, 32); `reach` (n,) has bit 1 << s for each s.

    An instruction with one space uses that space; otherwise the windows decide, and the default is
    global.
    """
    spaces = np.full(addresses.shape, Space.GLOBAL, np.uint8)
    for space, window in ((Space.SHARED, shared), (Space.LOCAL, local)):
        only = reach == 1 << space
        spaces[only] = space
        may = (reach >> space & 1 == 1) & ~only
        inside = addresses[may] - np.uint64(window) < WINDOW
        spaces[may] = np.where(inside, np.uint8(space), spaces[may])
    return spaces


def make_accesses(
    row: Ints, addresses: Words, on: Flags, spaces: npt.NDArray[np.uint8]
) -> Accesses:
    """Return the rows of some accesses: one each, or more if lanes access several spaces or are far
    apart. Rows without a lane are left out.
    """
    indices = np.flatnonzero(on.any(axis=1))
    row, addresses, on, spaces = row[indices], addresses[indices], on[indices], spaces[indices]
    windowed = np.where(spaces == Space.GLOBAL, addresses, addresses % np.uint64(WINDOW))
    part = np.zeros(len(row), np.int64)
    parts: list[tuple[Ints, Ints, Words, Flags, npt.NDArray[np.uint8]]] = []
    while len(row):
        # Each round takes the lanes in the space of the lowest remaining lane and within REACH of
        # it, as one part of the access; rows with further lanes go through another round.
        lowest = on.argmax(axis=1)
        base = np.take_along_axis(windowed, lowest[:, None], 1)
        space = np.take_along_axis(spaces, lowest[:, None], 1)
        near = np.abs((windowed - base).view(np.int64)) <= REACH
        mine = on & near & (spaces == space)
        parts.append((row, part, windowed, mine, spaces))
        overflow = np.flatnonzero((on & ~mine).any(axis=1))
        on = (on & ~mine)[overflow]
        row, part, windowed, spaces = (
            row[overflow],
            part[overflow] + 1,
            windowed[overflow],
            spaces[overflow],
        )
    if not parts:
        return _packed(row, part, windowed, on, spaces)
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    return _packed(*(column[order] for column in columns))


def _packed(
    row: Ints, part: Ints, addresses: Words, on: Flags, spaces: npt.NDArray[np.uint8]
) -> Accesses:
    if not len(row):
        none = np.empty(0, np.int64)
        blank = np.empty((0, LANES), np.int32)
        return Accesses(none, none, none, none.view(np.uint64), none, none.astype(np.uint32), blank)
    lowest = on.argmax(axis=1)[:, None]
    base = np.take_along_axis(addresses, lowest, 1)
    offsets = np.where(on, (addresses - base).view(np.int64), 0).astype(np.int32)
    active = np.packbits(on, axis=1, bitorder="little").view("<u4")[:, 0].astype(np.uint32)
    space = np.take_along_axis(spaces, lowest, 1)[:, 0].astype(np.int64)
    first, pattern = _distinct(active, offsets)
    return Accesses(row, part, space, base[:, 0], pattern, active[first], offsets[first])


def _distinct(active: npt.NDArray[np.uint32], offsets: npt.NDArray[np.int32]) -> tuple[Ints, Ints]:
    """Return the first rows of equal patterns, and the pattern of each row.

    Rows are compared by a 64-bit hash; on a collision they stay separate.
    """
    factors = np.random.default_rng(0).integers(1, 1 << 62, LANES + 1).astype(np.uint64) * 2 + 1
    mixed = offsets.astype(np.int64).view(np.uint64) * factors[:LANES]
    marks = mixed.sum(axis=1, dtype=np.uint64) + active * factors[LANES]
    _, first, which = np.unique(marks, return_index=True, return_inverse=True)
    leaders = first[which]
    wrong = (offsets != offsets[leaders]).any(axis=1) | (active != active[leaders])
    # Hash collisions: give each such row a separate pattern instead of comparing all pairs.
    strays = np.flatnonzero(wrong)
    which[strays] = len(first) + np.arange(len(strays))
    return np.concatenate([first, strays]), which


HELD_BYTES = 1 << 32
"""Maximum bytes held of one launch: a file that unpacks to more is refused."""
MOST_ADDRESS = 1 << 61
"""Upper bound of global addresses; those of any device are far below."""


@dataclass(eq=False)
class Gathered:
    """One launch: takes chunks, and returns whole columns when the next launch begins."""

    head: Head
    codes: dict[Code, int] = field(default_factory=dict)
    rows: int = 0
    _columns: list[tuple[npt.NDArray[np.uint32], ...]] = field(default_factory=list)
    _accesses: list[tuple[int, int, Accesses]] = field(default_factory=list)
    _patterns: int = 0
    _pending_rows: int = 0

    def take(self, rows: Rows) -> None:
        """Append a chunk. CutraceError, with file and line, for rows that no launch has."""
        self._check(rows)
        numbers = [self.codes.setdefault(code, len(self.codes)) for code in rows.codes]
        which = np.array(numbers, np.int64)[rows.which]
        mask = rows.mask & 0xFFFFFFFF
        columns = (
            which.astype(np.uint32),
            rows.block.astype(np.uint32),
            rows.warp.astype(np.uint32),
            mask.astype(np.uint32),
        )
        self._columns.append(columns)
        accesses = self._reached(rows, which, mask)
        self._accesses.append((self.rows, self._patterns, accesses))
        self.rows += len(which)
        self._patterns += len(accesses.active)
        self._pending_rows += 16 * len(which) + accesses.offsets.nbytes + 48 * len(accesses.row)
        if self._pending_rows > HELD_BYTES:
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
        """Return the accesses of a chunk, without those of instructions that access no memory."""
        facts = [facts_of(code.mnemonic) for code in rows.codes]
        reach = np.array([f.reads | f.writes for f in facts], np.int64)[rows.which[rows.memory]]
        indices = np.flatnonzero(reach)
        row, addresses = rows.memory[indices], rows.addresses[indices]
        head = self.head
        spaces = find_spaces(addresses, reach[indices], head.shared_window, head.local_window)
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
        """Return all rows: code index, block, warp, mask."""
        none = np.empty(0, np.uint32)
        parts = [np.concatenate([none, *column]) for column in zip(*self._columns, strict=True)]
        which, block, warp, mask = (p.astype(np.int64) for p in parts or [none] * 4)
        return which, block, warp, mask

    def accesses(self) -> Accesses:
        """Return all accesses, with rows and patterns numbered through the launch."""
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
        """Return the opcodes that access memory without addresses from the tool, and their
        counts."""
        opcodes = (facts_of(code.mnemonic).opcode for code in self.codes)
        return Counter(opcode for opcode in opcodes if opcode in UNTRACED)


def _lanes(mnemonic: str) -> int:
    """Return how many lanes supply addresses: for a matrix load 8 per matrix."""
    opcode, *modifiers = mnemonic.split(".")
    if opcode not in ("LDSM", "STSM"):
        return LANES
    return 8 * next((int(m) for m in modifiers[::-1] if m in ("1", "2", "4")), 1)


def instruction_table(
    codes: list[Code], block: Ints, predicated: Ints, head: Head, source: str
) -> pa.Table:
    """Return the table INSTRUCTIONS of machine instructions, which are in order of pc."""
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
