"""The special registers of a launch: %tid, %ctaid, %laneid and others, as arrays."""

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...ptx.instruction import VECTOR_SPECIALS
from ...ptx.kernel import Kernel, Special
from ..kernel.launch import Chip, Launch
from ..ops.lanes import LANES, Array, scalar

Dim3: TypeAlias = tuple[int, int, int]
AXES = "xyz"
ONE_BLOCK_CLUSTER: Dim3 = (1, 1, 1)
"""The default cluster: each block is one."""

_ZEROS = (
    *("%current_graph_exec", "%clock_hi"),
    *(f"%reserved_smem_offset_{name}" for name in ("begin", "0", "1")),
    *(f"%envreg{number}" for number in range(32)),
    *(f"%pm{number}" for number in range(8)),
    *(f"%pm{number}_64" for number in range(8)),
)
_ZERO = scalar(0, np.dtype(np.uint32))
_SAME_EVERYWHERE: Mapping[str, Array] = {
    **dict.fromkeys(_ZEROS, _ZERO),
    **{f"{name}.w": _ZERO for name in VECTOR_SPECIALS},
}
"""Performance counters are 0, driver registers are 0, and clocks stay below 2^32."""

CLOCKS = frozenset({"%clock", "%clock64"})
"""Instructions that the warp has executed: an instruction takes one cycle here."""

PLACE_REGISTERS = frozenset({"%smid", "%warpid"})
"""Registers that locate a block on the chip. A kernel that reads one runs in waves of as many
blocks as the chip holds at once.
"""


def reads_place(kernel: Kernel) -> bool:
    """Return whether a kernel reads its place on the chip."""
    operands = (o for i in kernel.instructions for o in i.operands)
    return any(isinstance(o, Special) and o.name in PLACE_REGISTERS for o in operands)


RESERVED_USED = 288
"""Bytes in use of each block's reserved shared memory, as measured on an H200
(tests/validate/special_registers.csv).
"""


@cache
def constant_specials() -> frozenset[str]:
    """Return the names of the special registers that are constant for a thread."""
    return frozenset(special_values(Launch((1, 1, 1), (1, 1, 1), 0, (), print), np.zeros(1, "i8")))


def special_values(launch: Launch, numbers: NDArray[np.int64]) -> dict[str, Array]:
    """Return the special registers as uint32 of shape (blocks or 1, columns or 1)."""
    own = block_values(launch, numbers), place_values(launch, numbers)
    return {**thread_values(launch), **own[0], **own[1]}


def special_registers(
    launch: Launch, numbers: NDArray[np.int64], names: Iterable[str]
) -> dict[str, Array]:
    """Return special registers of the warps of these blocks, (warps or 1, 32 or 1)."""
    values, warps = special_values(launch, numbers), -(-launch.threads // LANES)
    return {name: _by_warp(values[name], len(numbers), warps) for name in names}


def _by_warp(value: Array, blocks: int, warps: int) -> Array:
    """Return (blocks or 1, columns or 1) as (warps or 1, 32 or 1)."""
    rows, columns = value.shape
    if rows == 1 and columns in (1, LANES):
        return value
    if columns == 1:
        return np.repeat(value, warps, axis=0)
    by_warp = value.reshape(rows, -1, LANES)
    return np.broadcast_to(by_warp, (blocks, warps, LANES)).reshape(-1, LANES)


def block_values(launch: Launch, numbers: NDArray[np.int64]) -> dict[str, Array]:
    """Return the special registers of blocks, without their places, (blocks, 1)."""
    block = numbers.astype(np.uint64)[:, None]
    cluster = launch.cluster or ONE_BLOCK_CLUSTER
    rank = none = np.zeros(block.shape, dtype=np.uint32)
    values: dict[str, Array] = {}
    for axis, name in enumerate(AXES):
        number = within = none
        if launch.grid[axis] > 1:
            number = (block // prod(launch.grid[:axis]) % launch.grid[axis]).astype(np.uint32)
        size = np.uint32(cluster[axis])
        if size > 1:
            within = number % size
            rank = rank + within * np.uint32(prod(cluster[:axis]))
        values[f"%ctaid.{name}"] = number
        values[f"%clusterid.{name}"] = number // size if size > 1 else number
        values[f"%cluster_ctaid.{name}"] = within
    return {**values, "%cluster_ctarank": rank}


def place_values(launch: Launch, numbers: NDArray[np.int64]) -> dict[str, Array]:
    """Return %smid, (blocks, 1), and %warpid, unique among the resident warps of an SM, (blocks,
    columns).
    """
    warps = -(-launch.threads // LANES)
    slot = (numbers // launch.chip.sms % launch.resident)[:, None]
    own = np.repeat(np.arange(warps), LANES)[None]
    return {
        "%smid": launch.chip.sm(numbers)[:, None].astype(np.uint32),
        "%warpid": (slot * warps + own).astype(np.uint32),
    }


OF_ONE_LAUNCH = frozenset({"%gridid", "%globaltimer_hi"})
"""Special registers that follow from the number of the launch."""


def thread_values(launch: Launch) -> Mapping[str, Array]:
    """Return the special registers that are the same in all blocks, (1, columns) or (1, 1)."""
    same = _thread_values(
        launch.grid, launch.block, launch.shared_dynamic, launch.cluster, launch.chip
    )
    return {
        **same,
        "%gridid": scalar(launch.number, np.dtype(np.uint64)),
        "%globaltimer_hi": scalar(launch.begin >> 32, np.dtype(np.uint32)),
    }


@lru_cache(maxsize=16)
def _thread_values(
    grid: Dim3, block: Dim3, shared_dynamic: int, explicit: Dim3 | tuple[()], chip: Chip
) -> Mapping[str, Array]:
    cluster = explicit or ONE_BLOCK_CLUSTER
    threads = prod(block)
    columns = -(-threads // LANES) * LANES
    thread = np.arange(columns, dtype=np.uint32)[None]
    values = {
        **_SAME_EVERYWHERE,
        "%laneid": thread % LANES,
        "%nwarpid": scalar(chip.warps, np.dtype(np.uint32)),
        "%nsmid": scalar(chip.sms, np.dtype(np.uint32)),
        "%reserved_smem_offset_cap": scalar(chip.shared_reserved, np.dtype(np.uint32)),
        "%reserved_smem_offset_end": scalar(
            min(RESERVED_USED, chip.shared_reserved), np.dtype(np.uint32)
        ),
        "%dynamic_smem_size": scalar(shared_dynamic, np.dtype(np.uint32)),
        "%is_explicit_cluster": scalar(len(explicit) > 0, np.dtype(np.uint32)),
        "%cluster_nctarank": scalar(prod(cluster), np.dtype(np.uint32)),
    }
    for axis, name in enumerate(AXES):
        values[f"%tid.{name}"] = thread // prod(block[:axis]) % block[axis]
        values[f"%nclusterid.{name}"] = scalar(grid[axis] // cluster[axis], np.dtype(np.uint32))
        values[f"%cluster_nctaid.{name}"] = scalar(cluster[axis], np.dtype(np.uint32))
        values[f"%ntid.{name}"] = scalar(block[axis], np.dtype(np.uint32))
        values[f"%nctaid.{name}"] = scalar(grid[axis], np.dtype(np.uint32))
    lane = thread % LANES
    one, low = np.uint32(1), (np.uint32(1) << lane) - np.uint32(1)
    values["%lanemask_eq"] = one << lane
    values["%lanemask_lt"] = low
    values["%lanemask_le"] = low | (one << lane)
    values["%lanemask_gt"] = ~(low | (one << lane))
    values["%lanemask_ge"] = ~low
    for value in values.values():
        value.setflags(write=False)
    return values
