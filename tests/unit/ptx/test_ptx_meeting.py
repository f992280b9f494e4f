"""At which warp-wide instructions lanes may meet that parted before."""

import pytest

from cutrace.tracer.ptx.kernel import Kernel
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module

TEXT = """.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n)
{{
.reg .pred %p; .reg .b32 %r<6>;
{guard}
@%p bra ONE;
shfl.sync.bfly.b32 %r1, %r0, 1, 31, {first};
bra DONE;
ONE: {second}
DONE: ret;
}}
"""
BY_THREAD = "mov.u32 %r0, %tid.x; setp.lt.u32 %p, %r0, 16;"
BY_LAUNCH = "ld.param.u32 %r0, [n]; setp.lt.u32 %p, %r0, 16;"
SHUFFLE = "shfl.sync.bfly.b32 %r2, %r0, 2, 31, -1;"


def linked(guard: str = BY_THREAD, first: str = "-1", second: str = SHUFFLE) -> Kernel:
    text = TEXT.format(guard=guard, first=first, second=second)
    return link_kernel(parse_module(text), "k")


def test_two_shuffles_of_a_kind_on_two_sides_of_a_branch_are_a_meeting() -> None:
    kernel = linked()
    assert [kernel.instructions[pc].opcode for pc in sorted(kernel.meetings)] == ["shfl", "shfl"]


def test_a_meeting_is_a_block_of_its_own() -> None:
    kernel = linked()
    alone = {block.first for block in kernel.blocks if block.last == block.first + 1}
    assert kernel.meetings <= alone


@pytest.mark.parametrize(
    "changed",
    [
        {"first": "0x0000ffff", "second": SHUFFLE.replace("-1", "0xffff0000")},
        {"second": SHUFFLE.replace("bfly", "down")},
        {"second": "vote.sync.ballot.b32 %r2, %p, -1;"},
        {"guard": BY_LAUNCH},
        {"second": "mov.u32 %r2, 5;"},
    ],
    ids=["masks apart", "another mode", "another opcode", "all lanes alike", "none"],
)
def test_other_pairs_are_no_meeting(changed: dict[str, str]) -> None:
    assert linked(**changed).meetings == frozenset()


def test_one_shuffle_that_two_sides_reach_before_they_join_is_a_meeting() -> None:
    second = f"setp.eq.u32 %p, %r0, 99; @%p bra DONE; {SHUFFLE}"
    text = TEXT.format(guard=BY_THREAD, first="-1", second=second)
    text = text.replace("shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;\nbra DONE;", "bra TWO;")
    kernel = link_kernel(parse_module(text.replace(SHUFFLE, f"TWO: {SHUFFLE}")), "k")
    assert [kernel.instructions[pc].opcode for pc in kernel.meetings] == ["shfl"]


def test_lanes_of_a_mask_of_those_that_run_together_wait_for_nobody() -> None:
    second = f"setp.eq.u32 %p, %r0, 99; @%p bra DONE; activemask.b32 %r3; {SHUFFLE}"
    text = TEXT.format(guard=BY_THREAD, first="-1", second=second.replace("-1;", "%r4;"))
    text = text.replace("shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;\nbra DONE;", "bra TWO;")
    text = text.replace("activemask", "TWO: activemask").replace(
        "%r3;", "%r3; and.b32 %r4, %r3, 7;"
    )
    assert link_kernel(parse_module(text), "k").meetings == frozenset()
