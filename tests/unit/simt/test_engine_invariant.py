"""The invariants of a wave are asserted where they are asked for, and say what is broken."""

import pytest

from cutrace.tracer.simt.warp.invariant import require_tree
from cutrace.tracer.simt.warp.stack_entry import StackEntry


def test_splits_of_a_warp_must_not_share_lanes() -> None:
    require_tree([StackEntry(9, 10, 0b11, 0), StackEntry(1, 9, 0b01, 0), StackEntry(2, 9, 0b10, 0)])
    with pytest.raises(AssertionError, match="some lanes in common"):
        require_tree([StackEntry(1, 9, 0b011, 0), StackEntry(2, 9, 0b110, 0)])
