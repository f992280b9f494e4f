"""Lanes of a warp that meet though they have parted: the same under both engines."""

import re
from pathlib import Path

import numpy as np
import pytest
from engines import assert_same_under_both
from numpy.typing import NDArray

import cutrace
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.simt.kernel.spin_loop import link_with_divergent_sync

MEETINGS = next((Path(__file__).parents[2] / "validate" / "lanes").glob("*meeting*.ptx"))
KERNELS = re.findall(r"\.entry\s+(meet_\w+)", MEETINGS.read_text())

HEADER = ".version 8.3\n.target sm_75\n.address_size 64\n"

# Odd lanes shuffle in one place, even ones in another: each has the value of lane 7 then.
FLOATS = """.visible .entry k(.param .u64 out)
{
.reg .pred %p<3>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<4>;
mov.u32 %r0, %tid.x; cvt.rn.f32.u32 %f0, %r0; and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0;
@%p0 bra EVEN;
shfl.sync.idx.b32 %f1|%p1, %f0, 7, 31, -1; bra DONE;
EVEN: shfl.sync.idx.b32 %f1|%p1, %f0, 7, 31, -1;
add.f32 %f1, %f1, 0f3F000000;
DONE: ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 4; add.s64 %rd2, %rd0, %rd1;
st.global.f32 [%rd2], %f1; ret;
}"""

# The shuffle is the first instruction after a call, whose result it moves.
CALL = """.func (.reg .b32 %r1) f(.reg .b32 %r0) { add.u32 %r1, %r0, 100; ret; }
.visible .entry k(.param .u64 out)
{
.reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
mov.u32 %r0, %tid.x; and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 0;
@%p0 bra EVEN;
call (%r2), f, (%r0);
shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; bra DONE;
EVEN: shfl.sync.bfly.b32 %r3, %r0, 1, 31, -1;
DONE: ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 4; add.s64 %rd2, %rd0, %rd1;
st.global.u32 [%rd2], %r3; ret;
}"""

# Lanes leave the loop one after the other, as its count has it; the atomic never ends it.
BEHIND_A_LOOP = """.visible .entry k(.param .u64 out)
{
.reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
mov.u32 %r0, %tid.x; ld.param.u64 %rd0, [out]; mul.wide.u32 %rd1, %r0, 4; add.s64 %rd2, %rd0, %rd1;
mul.lo.u32 %r1, %r0, 16; mov.u32 %r2, 0;
LOOP: setp.ge.u32 %p0, %r2, %r1; @%p0 bra DONE;
atom.global.max.u32 %r3, [%rd2], 1; setp.gt.u32 %p1, %r3, 4000000000; @%p1 bra DONE;
add.u32 %r2, %r2, 1; bra LOOP;
DONE: shfl.sync.down.b32 %r4, %r2, 1, 31, -1;
st.global.u32 [%rd2], %r4; ret;
}"""

# The same loop; then all lanes meet, and transpose a matrix of their numbers.
ALIGNED_BEHIND_A_LOOP = BEHIND_A_LOOP.replace(
    "shfl.sync.down.b32 %r4, %r2, 1, 31, -1;",
    "bar.warp.sync -1; st.global.u32 [%rd2], %r0; ld.global.u32 %r5, [%rd2];"
    "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r5;",
)


def left(folder: Path, ptx: str) -> NDArray[np.generic]:
    """What a warp leaves in 32 words, the same under both engines."""
    found: list[NDArray[np.generic]] = []

    def run(gpu: cutrace.Session) -> list[NDArray[np.generic]]:
        out = gpu.to_device(np.zeros(32, np.uint32), name="out")
        gpu.load_ptx(ptx).get_function("k")[1, 32](out)
        found.append(out.copy_to_host())
        return found[-1:]

    assert_same_under_both(folder, run)
    return found[0]


@pytest.mark.parametrize("name", KERNELS)
def test_lanes_that_meet_leave_the_same_trace_under_both_engines(name: str, tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[NDArray[np.generic]]:
        values = gpu.to_device(np.arange(64, dtype=np.uint32) * 7 + 1, name="in")
        out = gpu.to_device(np.zeros(8 * 64, np.uint32), name="out")
        gpu.load_ptx(MEETINGS.read_text()).get_function(name)[1, 64](values, out)
        return [out.copy_to_host()]

    trace = assert_same_under_both(tmp_path, run)
    assert cutrace.read_trace(trace).launches[0].accesses().num_rows > 0


def test_floats_that_meet_keep_their_bits(tmp_path: Path) -> None:
    found = left(tmp_path, HEADER + FLOATS).view(np.float32)
    assert found.tolist() == [7.5, 7.0] * 16


def test_what_a_function_gives_back_is_there_when_lanes_meet_behind_the_call(
    tmp_path: Path,
) -> None:
    lanes = np.arange(32)
    odd_gets, even_gets = lanes ^ 1, (lanes ^ 1) + 100
    np.testing.assert_array_equal(
        left(tmp_path, HEADER + CALL), np.where(lanes % 2, odd_gets, even_gets)
    )


def test_lanes_that_left_a_waiting_loop_wait_for_the_others_at_a_shuffle(tmp_path: Path) -> None:
    lanes = np.arange(32)
    turns = np.where(lanes < 31, 16 * (lanes + 1), 16 * lanes)  # the last reads itself
    np.testing.assert_array_equal(left(tmp_path, HEADER + BEHIND_A_LOOP), turns)


def test_lanes_that_met_run_what_needs_all_of_them_together(tmp_path: Path) -> None:
    out = left(tmp_path, HEADER + ALIGNED_BEHIND_A_LOOP)
    halves = np.arange(32, dtype=np.uint32).view(np.uint16).reshape(8, 8)
    assert out.tolist() == np.ascontiguousarray(halves.T).view(np.uint32).ravel().tolist()


def test_only_what_lies_behind_a_waiting_loop_is_a_meeting() -> None:
    before = BEHIND_A_LOOP.replace("LOOP:", "shfl.sync.down.b32 %r5, %r1, 1, 31, -1;\nLOOP:")
    kernel = link_with_divergent_sync(parse_module(HEADER + before), "k")
    assert [kernel.instructions[pc].text.split()[1] for pc in kernel.meetings] == ["%r4,"]
    counted = BEHIND_A_LOOP.replace("@%p1 bra DONE;", "")
    assert link_with_divergent_sync(parse_module(HEADER + counted), "k").meetings == frozenset()
