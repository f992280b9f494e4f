"""From a module to a kernel: blocks, successors, reachable functions, one numbering."""

import pytest
from ptx.ptx_text import kernel_around, module_of

from cutrace.base.errors import CutraceError
from cutrace.tracer.ptx.kernel import Kernel
from cutrace.tracer.ptx.link import link_kernel


def shape(kernel: Kernel) -> list[tuple[int, int, tuple[int, ...], int]]:
    """First and last instruction, successors and meeting place of each block."""
    return [(b.first, b.last, b.successors, b.join) for b in kernel.blocks]


def test_straight_text_is_one_block() -> None:
    kernel = kernel_around("add.u32 %r1, %r2, 1; bar.warp.sync -1; LABEL: ret;")
    assert shape(kernel) == [(0, 3, (), 1)]
    assert kernel.functions[0].exit == 1


def test_a_guarded_branch_goes_to_the_taken_block_first() -> None:
    kernel = kernel_around("@%p1 bra ELSE; mov.u32 %r1, 1; bra.uni END; ELSE: nop; END: ret;")
    assert shape(kernel) == [
        (0, 1, (2, 1), 3),
        (1, 3, (3,), 3),
        (3, 4, (3,), 3),
        (4, 5, (), 4),
    ]


def test_a_branch_to_the_next_instruction_lists_it_twice() -> None:
    assert shape(kernel_around("@%p1 bra NEXT; NEXT: ret;")) == [(0, 1, (1, 1), 1), (1, 2, (), 2)]


def test_barriers_end_blocks() -> None:
    body = """bar.sync 0; bar.arrive 1, 64; @%p1 bar.red.popc.u32 %r1, 0, %p2;
    barrier.sync 0; barrier.cluster.arrive; bar.warp.sync -1; ret;"""
    kernel = kernel_around(body)
    assert [(b.first, b.last) for b in kernel.blocks] == [
        (0, 1),
        (1, 2),
        (2, 3),
        (3, 4),
        (4, 5),
        (5, 7),
    ]
    assert [b.successors for b in kernel.blocks] == [(1,), (2,), (3,), (4,), (5,), ()]


@pytest.mark.parametrize("opcode", ["ret", "exit", "trap"])
def test_a_guarded_end_falls_through_only(opcode: str) -> None:
    assert [b.successors for b in kernel_around(f"@%p1 {opcode}; ret;").blocks] == [(1,), ()]


def test_an_indexed_branch_lists_all_targets_in_order() -> None:
    kernel = kernel_around(
        """LIST: .branchtargets C, A, C, B;
        brx.idx %r1, LIST; A: bra.uni END; B: bra.uni END; C: nop; END: ret;"""
    )
    assert [b.successors for b in kernel.blocks] == [(3, 1, 3, 2), (4,), (4,), (4,), ()]
    assert kernel.blocks[0].join == 4


CALLEES = """
.extern .func (.param .b32 r) vprintf (.param .b64 x, .param .b64 y);
.func second() { ret; }
.func first() { call second; ret; }
.func unused() { ret; }
"""


def test_reachable_functions_follow_in_order_of_first_call() -> None:
    kernel = kernel_around("call first; call second; ret;", CALLEES)
    assert [span.function.name for span in kernel.functions] == ["k", "first", "second"]
    assert [(b.function, b.first, b.last, b.successors) for b in kernel.blocks] == [
        (0, 0, 1, (1,)),
        (0, 1, 2, (2,)),
        (0, 2, 3, ()),
        (1, 3, 4, (4,)),
        (1, 4, 5, ()),
        (2, 5, 6, ()),
    ]
    assert [(span.entry, span.exit) for span in kernel.functions] == [(0, 6), (3, 7), (5, 8)]
    assert [b.rank for b in kernel.blocks] == [0, 1, 2, 3, 4, 5]
    assert [b.join for b in kernel.blocks] == [1, 2, 6, 4, 7, 8]


def test_calls_of_functions_without_a_body_stay_inside_a_block() -> None:
    kernel = kernel_around("call (%r1), vprintf, (%rd1, %rd2); ret;", CALLEES)
    assert shape(kernel) == [(0, 2, (), 1)]


def test_recursion_and_aliases_reach_a_function_once() -> None:
    outside = ".func f() { call f; ret; }\n.alias g, f;"
    kernel = kernel_around("call g; call f; ret;", outside)
    assert [span.function.name for span in kernel.functions] == ["k", "f"]


INDIRECT = """
.func a() { ret; }
.func b() { ret; }
.func c() { ret; }
.func d() { ret; }
.global .u64 table[1] = {c};
"""


def test_an_indirect_call_reaches_all_functions_whose_address_is_taken() -> None:
    body = "P: .callprototype _ (); mov.u64 %rd1, a; call %rd1, P; call b; ret;"
    kernel = kernel_around(body, INDIRECT)
    assert [span.function.name for span in kernel.functions] == ["k", "a", "c", "b"]
    assert kernel.blocks[0].successors == (1,)


def test_a_list_of_targets_narrows_an_indirect_call() -> None:
    body = "T: .calltargets d; mov.u64 %rd1, a; call %rd1, T; ret;"
    kernel = kernel_around(body, INDIRECT)
    assert [span.function.name for span in kernel.functions] == ["k", "d"]


def test_a_loop_runs_before_what_follows_it() -> None:
    # the text has the exit (blocks 1) before the body (blocks 2)
    kernel = kernel_around("HEAD: @%p1 bra BODY; ret; BODY: add.u32 %r1, %r1, 1; bra HEAD;")
    assert [b.rank for b in kernel.blocks] == [0, 2, 1]


def test_a_kernel_that_is_not_there_lists_those_that_are() -> None:
    module = module_of(".entry reverse() { ret; }\n.entry transpose() { ret; }\n.func f() { ret; }")
    with pytest.raises(CutraceError, match=r"no kernel revers in .* has reverse, transpose; near"):
        link_kernel(module, "revers")
    with pytest.raises(CutraceError, match="no kernel f "):
        link_kernel(module, "f")


def test_calling_a_variable_is_an_error() -> None:
    with pytest.raises(CutraceError, match="calls table, expected a function"):
        kernel_around("call table; ret;", INDIRECT)


def test_code_that_is_not_reached_does_not_keep_lanes_from_meeting() -> None:
    kernel = kernel_around(
        "@%p1 bra END; @%p2 bra GOOD; bra.uni NEVER;"
        "GOOD: mov.u32 %r1, 1; END: ret; NEVER: bra.uni NEVER;"
    )
    good, end = (b.number for b in kernel.blocks if b.first in (3, 4))
    assert [b.join for b in kernel.blocks][:2] == [end, good]
