"""Which functions of a kernel can call themselves, and how deep a lane has room for."""

from functools import lru_cache

from ...ptx.digraph import cycles
from ...ptx.kernel import Kernel
from .function_pointer import calls
from .same_kernel import KERNELS, Alike, alike
from .variable_layout import local_layout

DEEPEST = 256
"""Levels of recursion that a lane has room for."""

LOCAL_BYTES = 512 * 1024
"""Local memory that a lane may have in all its levels, as on every device."""


def levels_within(frame: int) -> int:
    """Return how many levels of `frame` bytes of local variables a lane has room for."""
    return min(DEEPEST, max(LOCAL_BYTES // max(frame, 1), 1))


def recursive_functions(kernel: Kernel) -> frozenset[int]:
    """Return the indices of the functions that can call themselves."""
    return _recursive(alike(kernel))


@lru_cache(maxsize=KERNELS)
def _recursive(like: Alike) -> frozenset[int]:
    graph: dict[int, set[int]] = {}
    for caller, _, callee in calls(like.kernel):
        graph.setdefault(caller, set()).add(callee)
        graph.setdefault(callee, set())
    return frozenset[int]().union(*cycles(graph))


def local_bytes(kernel: Kernel) -> int:
    """Return the local memory that a thread needs, in bytes, with all levels of its recursion."""
    return local_stride(kernel) * most_levels(kernel)


def local_stride(kernel: Kernel) -> int:
    """Return the local memory of one level, in bytes: a multiple of 16."""
    return -(-local_layout(kernel).size // 16) * 16


def most_levels(kernel: Kernel) -> int:
    """Return how deep functions may call themselves."""
    return levels_within(local_stride(kernel)) if recursive_functions(kernel) else 1
