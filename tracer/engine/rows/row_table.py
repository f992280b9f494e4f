"""The columns of access rows, from what machine code leaves of each row, compiled."""

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....native.loop_text import translate
from ....native.machine_code import compile_assembly
from ....native.structure import I32, I64, U8, U16, U32, Struct


class Columns(Struct):
    """`runs` runs of rows, `run_count` rows each of the access `run_site`, whose pc, part and state
    space are `site_pc`, `site_part` and `site_space`; of each row its `row_step`, `row_base`, and
    `row_warp`, its warp in the wave, which is the warp `warp_number` of the block `warp_block`.

    To be filled are the columns `block`, `warp`, `step`, `part`, `pc`, `space` and `base`.
    """

    runs: int
    run_site: I32
    run_count: I32
    site_pc: U32
    site_part: U8
    site_space: U8
    row_warp: I32
    row_step: U32
    row_base: I64
    warp_block: I64
    warp_number: U16
    block: I64
    warp: U16
    step: U32
    part: U8
    pc: U32
    space: U8
    base: I64


def fill_columns(c: Columns) -> None:
    """Fill the columns."""
    row_warp = c.row_warp
    row_step = c.row_step
    row_base = c.row_base
    warp_block = c.warp_block
    warp_number = c.warp_number
    block = c.block
    warp = c.warp
    step = c.step
    parts = c.part
    pcs = c.pc
    spaces = c.space
    base = c.base
    first = 0
    for run in range(c.runs):
        last = first + c.run_count[run]
        pc = c.site_pc[c.run_site[run]]
        part = c.site_part[c.run_site[run]]
        space = c.site_space[c.run_site[run]]
        for row in range(first, last):
            block[row] = warp_block[row_warp[row]]
            warp[row] = warp_number[row_warp[row]]
            step[row] = row_step[row]
            parts[row] = part
            pcs[row] = pc
            spaces[row] = space
            base[row] = row_base[row]
        first = last


@cache
def _fill() -> Callable[[int], int]:
    find = compile_assembly(translate([fill_columns]), vectors=False)
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(find("fill_columns"))


_COLUMNS = {
    "block": "u8",
    "warp": "u2",
    "step": "u4",
    "part": "u1",
    "pc": "u4",
    "space": "u1",
    "base": "u8",
}


def columns_of(rows: int, **given: Any) -> dict[str, NDArray[Any]]:
    """Return the columns of so many `rows`, all but their patterns; `given` are arrays of Columns,
    unsigned ones of 64 bits as they are in a trace."""
    c = Columns()
    filled = {name: np.empty(rows, dtype=kind) for name, kind in _COLUMNS.items()}
    c.runs = len(given["run_site"])
    for name, array in (given | filled).items():
        setattr(c, name, array)
    _fill()(c.address)
    return filled
