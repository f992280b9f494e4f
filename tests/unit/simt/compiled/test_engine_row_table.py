"""Rows of runs get the block and warp of their warp, the pc, part and space of their access."""

import numpy as np

from cutrace.tracer.simt.rows.access_rows import Columns, RowBuffer, columns_of


def test_rows_of_runs_get_what_follows_from_their_warp_and_access() -> None:
    buffer = RowBuffer()
    buffer.run_pc = np.array([9, 7, 9, 0], dtype=np.int32)
    buffer.run_part = np.array([1, 0, 1, 0], dtype=np.int32)
    buffer.run_space = np.array([2, 1, 2, 0], dtype=np.int32)
    buffer.run_count = np.array([2, 1, 2, 3], dtype=np.int32)
    buffer.row_warp = np.array([0, 3, 2, 1, 0, 0, 0, 0], dtype=np.int32)
    buffer.row_step = np.array([10, 11, 12, 13, 14, 0, 0, 0], dtype=np.uint32)
    buffer.row_base = np.array([-1, 0, 1, 2, 1 << 40, 0, 0, 0], dtype=np.int64)
    warps = Columns()
    warps.wave_ends, warps.warps = np.array([3, 9]), 4  # of two waves
    warps.warp_block = np.array([5, 5, 1 << 40, 1 << 40, 6, 6, 7, 7], dtype=np.int64)
    warps.warp_number = np.array([0, 1, 0, 1], dtype=np.uint16)
    columns = columns_of(buffer, warps, 5, 3)
    assert {name: column.tolist() for name, column in columns.items()} == {
        "block": [5, 1 << 40, 1 << 40, 6, 6],
        "warp": [0, 1, 0, 1, 0],
        "step": [10, 11, 12, 13, 14],
        "part": [1, 1, 0, 1, 1],
        "pc": [9, 9, 7, 9, 9],
        "space": [2, 2, 1, 2, 2],
        "base": [(1 << 64) - 1, 0, 1, 2, 1 << 40],
    }
    assert {name: column.dtype for name, column in columns.items()} == {
        "block": np.uint64,
        "warp": np.uint16,
        "step": np.uint32,
        "part": np.uint8,
        "pc": np.uint32,
        "space": np.uint8,
        "base": np.uint64,
    }
