"""Registers that compiled kernels take from the parameters, in PTX written by hand."""

from io import StringIO
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.simt.codegen.register_frame import parameter_registers

KERNEL = """
.version 8.0
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 n, .param .u64 other)
{{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.lt.u32 %p1, %r2, 7;
{body}
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd2, %rd3;
    st.global.u32 [%rd4], %r4;
    ret;
}}
"""
OUT, N, OTHER = 0, 8, 16  # 8 bytes, 4 bytes, then 8 at a multiple of 8


@pytest.mark.parametrize(
    ("body", "name", "offset"),
    [
        ("add.u32 %r4, %r1, %r2;", "%r1", N),
        ("add.u32 %r4, %r1, %r2;", "%rd2", OUT),
        ("mov.u32 %r3, %r1; add.u32 %r4, %r3, %r2;", "%r3", N),
        ("ld.param.u32 %r3, [other+4]; add.u32 %r4, %r3, 1;", "%r3", OTHER + 4),
        ("add.u32 %r4, %r1, %r2; add.u32 %r1, %r1, 1;", "%r1", None),
        ("mov.u32 %r3, 5; @%p1 ld.param.u32 %r3, [n]; add.u32 %r4, %r3, 1;", "%r3", None),
        ("@%p1 bra L; ld.param.u32 %r3, [n];\nL: add.u32 %r4, %r3, 1;", "%r3", None),
        ("ld.param.u32 %r4, [n];", "%r4", None),
        ("ld.param.u16 %r3, [n]; add.u32 %r4, %r3, 1;", "%r3", None),
    ],
    ids=[
        "a number that is computed with",
        "an address that becomes a global one",
        "a copy",
        "a part of a parameter",
        "written twice",
        "written where a predicate holds",
        "read where it was not written",
        "stored as it is",
        "narrower than its register",
    ],
)
def test_a_register_that_always_has_a_parameter_needs_no_place(
    body: str, name: str, offset: int | None
) -> None:
    kernel = link_kernel(parse_module(KERNEL.format(body=body)), "k")
    assert parameter_registers(kernel).get((0, name)) == offset


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("add.u32 %r4, %r1, %r2;", [100 + t for t in range(32)]),
        ("mov.u32 %r3, %r1; mul.lo.u32 %r4, %r3, %r2;", [100 * t for t in range(32)]),
        ("@%p1 bra L; ld.param.u32 %r3, [n];\nL: add.u32 %r4, %r3, 1;", [1] * 7 + [101] * 25),
        ("add.u32 %r1, %r1, 1; add.u32 %r4, %r1, %r2;", [101 + t for t in range(32)]),
    ],
)
def test_both_engines_compute_with_parameters_alike(
    body: str, expected: list[int], tmp_path: Path
) -> None:
    rows = []
    for engine in ("array", "compiled"):
        path = tmp_path / f"{engine}.cutrace"
        with cutrace.Session(path, engine=engine, output=StringIO()) as gpu:
            out = gpu.device_array(32, np.uint32)
            gpu.load_ptx(KERNEL.format(body=body)).get_function("k")[1, 32](out, 100, out)
            assert out.copy_to_host().tolist() == expected
        rows.append({p.name: p.read_bytes() for p in sorted((path / "0").iterdir())})
    assert rows[0] == rows[1]
