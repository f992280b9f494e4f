"""Kernels by content, so that what was found out of one is found again for its next launch."""

from functools import lru_cache

from ...ptx.kernel import Kernel
from .spin_loop import endless_blocks, loops, waiting_blocks

KERNELS = 256
"""Kernels remembered at most."""


class Alike:
    """A kernel that equals every other of the same text."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._hash = hash((kernel.name, tuple(i.text for i in kernel.instructions)))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Alike):
            return NotImplemented
        return self.kernel is other.kernel or self.kernel == other.kernel


_FOUND: dict[int, tuple[Kernel, Alike]] = {}
_FIRST: dict[Alike, Alike] = {}


def alike(kernel: Kernel) -> Alike:
    """Return what stands for all kernels of this text; contents are compared once a kernel."""
    found = _FOUND.get(id(kernel))
    if found is None:
        if len(_FOUND) >= KERNELS:
            _FOUND.clear()
            _FIRST.clear()
        mine = Alike(kernel)
        found = _FOUND[id(kernel)] = kernel, _FIRST.setdefault(mine, mine)
    return found[1]


@lru_cache(maxsize=KERNELS)
def waits_of(kernel: Alike) -> frozenset[int]:
    """Return the basic blocks of a kernel's waiting loops; see spin_loop.py."""
    return waiting_blocks(kernel.kernel)


@lru_cache(maxsize=KERNELS)
def has_loops(kernel: Alike) -> bool:
    """Whether a kernel may run an instruction twice."""
    return any(True for _ in loops(kernel.kernel))


@lru_cache(maxsize=KERNELS)
def endless_of(kernel: Alike) -> frozenset[int]:
    """Return the basic blocks of a kernel's loops that nothing leaves; see spin_loop.py."""
    return endless_blocks(kernel.kernel)
