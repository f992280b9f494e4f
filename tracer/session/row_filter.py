"""Row filter: a sink that hands on the rows of a launch that are to be kept.

Patterns and paths are given identifiers at once, and written when a row that is kept refers to
them, so that what is left out costs nothing on disk.
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
    """Whether all that is run is kept: also of a sample, if its blocks alone are run."""
    return row_selection == Kept(sample=row_selection.sample) and not row_selection.sample.all_ran


class RowFilter:
    """A sink that hands on what `kept` says of a kernel with these `instructions`."""

    def __init__(self, sink: Sink, row_selection: Kept, instructions: pa.Table) -> None:
        self._sink = sink
        self._kept = row_selection
        self._pcs = keeps_pcs(row_selection, instructions)
        self._spaces = np.array([int(space) for space in row_selection.spaces], np.uint8)
        self._patterns = SparePatterns(sink)
        self._paths = SparePaths(sink)

    def put(self, table: str, **columns: Any) -> int:
        """Number patterns and paths; write the other rows that are kept, after those they name."""
        match table:
            case "patterns":
                return self._patterns.add(**columns)
            case "paths":
                return self._paths.add(**columns)
            case "outside":  # it is told whatever is kept
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
        """Return which rows are kept, None for none; a part of a block's warps has no sum of
        lanes."""
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
        """Return which rows are of warps that are kept."""
        if not self._kept.rows:
            return np.zeros(len(block), np.bool_)
        return keeps_blocks(self._kept, block) & in_ranges(warp, self._kept.warps)


Ids = NDArray[np.uint32]
_UNSET = np.uint32(0xFFFFFFFF)


class _Numbers:
    """Where in the trace each number that was given out lies, or _NOWHERE."""

    def __init__(self) -> None:
        self.given = 0
        self._places: Ids = np.full(1 << 12, _UNSET, np.uint32)

    def give(self, count: int) -> int:
        """Give out so many numbers; return the first."""
        first, self.given = self.given, self.given + count
        if self.given > len(self._places):
            grown = np.full(max(self.given, 2 * len(self._places)), _UNSET, np.uint32)
            grown[: len(self._places)] = self._places
            self._places = grown
        return first

    def missing(self, numbers: Ids) -> Ids:
        """Return those that lie nowhere yet, each once, rising."""
        return sorted_unique(numbers[self._places[numbers] == _UNSET])

    def set(self, numbers: Ids, first: int) -> None:
        """Note that these lie one after another from `first` on."""
        self._places[numbers] = np.arange(first, first + len(numbers), dtype=np.uint32)

    def places(self, numbers: Ids) -> Ids:
        """Return where they lie."""
        return self._places[numbers]


class SparePatterns:
    """Numbers patterns, and writes those that are asked for."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._numbers = _Numbers()
        self._spill = PatternSpill()

    def add(self, active: NDArray[Any], offsets: NDArray[Any]) -> int:
        """Number patterns (n,), (n, 32); return the number of the first."""
        self._numbers.give(len(active))
        return self._spill.add(active, offsets)

    def write(self, numbers: Ids) -> Ids:
        """Write what of these is not in the trace yet; return their identifiers there."""
        missing = self._numbers.missing(numbers)
        if len(missing):
            active, offsets = self._spill.take(missing.astype(np.int64))
            offsets = np.ascontiguousarray(offsets)
            first = self._sink.put("patterns", active=active, offsets=offsets)
            self._numbers.set(missing, first)
        return self._numbers.places(numbers)


class SparePaths:
    """Numbers paths, and writes those that are asked for.

    A path can be asked for until others are added; what was written by then stays known.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._numbers = _Numbers()
        self._first = 0
        self._starts: NDArray[np.int64] = np.zeros(1, np.int64)
        self._columns: dict[str, NDArray[Any]] = {}

    def add(self, lengths: NDArray[Any], **columns: NDArray[Any]) -> int:
        """Number paths given as lengths (n,) and flat columns; return the number of the first."""
        self._first = self._numbers.give(len(lengths))
        self._starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        self._columns = columns
        return self._first

    def write(self, numbers: Ids) -> Ids:
        """Write what of these is not in the trace yet; return their identifiers there."""
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
