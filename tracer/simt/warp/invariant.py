"""Invariants of a wave, asserted at run time if CUTRACE_INVARIANTS is set, as in tests.

Registers share arrays, arrays are changed in place where a single register owns them, and address
facts are cached for later accesses. All three are correct only while these invariants hold.
"""

import os
from collections.abc import Iterable, Sequence

import numpy as np

from ..memory.address_facts import AddressRange, add_offset, as_addresses
from ..ops.lanes import Array, Mask
from .stack_entry import StackEntry


def asserted() -> bool:
    """Return whether invariants are asserted."""
    return bool(os.environ.get("CUTRACE_INVARIANTS"))


def require_alone(array: Array, others: Iterable[Array]) -> None:
    """Assert that an array about to change in place shares memory with no other array."""
    shared = [other for other in others if other is not array and np.shares_memory(other, array)]
    assert not shared, f"{len(shared)} other values change with a register that changes in place"


def require_facts(
    value: Array, offset: int, lanes: Mask | None, facts_and_delta: tuple[AddressRange | None, int]
) -> None:
    """Assert that cached facts equal those of the value plus offset, within the register's
    width.
    """
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
    """Assert that values have their register's width and a shape that broadcasts to the lanes."""
    for slot in slots:
        value, zero = frame[slot], zeros[slot]
        assert value.dtype.itemsize == zero.dtype.itemsize, f"register {slot} has another width"
        assert np.broadcast_shapes(value.shape, shape) == shape, f"register {slot} has other lanes"


def require_tree(stack: Sequence[StackEntry]) -> None:
    """Assert that masks of entries are disjoint, but for those of their ancestors."""
    for place, split in enumerate(stack):
        for other in stack[place + 1 :]:
            common = split.mask & other.mask
            assert common in (0, other.mask), "splits of a warp have some lanes in common"
