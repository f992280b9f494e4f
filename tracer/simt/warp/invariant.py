"""Invariants of a wave, asserted while it runs if CUTRACE_INVARIANTS is set: in tests.

Registers share arrays, arrays change in place where only one register can hold them, and what is
known of a value is kept for the next access. Each of these is right as long as what stands here is.
"""

import os
from collections.abc import Iterable, Sequence

import numpy as np

from ..memory.address_facts import AddressRange, add_offset, as_addresses
from ..ops.lanes import Array, Mask
from .stack_entry import StackEntry


def asserted() -> bool:
    """Whether invariants are to be asserted."""
    return bool(os.environ.get("CUTRACE_INVARIANTS"))


def require_alone(array: Array, others: Iterable[Array]) -> None:
    """Assert that no other array has memory of one that is about to change in place."""
    shared = [other for other in others if other is not array and np.shares_memory(other, array)]
    assert not shared, f"{len(shared)} other values change with a register that changes in place"


def require_facts(
    value: Array, offset: int, lanes: Mask | None, facts_and_delta: tuple[AddressRange | None, int]
) -> None:
    """Assert that facts say of a value plus an offset what it says itself in its own width."""
    facts, delta = facts_and_delta
    own = as_addresses(add_offset(value, offset))
    active = np.broadcast_to(
        True if lanes is None else lanes,
        np.broadcast_shapes(own.shape, np.shape(True if lanes is None else lanes)),
    )
    if facts is None:
        assert not active.any(), "facts are missing though lanes are active"
        return
    own = np.broadcast_to(own, active.shape)[active]
    with np.errstate(over="ignore"):
        expected = np.broadcast_to(facts.addresses, active.shape)[active] + delta
    assert (expected == own).all(), "facts are of another value"
    assert facts.low + delta == own.min(), "the lowest address is another"
    assert facts.high + delta == own.max(), "the highest address is another"


def require_registers(
    frame: Sequence[Array], zeros: Sequence[Array], slots: Iterable[int], shape: tuple[int, int]
) -> None:
    """Assert that what a block leaves is as wide as its registers, and has a value a lane."""
    for slot in slots:
        value, zero = frame[slot], zeros[slot]
        assert value.dtype.itemsize == zero.dtype.itemsize, f"register {slot} has another width"
        assert np.broadcast_shapes(value.shape, shape) == shape, f"register {slot} has other lanes"


def require_tree(stack: Sequence[StackEntry]) -> None:
    """Assert that splits have no lanes in common but for those of the ones that they wait for."""
    for place, split in enumerate(stack):
        for other in stack[place + 1 :]:
            common = split.mask & other.mask
            assert common in (0, other.mask), "splits of a warp have some lanes in common"
