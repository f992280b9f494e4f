"""Check the execution configuration `<<<grid, block, shared bytes>>>` before a launch.

`check_configuration` refuses what no device can launch, `check_cost` a launch that would take too
long, with estimates of its time and trace size. `choose_cluster` determines the cluster shape.
"""

import operator
from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.check_launch import MOST_COUNTED

Dim3: TypeAlias = tuple[int, int, int]
Dimensions: TypeAlias = int | Sequence[int]


class ClusterError(CutraceError):
    """No device can launch clusters of these blocks."""


MAX_GRID: Dim3 = (2**31 - 1, 65535, 65535)
MAX_BLOCK: Dim3 = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_CLUSTER = 16
MAX_SHARED_BYTES = 227 * 1024
MAX_LOCAL_BYTES = 512 * 1024
"""The widest limits of any compute capability (CUDA C++ Programming Guide, "Compute Capabilities").

The replay checks a single device's narrower limits, since one recording serves all devices.
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """A kernel's own limits and needs.

    `.maxntid`, `.reqntid`, `.reqnctapercluster` (() if absent) and `.maxclusterrank` (0); whether
    it only launches in clusters (`.explicitcluster`); static shared memory in bytes per block,
    local memory in bytes per thread, and a description of the largest variable of each.
    """

    max_block: tuple[int, ...] = ()
    required_block: tuple[int, ...] = ()
    shared_static: int = 0
    local: int = 0
    largest_shared: str = ""
    largest_local: str = ""
    cluster: tuple[int, ...] = ()
    most_of_cluster: int = 0
    must_set_cluster: bool = False


def read_dimensions(value: Dimensions, what: str) -> Dim3:
    """Return an int or one to three of them as (x, y, z): `256`, `(16, 16)`, `np.int32(4)`."""
    try:
        parts = [operator.index(value)] if not isinstance(value, Sequence) else list(value)
        sizes = [operator.index(part) for part in parts]
    except TypeError:
        raise CutraceError(
            f"{what} {value!r}: expected an integer or a tuple of one to three integers"
        ) from None
    if not 1 <= len(sizes) <= 3:
        raise CutraceError(f"{what} {value!r}: expected one to three sizes, got {len(sizes)}")
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def check_configuration(kernel: str, grid: Dim3, block: Dim3, dynamic: int, own: Limits) -> None:
    """Refuse what no device can launch; `dynamic` is shared memory in bytes per block."""
    problem = (
        _outside("grid", grid, MAX_GRID)
        or _outside("block", block, MAX_BLOCK)
        or _too_many_threads(block)
        or _against_directives(block, own)
        or _too_much_shared(dynamic, own)
        or _too_much_local(own)
    )
    if problem:
        raise CutraceError(f"{kernel}<<<{_show(grid)}, {_show(block)}, {dynamic}>>>: {problem}")


THREADS_A_SECOND = 5_000_000
"""Estimated speed of one core, in threads per second, on a kernel that does almost nothing."""


REGULAR_BYTES, RANDOM_BYTES = 0.1, 4.5
"""Estimated trace bytes per lane access; measured were 0.06 and 4.2."""


def check_cost(kernel: str, grid: Dim3, block: Dim3, most: int, executed: int = 0) -> None:
    """Refuse to run more than `most` threads, which would take a very long time.

    `executed` blocks of the grid run; 0 means all.
    """
    threads = (executed or prod(grid)) * prod(block)
    if threads > most:
        raise CutraceError(
            f"{kernel}<<<{_show(grid)}, {_show(block)}>>>: {threads} threads, over the limit of "
            f"{most}: every thread is executed, {_duration(threads)} at the very best, and each "
            f"access of a thread adds {_amount(REGULAR_BYTES * threads)} to the trace if regular, "
            f"{_amount(RANDOM_BYTES * threads)} if random; run a part of the blocks "
            "(--sample-blocks 1%, or Session(sample_blocks='1%')), launch fewer of them (one "
            "block's accesses are much like another's), or allow it: record with a higher "
            "--max-threads, or Session(max_threads=...)"
        )
    if prod(grid) * prod(block) > MOST_COUNTED:
        raise CutraceError(
            f"{kernel}<<<{_show(grid)}, {_show(block)}>>>: {prod(grid) * prod(block)} threads; "
            f"{MOST_COUNTED} can be counted, also where only some blocks are run"
        )


def _amount(size: float) -> str:
    """Return `12 GB`: two digits of the largest unit that fits."""
    units = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6))
    name, unit = next((u for u in units if size >= u[1]), ("bytes", 1.0))
    return f"{float(f'{size / unit:.2g}'):.10g} {name}"


def _duration(threads: int) -> str:
    """Return `3 hours`: whole units, rounded down, of the largest that fits."""
    seconds = threads // THREADS_A_SECOND
    units = (("years", 31_556_952), ("days", 86_400), ("hours", 3600), ("minutes", 60))
    name, size = next((u for u in units if seconds >= 2 * u[1]), ("seconds", 1))
    return f"{seconds // size} {name}"


def _show(dim: Dim3) -> str:
    return str(dim[0]) if dim[1:] == (1, 1) else str(dim).replace(" ", "")


def choose_cluster(
    kernel: str, grid: Dim3, request: Dim3 | tuple[()], own: Limits
) -> Dim3 | tuple[()]:
    """Return the cluster shape in blocks: the requested one, or the one the kernel requires.

    Return () if neither exists. Refuse what no device can launch.
    """
    demanded = read_dimensions(own.cluster, ".reqnctapercluster") if any(own.cluster) else ()
    cluster = request or demanded
    if not cluster and own.must_set_cluster:
        raise ClusterError(f"{kernel}<<<{_show(grid)}>>>: the kernel is launched in clusters only")
    if not cluster:
        return ()
    blocks = prod(cluster)
    problem = ""
    if demanded and cluster != demanded:
        problem = f"the kernel demands clusters of {demanded} blocks (__cluster_dims__)"
    elif blocks > MAX_CLUSTER or min(cluster) < 1:
        problem = f"{blocks} blocks a cluster, expected 1 to {MAX_CLUSTER}: no device has more"
    elif own.most_of_cluster and blocks > own.most_of_cluster:
        problem = (
            f"{blocks} blocks a cluster, the kernel allows {own.most_of_cluster} (.maxclusterrank)"
        )
    elif any(size % part for size, part in zip(grid, cluster, strict=True)):
        problem = f"a grid of {_show(grid)} blocks is not made of whole clusters"
    if problem:
        where = f"{kernel}<<<{_show(grid)}>>> in clusters of {_show(cluster)}"
        raise ClusterError(f"{where}: {problem}")
    return cluster


def _outside(what: str, dim: Dim3, limit: Dim3) -> str:
    for axis, size, most in zip("xyz", dim, limit, strict=True):
        if not 1 <= size <= most:
            return f"{what}.{axis} is {size}, expected 1 to {most}"
    return ""


def _too_many_threads(block: Dim3) -> str:
    if prod(block) <= MAX_THREADS:
        return ""
    return f"{prod(block)} threads a block, no device runs over {MAX_THREADS}"


def _against_directives(block: Dim3, own: Limits) -> str:
    if own.max_block and prod(block) > prod(own.max_block):
        most = prod(own.max_block)
        return (
            f"{prod(block)} threads a block, the kernel's __launch_bounds__ (.maxntid) allow {most}"
        )
    if own.required_block and block != read_dimensions(own.required_block, ".reqntid"):
        return f"the kernel demands blocks of {own.required_block} threads (.reqntid)"
    return ""


def _too_much_shared(dynamic: int, own: Limits) -> str:
    static = own.shared_static
    if dynamic < 0:
        return f"{dynamic} bytes of dynamic shared memory, expected 0 or more"
    if static + dynamic <= MAX_SHARED_BYTES:
        return ""
    return (
        f"{static + dynamic} bytes of shared memory a block ({static} static, {dynamic} dynamic), "
        f"no device has over {MAX_SHARED_BYTES} (227 KB){own.largest_shared}"
    )


def _too_much_local(own: Limits) -> str:
    if own.local <= MAX_LOCAL_BYTES:
        return ""
    return (
        f"{own.local} bytes of local memory a thread (arrays of the kernel and its functions), "
        f"no device has over {MAX_LOCAL_BYTES} (512 KB){own.largest_local}"
    )
