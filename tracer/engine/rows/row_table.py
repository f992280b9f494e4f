"""The columns of access rows that follow from the warp and the access of each, compiled."""

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ....native.loop_text import translate
from ....native.machine_code import compile_assembly
from ....native.structure import I32, I64, U8, U16, U32, Struct


class Columns(Struct):
    """`runs` runs of rows, `run_count` rows each of the access `run_site`, whose pc and state space
    are `site_pc` and `site_space`; `row_warp` is each row's warp in the wave, the warp
    `warp_number` of the thread block `warp_block`.

    To be filled are `block`, `number`, `pc` and `space`.
    """

    runs: int
    run_site: I32
    run_count: I32
    site_pc: U32
    site_space: U8
    row_warp: I32
    warp_block: I64
    warp_number: U16
    block: I64
    number: U16
    pc: U32
    space: U8


def fill_columns(c: Columns) -> None:
    """Fill the columns."""
    row_warp = c.row_warp
    warp_block = c.warp_block
    warp_number = c.warp_number
    block = c.block
    number = c.number
    pcs = c.pc
    spaces = c.space
    first = 0
    for run in range(c.runs):
        last = first + c.run_count[run]
        pc = c.site_pc[c.run_site[run]]
        space = c.site_space[c.run_site[run]]
        for row in range(first, last):
            block[row] = warp_block[row_warp[row]]
            number[row] = warp_number[row_warp[row]]
            pcs[row] = pc
            spaces[row] = space
        first = last


@cache
def _fill() -> Callable[[int], int]:
    find = compile_assembly(translate([fill_columns]), vectors=False)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(find("fill_columns"))


def columns_of(
    run_site: NDArray[np.int32],
    run_count: NDArray[np.int32],
    site_pc: NDArray[np.uint32],
    site_space: NDArray[np.uint8],
    row_warp: NDArray[np.int32],
    warp_block: NDArray[np.uint64],
    warp_number: NDArray[np.uint16],
) -> tuple[NDArray[np.uint64], NDArray[np.uint16], NDArray[np.uint32], NDArray[np.uint8]]:
    """Return block, warp, pc and state space of each row."""
    c, rows = Columns(), len(row_warp)
    c.runs, c.run_site, c.run_count = len(run_site), run_site, run_count
    c.site_pc, c.site_space, c.row_warp = site_pc, site_space, row_warp
    c.warp_block, c.warp_number = warp_block.view(np.int64), warp_number
    block: NDArray[np.uint64] = np.empty(rows, dtype=np.uint64)
    number: NDArray[np.uint16] = np.empty(rows, dtype=np.uint16)
    pc: NDArray[np.uint32] = np.empty(rows, dtype=np.uint32)
    space: NDArray[np.uint8] = np.empty(rows, dtype=np.uint8)
    c.block, c.number, c.pc, c.space = block.view(np.int64), number, pc, space
    _fill()(c.address)
    return block, number, pc, space
