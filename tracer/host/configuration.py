"""The execution configuration `<<<grid, block, shared bytes>>>`, and what every device refuses."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from ...errors import CutraceError

Dim3: TypeAlias = tuple[int, int, int]
Dimensions: TypeAlias = int | Sequence[int]

MAX_GRID: Dim3 = (2**31 - 1, 65535, 65535)
MAX_BLOCK: Dim3 = (1024, 1024, 64)
MAX_THREADS = 1024
MAX_SHARED_BYTES = 227 * 1024
"""The widest limits of any compute capability (CUDA C++ Programming Guide, "Compute Capabilities").

A single device's own, narrower limits are the replay's business: one recording answers for all.
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the kernel itself allows: `.maxntid`, `.reqntid` (() where absent), static shared."""

    max_block: tuple[int, ...] = ()
    required_block: tuple[int, ...] = ()
    shared_static: int = 0


def read_dimensions(value: Dimensions, what: str) -> Dim3:
    """An int or one to three of them as (x, y, z): `256`, `(16, 16)`, `np.int32(4)`."""
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
    """Refuse what no device can launch. `dynamic` is the launch's shared memory, bytes a block."""
    problem = (
        _outside("grid", grid, MAX_GRID)
        or _outside("block", block, MAX_BLOCK)
        or _too_many_threads(block)
        or _against_directives(block, own)
        or _too_much_shared(dynamic, own.shared_static)
    )
    if problem:
        raise CutraceError(f"{kernel}<<<{_show(grid)}, {_show(block)}, {dynamic}>>>: {problem}")


def _show(dim: Dim3) -> str:
    return str(dim[0]) if dim[1:] == (1, 1) else str(dim).replace(" ", "")


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


def _too_much_shared(dynamic: int, static: int) -> str:
    if dynamic < 0:
        return f"{dynamic} bytes of dynamic shared memory, expected 0 or more"
    if static + dynamic <= MAX_SHARED_BYTES:
        return ""
    return (
        f"{static + dynamic} bytes of shared memory a block ({static} static, {dynamic} dynamic), "
        f"no device has over {MAX_SHARED_BYTES} (227 KB)"
    )
