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

Columns = NDArray[Any]


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

    def patterns(self, active: Columns, offsets: Columns) -> int:
        """Number patterns."""
        return self._patterns.add(active, offsets)

    def accesses(
        self, block: Columns, warp: Columns, step: Columns, part: Columns, pc: Columns,
        space: Columns, base: Columns, pattern: Columns,
    ) -> None:  # fmt: skip
        """Write the accesses that are kept, after their patterns."""
        keep = self._of_warps(block, warp) & self._pcs[pc]
        if len(self._spaces):
            keep &= np.isin(space, self._spaces)
        if not keep.any():
            return
        number = self._patterns.write(pattern[keep])
        self._sink.accesses(
            block[keep], warp[keep], step[keep], part[keep], pc[keep], space[keep], base[keep],
            number,
        )  # fmt: skip

    def paths(
        self, lengths: Columns, blocks: Columns, active: Columns, not_taken: Columns,
        targets: Columns, repeat: Columns,
    ) -> int:  # fmt: skip
        """Number paths."""
        return self._paths.add(lengths, (blocks, active, not_taken, targets, repeat))

    def control(self, block: Columns, warp: Columns, step: Columns, path: Columns) -> None:
        """Write what the warps that are kept ran, after their paths."""
        keep = self._of_warps(block, warp)
        if self._kept.control and keep.any():
            path = self._paths.write(path[keep])
            self._sink.control(block[keep], warp[keep], step[keep], path)

    def texels(
        self, block: Columns, warp: Columns, step: Columns, pc: int, texture: int,
        active: Columns, corner: Columns,
    ) -> None:  # fmt: skip
        """Write the texture samples that are kept."""
        keep = self._of_warps(block, warp) & self._pcs[pc]
        if len(self._spaces) and Space.TEXTURE not in self._kept.spaces:
            return
        if keep.any():
            self._sink.texels(
                block[keep], warp[keep], step[keep], pc, texture, active[keep], corner[keep]
            )

    def lanes_on(self, block: Columns, pc: Columns, lanes: Columns) -> None:
        """Write the sums of the blocks that are kept; a part of a block's warps has no sum."""
        if self._kept.control and self._kept.rows and not self._kept.warps:
            keep = keeps_blocks(self._kept, block)
            if keep.any():
                self._sink.lanes_on(block[keep], pc[keep], lanes[keep])

    def outside(self, *columns: Columns) -> None:
        """Hand on what lanes did outside of allocations: it is told whatever is kept."""
        self._sink.outside(*columns)

    def _of_warps(self, block: Columns, warp: Columns) -> NDArray[np.bool_]:
        """Return which rows are of warps that are kept."""
        if not self._kept.rows:
            return np.zeros(len(block), np.bool_)
        return keeps_blocks(self._kept, block) & in_ranges(warp, self._kept.warps)
