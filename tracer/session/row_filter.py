"""Sink that forwards the recorded rows of a launch and drops the others.

Patterns and paths get identifiers at once, but are only written when a forwarded row refers to
them, so that dropped rows cost nothing on disk.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...traces.pattern_store import PatternSpill
from ...traces.row_filter import in_ranges, keeps_blocks, keeps_pcs
from ...traces.schema import Kept, Space
from ...traces.unique import sorted_unique
from ..simt.kernel.launch import Sink


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
