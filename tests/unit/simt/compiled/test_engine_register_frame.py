"""Places of registers in a warp's frame: shared where two are never live together."""

from pathlib import Path

import numpy as np
import pytest
from engines import assert_same_under_both
from numpy.typing import NDArray

import cutrace
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.simt.codegen.emit_kernel import write_kernel
from cutrace.tracer.simt.codegen.register_frame import Frame

WORD = 32 * 4
"""Bytes of a place for 32 bits of each lane."""

HEAD = ".version 8.0\n.target sm_70\n.address_size 64\n"
FUNCTION = """
.visible .func (.param .b32 sum) {name}(.param .b32 count)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<9>;
    ld.param.u32 %r1, [count];
    mov.u32 %r2, {first};
more:
    add.u32 %r2, %r2, %r1;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra more;
{body}
    st.param.b32 [sum], %r2;
    ret;
}}
"""
KERNEL = """
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<9>;
    .reg .b64 %rd<9>;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 8;
    mov.u64 %rd3, table;
    add.u64 %rd3, %rd3, %rd2;
    ld.global.u64 %rd4, [%rd3];
    {{
    .param .b32 count;
    .param .b32 sum;
    st.param.b32 [count], %r1;
    prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (sum), {callee}, (count){prototype};
    ld.param.b32 %r2, [sum];
    }}
    ld.param.u64 %rd1, [out];
    st.global.u32 [%rd1], %r2;
    ret;
}}
"""
CALL = """
    {{
    .param .b32 count;
    .param .b32 sum;
    st.param.b32 [count], %r2;
    call (sum), {name}, (count);
    ld.param.b32 %r3, [sum];
    }}
    add.u32 %r2, %r2, %r3;
"""


def table_of(functions: int, first: int | None = None) -> str:
    """A kernel that calls one of many functions through a table; each sums its argument from
    `first` on, by default from its own number."""
    texts = [
        FUNCTION.format(name=f"f{k}", first=k if first is None else first, body="")
        for k in range(functions)
    ]
    names = ", ".join(f"f{k}" for k in range(functions))
    table = f".global .align 8 .u64 table[{functions}] = {{{names}}};\n"
    kernel = KERNEL.format(callee="%rd4", prototype=", prototype")
    return HEAD + "".join(texts) + table + kernel


def chain_of(functions: int) -> str:
    """A kernel that calls a function, which calls another, and so on."""
    texts = [
        FUNCTION.format(name=f"f{k}", first=k, body=CALL.format(name=f"f{k - 1}") if k else "")
        for k in range(functions)
    ]
    kernel = KERNEL.format(callee=f"f{functions - 1}", prototype="")
    return HEAD + "".join(texts) + ".global .align 8 .u64 table[1];\n" + kernel


def frame_of(text: str) -> Frame:
    return Frame(link_kernel(parse_module(text), "k"), {})


def test_functions_of_one_table_share_their_places() -> None:
    assert frame_of(table_of(40)).size == frame_of(table_of(1)).size


def test_a_callee_has_places_of_its_own_beside_its_callers() -> None:
    sizes = [frame_of(chain_of(n)).size for n in (2, 3, 4)]
    # One more function between the kernel and the last: its %r1 and %r2 outlive a block together,
    # and so do its parameter and its result.
    assert np.diff(sizes).tolist() == [4 * WORD, 4 * WORD]


def test_registers_of_one_function_share_a_place_if_one_dies_before_the_other() -> None:
    # A value crosses the end of each block of a straight line, two of them at a time.
    lines = "".join(f"bra L{k};\nL{k}: add.u32 %r{k + 1}, %r{k}, {k};\n" for k in range(1, 30))
    text = (
        HEAD
        + f"""
.visible .entry k(.param .u64 out)
{{
    .reg .b32 %r<32>;
    .reg .b64 %rd<2>;
    mov.u32 %r1, %tid.x;
    {lines}
    bra last;
last:
    ld.param.u64 %rd1, [out];
    st.global.u32 [%rd1], %r30;
    ret;
}}
"""
    )
    assert frame_of(text).size == 2 * WORD


def test_basic_blocks_with_the_same_code_are_compiled_once() -> None:
    counts = []
    for functions in (1, 2, 40):
        kernel = link_kernel(parse_module(table_of(functions, first=7)), "k")
        text = write_kernel(kernel, {}, "kernel")
        assert len(text.codes) == len(kernel.blocks)
        counts.append(text.text.count("@kernel."))
    assert counts[0] == counts[1] == counts[2]


SOURCE = r"""
typedef double (*Operation)(int);
__device__ __noinline__ double words(int n)
{
    int a = n, b = 3 * n, c = n + 1;
    __syncwarp();
    if (a & 1) b += c;
    __syncwarp();
    return a + 2 * b + 4 * c;
}
__device__ __noinline__ double doubles(int n)
{
    double a = n * 0.5, b = n * 0.25, c = n + 0.125;
    __syncwarp();
    if (n & 2) b += c;
    __syncwarp();
    return a + 2 * b + 4 * c;
}
__device__ __noinline__ double shorts(int n)
{
    short a = n * 77, b = n * 55;
    __syncwarp();
    if (n & 4) b += a;
    __syncwarp();
    return a - b;
}
__device__ __noinline__ double deeper(int n)
{
    double a = n * 2.5;
    int b = n * 9;
    double below = n & 8 ? words(n + 1) : doubles(n + 2);
    return a + b + below;
}
__device__ Operation table[4] = {words, doubles, shorts, deeper};
extern "C" __global__ void k(double *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    for (int j = 0; j < 4; ++j) sum = sum * 3 + table[(i * 7 + j) % 4](i + j);
    out[i] = sum;
}
"""


def words(n: int) -> float:
    return n + 2 * (3 * n + (n + 1) * (n & 1)) + 4 * (n + 1)


def doubles(n: int) -> float:
    c = n + 0.125
    return n * 0.5 + 2 * (n * 0.25 + c * bool(n & 2)) + 4 * c


def shorts(n: int) -> float:
    return n * 77 - (n * 55 + n * 77 * bool(n & 4))


def deeper(n: int) -> float:
    return n * 2.5 + n * 9 + (words(n + 1) if n & 8 else doubles(n + 2))


def test_lanes_in_several_functions_at_a_time_keep_their_registers(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[NDArray[np.float64]]:
        out = gpu.device_array(2 * 64, np.float64, "out")
        gpu.compile(SOURCE).get_function("k")[2, 64](out)
        result = out.copy_to_host()
        expected = []
        for i in range(128):
            total = 0.0
            for j in range(4):
                operation = (words, doubles, shorts, deeper)[(i * 7 + j) % 4]
                total = total * 3 + operation(i + j)
            expected.append(total)
        assert result.tolist() == pytest.approx(expected, rel=1e-15)
        return [result]

    assert_same_under_both(tmp_path, run)
