"""`wmma.load` and `wmma.store` in PTX write the requests that machine code makes."""

from pathlib import Path

import numpy as np
import pytest
from engines import assert_same_under_both
from numpy.typing import NDArray

import cutrace
from cutrace.tracer.isa.fragments import requests_of

KERNEL = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<32>;
    .reg .f32 %f<8>;
    .shared .align 16 .b8 tile[512];
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r30, 16;
    mov.u32 %r31, tile;
    wmma.load.a.sync.aligned.A.m16n16k16.global.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%rd1], %r30;
    wmma.load.b.sync.aligned.B.m16n16k16.f16 {%r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15}, [%rd2], %r30;
    wmma.load.c.sync.aligned.row.m16n16k16.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, [%rd3], %r30;
    wmma.mma.sync.aligned.A.B.m16n16k16.f32.f32 {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7},
        {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, {%r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15},
        {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7};
    wmma.store.d.sync.aligned.C.m16n16k16.f32 [%rd3], {%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}, %r30;
    wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%r31], {%r0, %r1, %r2, %r3}, %r30;
    bar.sync 0;
    wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%r31], %r30;
    ret;
}
"""  # noqa: E501


@pytest.mark.parametrize(("a", "b", "c"), [("row", "col", "row"), ("col", "row", "col")])
def test_sectors_and_wavefronts_of_a_product_are_those_of_its_fragments(
    a: str, b: str, c: str, tmp_path: Path
) -> None:
    def run(gpu: cutrace.Session) -> list[NDArray[np.float32]]:
        factors = [gpu.device_array(256, np.float16) for _ in range(2)]
        for factor in factors:
            factor.copy_to_device(np.full(256, 2, np.float16))
        sums = gpu.device_array(256, np.float32)
        text = KERNEL.replace(".A.", f".{a}.").replace(".B.", f".{b}.").replace(".C.", f".{c}.")
        gpu.load_ptx(text).get_function("k")[1, 32](*factors, sums)
        return [sums.copy_to_host()]

    trace = assert_same_under_both(tmp_path, run)
    (launch,) = cutrace.analyze(trace, "a100", code="ptx", scope="all").launches
    found = launch.counters
    # A and B: 4 requests, each 16 bytes of 8 lines: a sector a line. C: 4 of 32 bytes of 8 lines.
    assert found["global_load_requests"] == 3 * 4
    assert found["global_load_transactions"] == 3 * 4 * 8
    # D by columns: 8 requests of 4 bytes a lane, 8 neighbours in each of 4 lines
    assert found["global_store_requests"] == (4 if c == "row" else 8)
    assert found["global_store_transactions"] == (4 * 8 if c == "row" else 8 * 4)
    assert found["global_load_bytes_requested"] == 2 * 512 + 1024
    assert found["global_store_bytes_requested"] == 1024
    # of half a kilobyte in shared memory: 4 stores of 4 bytes a lane, and a load of 16
    assert (found["shared_store_requests"], found["shared_load_requests"]) == (4, 1)
    # of 8 lines 32 bytes apart, 4 and 4 are in the same banks: two wavefronts for 128 bytes
    assert found["shared_wavefronts"] == 2 * (4 + 512 // 128)


SHAPES = [
    ("a.row.m16n16k16.f16", 256), ("b.row.m32n8k16.s8", 128), ("a.col.m8n32k16.u8", 128),
    ("a.row.m16n16k8.tf32", 128), ("b.col.m8n8k4.f64", 32), ("c.col.m8n32k16.f16", 256),
    ("d.row.m8n8k4.f64", 64), ("a.row.m8n8k32.s4", 256), ("a.col.m16n16k16.shared.bf16", 256),
]  # fmt: skip


@pytest.mark.parametrize(("form", "elements"), SHAPES)
def test_each_element_of_a_matrix_is_moved_once(form: str, elements: int) -> None:
    words = form.split(".")
    modifiers = ("store" if words[0] == "d" else "load", words[0], "sync", "aligned", *words[1:])
    width, line, column = requests_of(modifiers)
    bits = {"f64": 64, "f32": 32, "tf32": 32, "s8": 8, "u8": 8, "s4": 4}.get(words[-1], 16)
    each = np.arange(8 * width // bits)[:, None, None]
    places = {*zip((line + 0 * each).ravel(), (column + each).ravel(), strict=True)}
    assert len(places) == each.size * line.size == elements
