"""Products of matrices, their loads and stores, and `cp.async` in machine code: the same bits and
the same trace as in the array engine."""

from pathlib import Path

import numpy as np
import pytest
from engines import assert_same_under_both
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import KernelFault
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.simt.codegen.emit_kernel import write_kernel

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
ENTRY = ".visible .entry k(.param .u64 d, .param .u64 a, .param .u64 b, .param .u64 c)"
SPECIAL = {
    16: [0, 0x8000, 0x7C00, 0xFC00, 0x7E00, 1, 0x8001, 0x7F80, 0xFF80, 0x3F80, 0x3C00, 0x7BFF],
    32: [0, 1 << 31, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 1, 0x7F7F_FFFF, 0x3F80_0000],
    64: [0, 1 << 63, 0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, 1, 0x3FF0 << 48],
}
"""Zeros, infinities, NaNs, the smallest and the largest numbers of the formats of these bits."""

FORMS = {
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32": (16, (4, 4, 2, 4)),
    "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16": (16, (2, 2, 1, 2)),
    "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32": (16, (4, 2, 1, 4)),
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32": (32, (4, 4, 2, 4)),
    "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f16": (16, (8, 2, 2, 4)),
    "mma.sync.aligned.m16n8k16.row.col.satfinite.s32.u8.s8.s32": (32, (4, 2, 1, 4)),
    "mma.sync.aligned.m8n8k32.row.col.s32.s4.u4.s32": (32, (2, 1, 1, 2)),
    "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc": (32, (2, 1, 1, 2)),
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64": (64, (2, 1, 1, 2)),
    "wmma.mma.sync.aligned.col.row.m16n16k8.f32.tf32.tf32.f32": (32, (8, 4, 4, 8)),
    "wmma.mma.sync.aligned.row.row.m32n8k16.f16.f32": (16, (4, 8, 8, 8)),
}
"""Products: the bits of the numbers that their registers are filled with, and the registers that a
lane has of D, A, B and C."""


def product_kernel(form: str, bits: int, counts: tuple[int, ...]) -> str:
    """PTX that multiplies what lies in memory register by register; lanes 5 to 9 keep out of it."""
    size = max(bits // 8, 4)
    kind = f"b{8 * size}"
    names = [[f"%{x}{k}" for k in range(n)] for x, n in zip("dabc", counts, strict=True)]
    loads = [
        f"ld.global.{kind} {name}, [%p{number}+{32 * size * k}];"
        for number, group in enumerate(names)
        for k, name in enumerate(group)
    ]
    given = ", ".join("{" + ", ".join(group) + "}" for group in names)
    stores = [f"st.global.{kind} [%p0+{32 * size * k}], {n};" for k, n in enumerate(names[0])]
    return "\n".join((
        HEADER, ENTRY, "{",
        f".reg .{kind} {', '.join(f'%{x}<{n}>' for x, n in zip('dabc', counts, strict=True))};",
        ".reg .b64 %p<4>, %o; .reg .b32 %t; .reg .pred %q;",
        *(f"ld.param.u64 %p{number}, [{name}];" for number, name in enumerate("dabc")),
        f"mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, {size};",
        *(f"add.u64 %p{number}, %p{number}, %o;" for number in range(4)), *loads,
        "sub.u32 %t, %t, 5; setp.lt.u32 %q, %t, 5; @%q bra OUT;", f"{form} {given};", "OUT:",
        *stores, "ret;", "}",
    ))  # fmt: skip


def words(rng: np.random.Generator, bits: int, count: int) -> NDArray[np.uint64]:
    """Numbers of a format whose exponents are near one another, and some special ones."""
    every: NDArray[np.uint64] = rng.integers(0, 1 << 63, count, dtype=np.uint64) * np.uint64(2)
    special = np.array(SPECIAL[bits], dtype=np.uint64)[rng.integers(0, 7, count)]
    near = np.exp2(rng.integers(-9, 9, count)) * rng.standard_normal(count)
    kinds: dict[int, NDArray[np.uint64]] = {
        16: near.astype(np.float16).view(np.uint16).astype(np.uint64),
        32: near.astype(np.float32).view(np.uint32).astype(np.uint64),
        64: near.view(np.uint64),
    }
    draw = rng.random(count)
    return np.where(draw < 0.02, special, np.where(draw < 0.1, every, kinds[bits]))


@pytest.mark.parametrize("form", FORMS)
def test_products_have_the_same_bits_under_both_engines(tmp_path: Path, form: str) -> None:
    bits, counts = FORMS[form]
    rng = np.random.default_rng(len(form))
    size = max(bits // 8, 4)
    held = [words(rng, bits, 32 * n * size * 8 // bits).astype(f"u{bits // 8}") for n in counts]

    def run(gpu: cutrace.Session) -> list[NDArray[np.uint8]]:
        arrays = [gpu.to_device(values) for values in held]
        gpu.load_ptx(product_kernel(form, bits, counts)).get_function("k")[1, 32](*arrays)
        return [arrays[0].copy_to_host()]

    assert_same_under_both(tmp_path, run)


MOVES = (
    HEADER
    + """
.visible .entry k(.param .u64 from, .param .u64 to, .param .u32 size)
{
.reg .b64 %p<3>; .reg .b32 %t, %n, %s<4>, %r<6>; .reg .pred %q; .shared .align 16 .b8 tile[1536];
ld.param.u64 %p0, [from]; ld.param.u64 %p1, [to]; ld.param.u32 %n, [size];
mov.u32 %t, %tid.x; shl.b32 %s0, %t, 4; cvt.u64.u32 %p2, %s0; add.u64 %p0, %p0, %p2;
shl.b32 %s1, %t, 2; cvt.u64.u32 %p2, %s1; add.u64 %p1, %p1, %p2;
mov.u32 %s2, tile; add.u32 %s3, %s2, %s0; setp.lt.u32 %q, %t, 29;
cp.async.cg.shared.global [%s3], [%p0], 16;
cp.async.ca.shared.global [tile+512], [%p0+8], 8, 8;
@%q cp.async.ca.shared.global [%s3+1024], [%p0+4], 4;
cp.async.commit_group; cp.async.wait_group 0;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%s3];
ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r4, %r5}, [%s3];
st.global.u32 [%p1], %r2; st.global.u32 [%p1+128], %r4; st.global.u32 [%p1+256], %r5;
stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%s3], {%r4, %r3};
ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%s3];
cp.async.cg.shared.global [%s3], [%p0], 16, %n;
ld.shared.u32 %r1, [%s3+8]; ld.shared.u32 %r2, [%s3+1024]; ld.shared.u32 %r3, [tile+516];
st.global.u32 [%p1+384], %r0; st.global.u32 [%p1+512], %r1; st.global.u32 [%p1+640], %r2;
st.global.u32 [%p1+768], %r3; ret;
}
"""
)


def test_matrices_and_copies_move_as_under_the_array_engine(tmp_path: Path) -> None:
    numbers = np.arange(256, dtype=np.uint16)
    results: list[NDArray[np.uint16]] = []

    def run(gpu: cutrace.Session) -> list[NDArray[np.uint16]]:
        source, to = gpu.to_device(np.resize(numbers, 272)), gpu.to_device(np.zeros(448, np.uint16))
        gpu.load_ptx(MOVES).get_function("k")[1, 32](source, to, np.uint32(12))
        results.append(to.copy_to_host())
        return results[-1:]

    assert_same_under_both(tmp_path, run)
    third, first_turned, second_turned, back, tail, fours, last = results[0].reshape(7, 64)
    matrices = numbers.reshape(4, 8, 8)  # row r of matrix j: 64 j + 8 r and the seven after it
    assert third.tolist() == matrices[2].reshape(-1).tolist()
    assert first_turned.tolist() == matrices[0].T.reshape(-1).tolist()
    assert second_turned.tolist() == matrices[1].T.reshape(-1).tolist()
    assert back.tolist() == matrices[0].reshape(-1).tolist()  # turned twice
    assert tail.tolist() == [n for lane in range(32) for n in (8 * lane + 4, 8 * lane + 5)]
    copied = [n for lane in range(29) for n in (8 * lane + 2, 8 * lane + 3)]
    assert fours.tolist() == [*copied, *[0] * 6]  # three lanes do not copy
    assert last.tolist() == [254, 255] * 32  # all lanes copy to one place: the last one stays


FEW_ROWS = (
    HEADER
    + """
.visible .entry k(.param .u64 to, .param .u32 first, .param .u32 rows)
{
.reg .b64 %p<2>; .reg .b32 %t, %n<2>, %s, %v, %r<4>; .reg .pred %q; .shared .align 16 .b8 tile[512];
ld.param.u64 %p0, [to]; ld.param.u32 %n0, [first]; ld.param.u32 %n1, [rows];
mov.u32 %t, %tid.x; shl.b32 %s, %t, 4; mov.u32 %v, tile; add.u32 %s, %s, %v;
add.u32 %v, %t, 1; st.shared.v4.u32 [%s], {%v, %v, %v, %v};
mov.u32 %r0, 77; mov.u32 %r1, 77; mov.u32 %r2, 77; mov.u32 %r3, 77;
sub.u32 %v, %t, %n0; setp.lt.u32 %q, %v, %n1;
@%q ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%s];
mul.wide.u32 %p1, %t, 16; add.u64 %p0, %p0, %p1;
st.global.v4.u32 [%p0], {%r0, %r1, %r2, %r3}; ret;
}
"""
)


@pytest.mark.parametrize(("first", "rows"), [(0, 1), (7, 2), (3, 9), (0, 32)])
def test_rows_of_lanes_that_do_not_load_are_zeros(tmp_path: Path, first: int, rows: int) -> None:
    """Lanes from `first` on load, and give the addresses of their rows: word l + 1 four times."""
    results: list[NDArray[np.uint32]] = []

    def run(gpu: cutrace.Session) -> list[NDArray[np.uint32]]:
        to = gpu.to_device(np.zeros(128, np.uint32))
        gpu.load_ptx(FEW_ROWS).get_function("k")[1, 32](to, np.uint32(first), np.uint32(rows))
        results.append(to.copy_to_host())
        return results[-1:]

    assert_same_under_both(tmp_path, run)
    loads = [first <= lane < first + rows for lane in range(32)]
    row = [lane + 1 if loads[lane] else 0 for lane in range(32)]
    # Register j of lane l has elements of row l / 4 of matrix j: lane 8 j + l / 4 addresses it.
    expected = [
        [row[8 * j + lane // 4] if loads[lane] else 77 for j in range(4)] for lane in range(32)
    ]
    assert results[0].reshape(32, 4).tolist() == expected


def test_only_copies_of_some_bytes_are_left_to_the_array_engine() -> None:
    kernel = link_kernel(parse_module(MOVES), "k")
    made = write_kernel(kernel, {(0, "tile"): 0}, "kernel")
    texts = [kernel.instructions[pc].text for pc in made.escaped]
    assert [text.rpartition(" ")[2] for text in texts] == ["%n;"]


OUTSIDE = MOVES.replace("[%p0], 16;", "[%p0+256], 16;")


@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_a_copy_from_outside_an_array_is_a_fault_that_names_the_thread(engine: str) -> None:
    with cutrace.Session(engine=engine) as gpu:
        source, to = (
            gpu.to_device(np.arange(272, dtype=np.uint16)),
            gpu.device_array(448, np.uint16),
        )
        function = gpu.load_ptx(OUTSIDE).get_function("k")
        with pytest.raises(KernelFault, match=r"reads 16 bytes .* in thread \(18, 0, 0\)"):
            function[1, 32](source, to, np.uint32(12))


FRAGMENT = (
    HEADER
    + """
.visible .entry k(.param .u64 from)
{
.reg .b64 %p; .reg .b32 %a<8>;
ld.param.u64 %p, [from]; add.u64 %p, %p, 2;
wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%p];
ret;
}
"""
)


def test_a_fragment_that_begins_between_words_is_misaligned() -> None:
    with cutrace.Session() as gpu:
        source = gpu.to_device(np.zeros(320, np.float16))
        with pytest.raises(KernelFault, match="reads 4 bytes misaligned at global address"):
            gpu.load_ptx(FRAGMENT).get_function("k")[1, 32](source)
