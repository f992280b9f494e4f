"""What of a launch is recorded: a sample of its blocks, and a sink that drops the rows of others.

`RowFilter` gives patterns and paths identifiers at once, but writes them only when a forwarded row
refers to them, so that dropped rows cost nothing on disk.

Blocks at the ends of a grid often do more or less work than others: they skip elements beyond the
data, or read a border. So the sample takes one block of each corner and, for a grid long in several
dimensions, of each side. The inside is split into equal stretches, and one random block is drawn
from each. `choose_kept` combines the sample with the session's other filters.

    E s s s s E      E: a corner, s: a side, one block of each
    s i i i i s      i: the inside, a random block per stretch
    E s s s s E
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise, product
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...base.dataclass import dataclass
from ...traces.pattern_store import PatternSpill
from ...traces.row_filter import in_ranges, keeps_blocks, keeps_pcs
from ...traces.schema import Kept, Sample, Space
from ...traces.unique import sorted_unique
from ..ptx.kernel import Kernel
from ..ptx.opcodes import LEAVES
from ..simt.kernel.launch import Sink
from .configuration import Dim3
from .filter import Filter
from .kernel_facts import LinkedKernel


def drops_nothing(row_selection: Kept) -> bool:
    """Return True if all executed blocks are recorded, also with a sample that alone runs."""
    return row_selection == Kept(sample=row_selection.sample) and not row_selection.sample.all_ran


class RowFilter:
    """A sink that forwards the rows selected by `row_selection` for a kernel's `instructions`."""

    def __init__(self, sink: Sink, row_selection: Kept, instructions: pa.Table) -> None:
        self._sink = sink
        self._kept = row_selection
        self._pcs = keeps_pcs(row_selection, instructions)
        self._spaces = np.array([int(space) for space in row_selection.spaces], np.uint8)
        self._patterns = SparePatterns(sink)
        self._paths = SparePaths(sink)

    def put(self, table: str, **columns: Any) -> int:
        """Number patterns and paths; forward selected rows after those that they refer to."""
        match table:
            case "patterns":
                return self._patterns.add(**columns)
            case "paths":
                return self._paths.add(**columns)
            case "outside":  # recorded under any filter
                return self._sink.put(table, **columns)
        keep = self._selected(table, columns)
        if keep is not None and keep.any():
            arrays = {n: c[keep] if isinstance(c, np.ndarray) else c for n, c in columns.items()}
            if table == "accesses":
                arrays["pattern"] = self._patterns.write(arrays["pattern"])
            elif table == "control":
                arrays["path"] = self._paths.write(arrays["path"])
            self._sink.put(table, **arrays)
        return 0

    def _selected(self, table: str, columns: dict[str, Any]) -> NDArray[np.bool_] | None:
        """Return the mask of selected rows, None for none.

        Lane sums are per block, so they are dropped if only some of its warps are selected.
        """
        row_selection, block = self._kept, columns["block"]
        if table == "lanes_on":
            whole = row_selection.control and row_selection.rows and not row_selection.warps
            return keeps_blocks(row_selection, block) if whole else None
        of_warps = self._of_warps(block, columns["warp"])
        if table == "control":
            return of_warps if row_selection.control else None
        keep: NDArray[np.bool_] = of_warps & self._pcs[columns["pc"]]
        if not len(self._spaces):
            return keep
        if table == "texels":
            return keep if Space.TEXTURE in row_selection.spaces else None
        keep &= np.isin(columns["space"], self._spaces)
        return keep

    def _of_warps(self, block: NDArray[Any], warp: NDArray[Any]) -> NDArray[np.bool_]:
        """Return the mask of rows of selected warps."""
        if not self._kept.rows:
            return np.zeros(len(block), np.bool_)
        return keeps_blocks(self._kept, block) & in_ranges(warp, self._kept.warps)


Ids = NDArray[np.uint32]
_UNSET = np.uint32(0xFFFFFFFF)


class _Numbers:
    """Map from provisional identifiers to identifiers in the trace, or _UNSET."""

    def __init__(self) -> None:
        self.given = 0
        self._places: Ids = np.full(1 << 12, _UNSET, np.uint32)

    def give(self, count: int) -> int:
        """Allocate `count` identifiers; return the first."""
        first, self.given = self.given, self.given + count
        if self.given > len(self._places):
            grown = np.full(max(self.given, 2 * len(self._places)), _UNSET, np.uint32)
            grown[: len(self._places)] = self._places
            self._places = grown
        return first

    def missing(self, numbers: Ids) -> Ids:
        """Return the distinct unwritten identifiers, ascending."""
        return sorted_unique(numbers[self._places[numbers] == _UNSET])

    def set(self, numbers: Ids, first: int) -> None:
        """Map these identifiers to consecutive ones from `first` on."""
        self._places[numbers] = np.arange(first, first + len(numbers), dtype=np.uint32)

    def places(self, numbers: Ids) -> Ids:
        """Return their identifiers in the trace."""
        return self._places[numbers]


class SparePatterns:
    """Numbers patterns, and writes only those in use."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._numbers = _Numbers()
        self._spill = PatternSpill()

    def add(self, active: NDArray[Any], offsets: NDArray[Any]) -> int:
        """Number patterns (n,), (n, 32); return the first identifier."""
        self._numbers.give(len(active))
        return self._spill.add(active, offsets)

    def write(self, numbers: Ids) -> Ids:
        """Write the patterns that are not in the trace yet; return their identifiers there."""
        missing = self._numbers.missing(numbers)
        if len(missing):
            active, offsets = self._spill.take(missing.astype(np.int64))
            offsets = np.ascontiguousarray(offsets)
            first = self._sink.put("patterns", active=active, offsets=offsets)
            self._numbers.set(missing, first)
        return self._numbers.places(numbers)


class SparePaths:
    """Numbers paths, and writes only those in use.

    Only the paths of the latest `add` can still be written; earlier written ones keep their
    identifiers.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._numbers = _Numbers()
        self._first = 0
        self._starts: NDArray[np.int64] = np.zeros(1, np.int64)
        self._columns: dict[str, NDArray[Any]] = {}

    def add(self, lengths: NDArray[Any], **columns: NDArray[Any]) -> int:
        """Number paths given as lengths (n,) and flat columns; return the first identifier."""
        self._first = self._numbers.give(len(lengths))
        self._starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self._columns = columns
        return self._first

    def write(self, numbers: Ids) -> Ids:
        """Write the paths that are not in the trace yet; return their identifiers there."""
        missing = self._numbers.missing(numbers)
        if len(missing):
            if missing[0] < self._first:
                raise AssertionError(f"path {missing[0]} is asked for after others have come")
            self._numbers.set(missing, self._write(missing - np.uint32(self._first)))
        return self._numbers.places(numbers)

    def _write(self, which: Ids) -> int:
        lengths = np.diff(self._starts)[which]
        ends = np.cumsum(lengths)
        shift = np.repeat(self._starts[which] - (ends - lengths), lengths)
        flat = shift + np.arange(int(ends[-1]))
        columns = {name: column[flat] for name, column in self._columns.items()}
        return self._sink.put("paths", lengths=lengths.astype(np.uint32), **columns)


LONG = 32
"""Minimum extent from which the two ends of one of several dimensions are a small part."""

ENOUGH = 20
"""Blocks from the inside of a grid that suffice to estimate how blocks differ."""

Stretch: TypeAlias = tuple[int, int]
"""First block of a range and its length."""


@dataclass(frozen=True, slots=True)
class _Box:
    """Blocks of a grid of `width` by `height`: first and number of them in x, y and z."""

    width: int
    height: int
    x: Stretch
    y: Stretch
    z: Stretch

    def __len__(self) -> int:
        """Return the number of blocks."""
        return self.x[1] * self.y[1] * self.z[1]

    def block(self, number: int) -> int:
        """Return the linear grid index of block `number`, x first."""
        quotient, x = divmod(number, self.x[1])
        z, y = divmod(quotient, self.y[1])
        row = (self.z[0] + z) * self.height + self.y[0] + y
        return row * self.width + self.x[0] + x


@lru_cache(maxsize=64)
def draw(grid: tuple[int, int, int], count: int, seed: int, launch: int) -> Sample:
    """Draw `count` blocks of a grid including its ends; an empty sample means all blocks.

    At least ENOUGH blocks (or `count` if less) come from the inside, the ends in addition. The same
    `seed` and launch number draw the same blocks on every machine.
    """
    dice = _throw(seed, launch)
    inside, *ends = _cut(grid)
    count = max(count - len(ends), min(count, ENOUGH))
    if count >= len(inside):
        return Sample()
    borders = [number * len(inside) // count for number in range(count + 1)]
    drawn = {inside.block(a + next(dice) % (b - a)): b - a for a, b in pairwise(borders)}
    outside = {box.block(next(dice) % len(box)): len(box) for box in ends}
    # A block's weight is the number of blocks it represents: those of its stretch or end.
    weights = dict(sorted((drawn | outside).items()))
    return Sample(tuple(weights), tuple(weights.values()), tuple(sorted(outside)), seed)


def _cut(grid: tuple[int, int, int]) -> list[_Box]:
    """Split a grid into its inside, which comes first, and its ends."""
    several = sum(extent > 1 for extent in grid) > 1
    stretches = [_stretches(extent, several) for extent in grid]
    return [_Box(*grid[:2], *spans) for spans in product(*stretches)]


def _stretches(extent: int, several: bool) -> list[Stretch]:
    """Split a dimension into inside, first and last block, if it is long enough."""
    if extent < (LONG if several else 3):
        return [(0, extent)]
    return [(1, extent - 2), (0, 1), (extent - 1, 1)]


def _throw(seed: int, launch: int) -> Iterator[int]:
    """Yield 64-bit random numbers, the same on every machine."""
    for count in range(1 << 62):
        text = f"{seed} {launch} {count}".encode()
        yield int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def choose_kept(
    row_filter: Filter, names: tuple[str, ...], number: int, grid: Dim3, kernel_facts: LinkedKernel
) -> Kept:
    """Return the recorded part of launch `number` of a kernel with these `names`."""
    by_number = any(first <= number <= last for first, last in row_filter.launches)
    named = not row_filter.kernels or any(name in row_filter.kernels for name in names)
    if not named or not (by_number or not row_filter.launches):
        return Kept(rows=False, control=False)
    return Kept(
        control=row_filter.control,
        blocks=row_filter.blocks,
        warps=row_filter.warps,
        lines=row_filter.lines,
        spaces=row_filter.spaces,
        sample=choose_sample(row_filter, number, grid, kernel_facts),
    )


def choose_sample(
    row_filter: Filter, number: int, grid: Dim3, kernel_facts: LinkedKernel
) -> Sample:
    """Draw the blocks of launch `number` if a sample is requested; note whether all must run."""
    count = row_filter.sample.of(grid[0] * grid[1] * grid[2])
    sample = draw(grid, count, row_filter.seed, number) if count else Sample()
    return replace(sample, all_ran=kernel_facts.dependence) if sample.blocks else sample


def count_executed(row_filter: Filter, grid: Dim3, kernel_facts: LinkedKernel) -> int:
    """Return how many blocks of a grid would run."""
    sample = choose_sample(row_filter, 0, grid, kernel_facts)
    return 0 if sample.all_ran else len(sample.blocks)


class MachineRows:
    """A sink that writes the rows of the machine's instructions, by `rows` of the kernel."""

    def __init__(self, sink: Sink, kernel: Kernel) -> None:
        self._sink = sink
        self._rows = np.array(kernel.rows, np.uint32)
        last = {
            row: pc
            for pc, row in enumerate(kernel.rows)
            if (one := kernel.instructions[pc]).opcode not in (*LEAVES, "bra")
            and one.mnemonic != "bar.warp.sync"
        }
        self._is_last = np.zeros(len(self._rows), np.bool_)
        self._is_last[list(last.values())] = True
        lengths = np.array([kernel.length(block) for block in kernel.blocks])
        self._number = (np.cumsum(lengths > 0) - 1).astype(np.uint32)

    def put(self, table: str, **columns: Any) -> int:
        """Add rows to a table; of lanes with a true predicate those of the last operation of each
        instruction."""
        if "pc" in columns:
            if table == "lanes_on":
                keep = self._is_last[columns["pc"]]
                columns = {
                    n: c[keep] if isinstance(c, np.ndarray) else c for n, c in columns.items()
                }
            columns["pc"] = self._rows[columns["pc"]]
        if table == "paths":  # blocks without rows have no number
            columns["blocks"] = self._number[columns["blocks"]]
        return self._sink.put(table, **columns)
