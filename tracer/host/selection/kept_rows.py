"""Row filter: a sink that hands on the rows of a launch that are to be kept.

Patterns and paths are given identifiers at once, and written when a row that is kept refers to
them, so that what is left out costs nothing on disk.
"""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....traces.kept import in_ranges, keeps_blocks, keeps_pcs
from ....traces.schema import Kept, Space
from ...engine.launch import Sink
from .deferred_patterns import SparePaths, SparePatterns


def drops_nothing(kept: Kept) -> bool:
    """Whether all that is run is kept: also of a sample, if its blocks alone are run."""
    return kept == Kept(sample=kept.sample) and not kept.sample.all_ran


class KeptRows:
    """A sink that hands on what `kept` says of a kernel with these `instructions`."""

    def __init__(self, sink: Sink, kept: Kept, instructions: pa.Table) -> None:
        self._sink = sink
        self._kept = kept
        self._pcs = keeps_pcs(kept, instructions)
        self._spaces = np.array([int(space) for space in kept.spaces], np.uint8)
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
        keep = self._keeps(table, columns)
        if keep is not None and keep.any():
            kept = {n: c[keep] if isinstance(c, np.ndarray) else c for n, c in columns.items()}
            if table == "accesses":
                kept["pattern"] = self._patterns.write(kept["pattern"])
            elif table == "control":
                kept["path"] = self._paths.write(kept["path"])
            self._sink.put(table, **kept)
        return 0

    def _keeps(self, table: str, columns: dict[str, Any]) -> NDArray[np.bool_] | None:
        """Return which rows are kept, None for none; a part of a block's warps has no sum of
        lanes."""
        kept, block = self._kept, columns["block"]
        if table == "lanes_on":
            whole = kept.control and kept.rows and not kept.warps
            return keeps_blocks(kept, block) if whole else None
        of_warps = self._of_warps(block, columns["warp"])
        if table == "control":
            return of_warps if kept.control else None
        keep: NDArray[np.bool_] = of_warps & self._pcs[columns["pc"]]
        if not len(self._spaces):
            return keep
        if table == "texels":
            return keep if Space.TEXTURE in kept.spaces else None
        keep &= np.isin(columns["space"], self._spaces)
        return keep

    def _of_warps(self, block: NDArray[Any], warp: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which rows are of warps that are kept."""
        if not self._kept.rows:
            return np.zeros(len(block), np.bool_)
        return keeps_blocks(self._kept, block) & in_ranges(warp, self._kept.warps)
