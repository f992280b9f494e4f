"""Kernels by content, so that analyses are cached across launches."""

from functools import lru_cache

from ...ptx.kernel import Kernel
from .spin_loop import endless_blocks, loops, waiting_blocks

KERNELS = 256
"""Maximum number of cached kernels."""


class KernelKey:
    """Cache key of a kernel: equal for kernels of the same text."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._hash = hash((kernel.name, tuple(i.text for i in kernel.instructions)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KernelKey):
            return NotImplemented
        return self.kernel is other.kernel or self.kernel == other.kernel


_KEYS: dict[int, tuple[Kernel, KernelKey]] = {}
_FIRST: dict[KernelKey, KernelKey] = {}


def key_of(kernel: Kernel) -> KernelKey:
    """Return the cache key of a kernel; contents are compared once per kernel."""
    entry = _KEYS.get(id(kernel))
    if entry is None:
        if len(_KEYS) >= KERNELS:
            _KEYS.clear()
            _FIRST.clear()
        mine = KernelKey(kernel)
        entry = _KEYS[id(kernel)] = kernel, _FIRST.setdefault(mine, mine)
    return entry[1]


@lru_cache(maxsize=KERNELS)
def waits_of(kernel: KernelKey) -> frozenset[int]:
    """Return the basic blocks of a kernel's spin loops; see spin_loop.py."""
    return waiting_blocks(kernel.kernel)


@lru_cache(maxsize=KERNELS)
def has_loops(kernel: KernelKey) -> bool:
    """Return whether a kernel may run an instruction twice."""
    return any(True for _ in loops(kernel.kernel))


@lru_cache(maxsize=KERNELS)
def endless_of(kernel: KernelKey) -> frozenset[int]:
    """Return the basic blocks of a kernel's loops without exit; see spin_loop.py."""
    return endless_blocks(kernel.kernel)
