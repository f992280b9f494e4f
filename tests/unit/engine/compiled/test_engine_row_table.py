"""Rows of runs get the block and warp of their warp, the pc and space of their access."""

import numpy as np

from cutrace.tracer.engine.rows.row_table import columns_of


def test_rows_of_runs_get_what_follows_from_their_warp_and_access() -> None:
    block, warp, pc, space = columns_of(
        run_site=np.array([1, 0, 1], dtype=np.int32),
        run_count=np.array([2, 1, 2], dtype=np.int32),
        site_pc=np.array([7, 9], dtype=np.uint32),
        site_space=np.array([1, 2], dtype=np.uint8),
        row_warp=np.array([0, 3, 2, 1, 0], dtype=np.int32),
        warp_block=np.array([5, 5, 1 << 40, 1 << 40], dtype=np.uint64),
        warp_number=np.array([0, 1, 0, 1], dtype=np.uint16),
    )
    assert block.tolist() == [5, 1 << 40, 1 << 40, 5, 5]
    assert warp.tolist() == [0, 1, 0, 1, 0]
    assert pc.tolist() == [9, 9, 7, 9, 9]
    assert space.tolist() == [2, 2, 1, 2, 2]
    assert [c.dtype for c in (block, warp, pc, space)] == [
        np.uint64,
        np.uint16,
        np.uint32,
        np.uint8,
    ]
