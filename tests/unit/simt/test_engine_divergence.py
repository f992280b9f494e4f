"""Values of lanes whose warps run apart: nobody else's change, none is taken for another type, and
addresses are as wide as their registers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import assert_same_under_both
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import KernelFault

HEADER = ".version 8.0\n.target sm_75\n.address_size 64\n"
THREADS = 128

ONE_WARP_COMPUTES = """
extern "C" __global__ void k(float *o, const float *in) {
    int t = threadIdx.x;
    float x = in[t];
    if (t < 32) { o[t] = 0; x = %s; }
    o[t] = x;
}
"""


def results(
    folder: Path, text: str, *arrays: NDArray[Any], compiled: str = "compiled"
) -> list[NDArray[Any]]:
    """Run a kernel, CUDA or PTX, in one block under both engines; return its arrays afterwards."""
    kept: list[NDArray[Any]] = []

    def run(gpu: cutrace.Session) -> list[NDArray[Any]]:
        kept[:] = launch(gpu, text, *arrays)
        return list(kept)

    assert_same_under_both(folder, run, compiled)
    return kept


def launch(gpu: cutrace.Session, text: str, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
    """Run the only kernel, CUDA or PTX, in one block; return its arrays afterwards."""
    module = gpu.load_ptx(text) if text.startswith(".version") else gpu.compile(text)
    devices = [gpu.to_device(array) for array in arrays]
    (name,) = module.kernels
    module.get_function(name)[(1,), (THREADS,)](*devices)
    return [device.copy_to_host() for device in devices]


def launch_alone(folder: Path, engine: str, text: str, *arrays: NDArray[Any]) -> None:
    """Run the only kernel under one engine."""
    with cutrace.Session(folder / "alone.cutrace", engine=engine) as gpu:
        launch(gpu, text, *arrays)


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("fmaxf(x, 2.0f)", np.maximum(np.arange(32), 2)),
        ("fminf(x, 2.0f)", np.minimum(np.arange(32), 2)),
        ("-x", -np.arange(32, dtype=np.float32)),  # -0.0 in lane 0
        ("fabsf(x - 9.0f)", np.abs(np.arange(32) - 9)),
        ("copysignf(x, -1.0f)", -np.arange(32, dtype=np.float32)),
        ("__int_as_float(__float_as_int(x) ^ (1 << 31))", -np.arange(32, dtype=np.float32)),
    ],
)
def test_what_one_warp_computes_from_bits_is_not_taken_for_a_number(
    tmp_path: Path, expression: str, first: NDArray[Any]
) -> None:
    x = np.arange(THREADS, dtype=np.float32)
    (out, _) = results(tmp_path, ONE_WARP_COMPUTES % expression, np.zeros_like(x), x)
    expected = np.concatenate((first.astype(np.float32), x[32:]))
    assert out.view(np.uint32).tolist() == expected.view(np.uint32).tolist()


MOVED = """
.visible .entry k(.param .u64 out) {
    .reg .pred %p<4>; .reg .b32 %r<9>; .reg .f32 %f<3>; .reg .b64 %rd<5>;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 32;
    mov.u32 %r2, %r1;
    @!%p1 bra $A;
    add.s32 %r2, %r2, 1000;      // the register of all warps changes for one of them
$A:
    MOVE
    @!%p1 bra $B;
    add.s32 %r2, %r2, 5000;      // and so again: what was moved before stays
$B:
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r3;
    st.global.u32 [%rd3+512], %r2;
    ret;
}
"""


@pytest.mark.parametrize(
    "move",
    [
        "mov.u32 %r3, %r2;",
        "mov.s32 %r3, %r2;",
        "cvt.s32.s32 %r3, %r2;",
        "mov.b32 %f1, %r2; mov.b32 %r3, %f1;",
        "cvt.u32.u32 %r3, %r2;",
        "mov.b64 %rd4, {%r2, %r2}; mov.b64 {%r3, %r4}, %rd4;",
        "selp.b32 %r3, %r2, %r2, %p1;",
        "max.u32 %r3, %r2, %r2;",
        "shfl.sync.idx.b32 %r3, %r2, %r1, 31, -1;",
    ],
)
def test_a_register_that_was_moved_from_does_not_change_what_was_moved(
    tmp_path: Path, move: str
) -> None:
    (out,) = results(tmp_path, HEADER + MOVED.replace("MOVE", move), np.zeros(256, np.uint32))
    thread = np.arange(THREADS)
    before = np.where(thread < 32, thread + 1000, thread)
    assert out[:THREADS].tolist() == before.tolist()
    assert out[THREADS:].tolist() == np.where(thread < 32, before + 5000, before).tolist()


def test_a_lane_has_the_value_of_its_own_turn_of_a_loop(tmp_path: Path) -> None:
    source = """
    extern "C" __global__ void k(int *o, const int *in) {
        int t = threadIdx.x, a = in[t], b = 0, sum = 0;
        #pragma unroll 1
        for (int i = 0; i < 24; i++) {
            b = a;
            if ((t / 32 + i) % 4 == 0) { a = a * 3 + in[i]; sum += a - b; }
            sum += b ^ i;
        }
        o[t] = sum;
    }"""
    data = np.random.default_rng(1).integers(0, 50, THREADS).astype(np.int32)
    (out, _) = results(tmp_path, source, np.zeros(THREADS, np.int32), data)
    a, total = data.copy(), np.zeros(THREADS, np.int32)
    for i in range(24):
        b = a
        with np.errstate(over="ignore"):
            a = np.where((np.arange(THREADS) // 32 + i) % 4 == 0, a * 3 + data[i], a)
            total += a - b + (b ^ i)
    assert out.tolist() == total.tolist()


BELOW_ZERO = """
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<12>; .reg .b64 %rd<5>;
    .shared .align 4 .b8 s[65536];
    mov.u32 %r1, %tid.x;
    neg.s32 %r2, %r1;
    mad.lo.s32 %r3, %r2, 68, START;
    add.s32 %r4, %r3, 8800;
    st.shared.u32 [%r4], %r1;
    ld.shared.u32 %r5, [%r3+8800];
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r5;
    ret;
}
"""


@pytest.mark.parametrize("start", [0, 1088])  # some lanes below zero, and all but the first
def test_an_address_that_goes_below_zero_and_comes_back_keeps_no_carry(
    tmp_path: Path, start: int
) -> None:
    source = HEADER + BELOW_ZERO.replace("START", str(start))
    (out,) = results(tmp_path, source, np.zeros(THREADS, np.uint32))
    assert out.tolist() == list(range(THREADS))


@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_an_address_below_zero_is_named_in_the_width_of_its_register(
    tmp_path: Path, engine: str
) -> None:
    source = HEADER + BELOW_ZERO.replace("START", "0").replace("8800", "68 ")
    where = r"shared address 0xffffffbc in thread \(2, 0, 0\)"  # 68 - 2 * 68 = -68, of 32 bits
    with pytest.raises(KernelFault, match=where):
        launch_alone(tmp_path, engine, source, np.zeros(THREADS, np.uint32))


def test_an_address_of_64_bits_that_goes_around_keeps_no_carry(tmp_path: Path) -> None:
    source = (
        HEADER
        + """
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<3>; .reg .b64 %rd<9>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    mov.u64 %rd4, 0x8000000000000000;
    add.s64 %rd5, %rd3, %rd4;
    add.s64 %rd6, %rd5, %rd4;
    add.s64 %rd7, %rd5, 0x7fffffffffffffff;
    st.global.u32 [%rd6], %r1;
    st.global.u32 [%rd7+513], %r1;
    ret;
}
"""
    )
    (out,) = results(tmp_path, source, np.zeros(2 * THREADS, np.uint32))
    assert out.tolist() == 2 * list(range(THREADS))


def test_a_float_in_a_register_of_bits_is_returned_as_bits(tmp_path: Path) -> None:
    source = (
        HEADER
        + """
.func (.param .f32 back) f(.param .f32 x) {
    .reg .f32 %f<3>;
    ld.param.f32 %f1, [x];
    mul.f32 %f2, %f1, 0f3FC00000;
    st.param.f32 [back], %f2;
    ret;
}
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<5>; .reg .f32 %f<3>; .reg .b64 %rd<5>;
    mov.u32 %r1, %tid.x;
    cvt.rn.f32.u32 %f1, %r1;
    call (%r2), f, (%f1);
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.b32 [%rd3], %r2;
    ret;
}
"""
    )
    (out,) = results(tmp_path, source, np.zeros(THREADS, np.float32), compiled="auto")
    assert out.tolist() == [1.5 * t for t in range(THREADS)]


ONE_REGISTER_TWO_LIVES = (
    HEADER
    + """
.visible .entry k(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %t, %r;
    .reg .b64 %out, %at;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %at, %t, 4;
    add.s64 %at, %out, %at;
    setp.ge.u32 %p, %t, 32;
    @%p ret;
    setp.ge.u32 %p, %t, 16;
    @%p bra A;
B:
    add.u32 %r, %t, 200;
    st.global.u32 [%at], %r;
    setp.eq.u32 %p, %t, 33;
    @%p bra B;
    add.u32 %r, %t, 300;
    bra END;
A:
    add.u32 %r, %t, 100;
END:
    st.global.u32 [%at], %r;
    ret;
}
"""
)


def test_a_value_outlives_a_block_where_its_register_is_short_lived(tmp_path: Path) -> None:
    """One warp of four runs: what A keeps in %r for half of it, B needs for a moment."""
    (found,) = results(tmp_path, ONE_REGISTER_TWO_LIVES, np.zeros(THREADS, np.int32))
    assert found.tolist() == [*range(300, 316), *range(116, 132), *[0] * 96]
