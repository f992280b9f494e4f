"""The invariants of a wave are asserted where they are asked for, and say what is broken."""

from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.tracer.simt.interp.interpreter import Interpreter
from cutrace.tracer.simt.memory.address_facts import AddressCache
from cutrace.tracer.simt.rows.pattern import PatternTable
from cutrace.tracer.simt.warp.invariant import require_alone, require_facts, require_tree
from cutrace.tracer.simt.warp.stack_entry import StackEntry


def test_an_array_that_another_register_has_a_view_of_must_not_change_in_place() -> None:
    array = np.zeros((2, 32), dtype=np.uint32)
    require_alone(array, [np.zeros_like(array)])
    with pytest.raises(AssertionError, match="1 other values change"):
        require_alone(array, [array.view(np.float32)])


def test_facts_must_be_those_of_the_value_in_the_width_of_its_register() -> None:
    store = AddressCache(PatternTable())
    value = (np.arange(32, dtype=np.uint32) * 4 - np.uint32(64))[None]
    low, _ = store.of(value, None, 32)
    further = value + np.uint32(64)
    store.note_sum(further, value, np.full((1, 1), 64, np.uint32))
    found = store.of(further, None, 32)
    require_facts(further, 0, None, found)
    with pytest.raises(AssertionError, match="facts are of another value"):
        require_facts(further, 0, None, (low, 64))


def test_splits_of_a_warp_must_not_share_lanes() -> None:
    require_tree([StackEntry(9, 10, 0b11, 0), StackEntry(1, 9, 0b01, 0), StackEntry(2, 9, 0b10, 0)])
    with pytest.raises(AssertionError, match="some lanes in common"):
        require_tree([StackEntry(1, 9, 0b011, 0), StackEntry(2, 9, 0b110, 0)])


def test_a_register_that_is_owned_though_it_is_shared_is_found_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<5>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 32;
    mov.u32 %r2, %r1;
    @!%p1 bra $A;
    add.s32 %r2, %r2, 1000;
$A:
    mov.s32 %r3, %r2;
    @!%p1 bra $B;
    add.s32 %r2, %r2, 5000;
$B:
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r3;
    st.global.u32 [%rd3+512], %r2;
    ret;
}
"""

    def record(name: str) -> None:
        with cutrace.Session(tmp_path / name, engine="array") as gpu:
            out = gpu.to_device(np.zeros(256, np.int32))
            gpu.load_ptx(source).get_function("k")[(1,), (128,)](out)

    monkeypatch.setenv("CUTRACE_INVARIANTS", "1")
    record("right.cutrace")
    # as if nobody looked at them
    monkeypatch.setattr(Interpreter, "lend", lambda interpreter, slots: None)
    with pytest.raises(AssertionError, match="change with a register"):
        record("wrong.cutrace")
