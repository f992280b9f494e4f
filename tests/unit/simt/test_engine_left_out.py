"""What cutrace leaves out is said by its name, at the launch of a kernel that can reach it."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from ptx.ptx_run import HEADER, run_kernel

from cutrace.base.errors import CutraceError
from cutrace.tracer.simt.interp import branch, decode

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("instruction", "said"),
    [
        ("tex.2dms.v4.u32.s32 {%r, %r, %r, %r}, [%d, {%r, %r, %r, %r}];",
         "textures with several samples.*PTX ISA 9.7.10.3, compute capability 3.0 and later"),
        ("cp.async.bulk.prefetch.tensor.3d.L2.global.im2col::w [%d, {%r, %r, %r}], {%h, %h};",
         "wide im2col boxes.*PTX ISA 9.7.9.25, compute capability 9.0 and later"),
    ],
)  # fmt: skip
def test_the_message_names_what_is_left_out_and_where(instruction: str, said: str) -> None:
    registers = ".reg .b16 %h; .reg .b32 %r; .reg .b64 %d;"
    ptx = f"{HEADER}.visible .entry k(.param .u64 a)\n{{\n{registers}\n{instruction}\nret;\n}}\n"
    what, place = said.split(".*")
    with pytest.raises(CutraceError, match=f"leaves out {what}.*PTX line 7; {re.escape(place)}"):
        run_kernel(ptx, "k", 1, [np.zeros(1, np.uint32)])


def test_the_message_that_the_document_shows_is_the_one_that_comes() -> None:
    text = (ROOT / "docs" / "instructions.md").read_text(encoding="utf-8")
    body = (
        "\n.reg .b64 %rd<2>; .reg .b32 %r<8>;\nld.param.u64 %rd1, [a];\n"
        "tex.2dms.v4.u32.s32 {%r0, %r1, %r2, %r3}, [%rd1, {%r4, %r5, %r6, %r7}];\nret;\n"
    )
    ptx = f"{HEADER}.visible .entry k(.param .u64 a)\n{{{body}}}\n"
    with pytest.raises(CutraceError) as raised:
        run_kernel(ptx, "k", 1, [np.zeros(1, np.uint32)])
    assert str(raised.value) in " ".join(text.split())


def test_an_instruction_that_nobody_knows_is_named() -> None:
    ptx = HEADER + ".visible .entry k(.param .u64 a)\n{ .reg .b32 %r; frobnicate.u32 %r, 1; }"
    with pytest.raises(
        CutraceError, match=r"does not know this instruction: `frobnicate\.u32 %r, 1"
    ):
        run_kernel(ptx, "k", 1, [np.zeros(1, np.uint32)])


def test_the_document_of_instructions_is_current() -> None:
    script = ROOT / "scripts" / "write" / "instructions.py"
    if not script.exists():
        pytest.skip("the scripts are not beside the tests")
    wanted = runpy.run_path(str(script))["text"]()
    assert (ROOT / "docs" / "instructions.md").read_text(encoding="utf-8") == wanted


@pytest.mark.parametrize(
    ("instruction", "said"),
    [
        ("add.u32 %w, %r, %r;", "`%w` is .b64, expected 32 bits"),
        ("selp.b32 %r, %r, %r, %r;", "`%r` is .b32, expected a predicate"),
        ("add.u32 %r, %r;", "expected 2 sources, found 1"),
        ("setp.s32 %p, %r, %r;", "cannot make sense of this instruction"),
        ("dp4a.u32 %r, %r, %r, %r;", "cannot make sense of this instruction"),
        ("atom.global.cas.b32 %r, [%w], %r;", "expected 2 sources"),
        ("shfl.sync.b32 %r, %r, 1, 31, -1;", "cannot make sense of this instruction"),
        ("vote.sync.pred %p, %p, -1;", "cannot make sense of this instruction"),
        ("match.sync.b32 %r, %r, -1;", "cannot make sense of this instruction"),
        ("redux.sync.s32 %r, %r, -1;", "cannot make sense of this instruction"),
        ("redux.sync.add.s32 %r, %r;", "line 7: `redux.* has no lane mask"),
        ("bar.warp.sync;", "line 7: `bar.warp.sync;` has no lane mask"),
        ("st.global.b128 [%w], %r;", "cannot make sense of this instruction"),
        ("st.global.b32 [%w], %q;", "cannot make sense of this instruction"),
        ("cp.async.ca.shared.global [%w], [%w], 5;", "a number of bytes: 4, 8 or 16"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r}, {%r}, {%r}, {%r};",
         "expected 4, 2, 1 and 4 registers"),
    ],
)  # fmt: skip
def test_operands_that_do_not_fit_are_refused(instruction: str, said: str) -> None:
    registers = ".reg .b32 %r; .reg .b64 %w; .reg .b128 %q; .reg .pred %p;"
    ptx = f"{HEADER}.visible .entry k(.param .u64 a)\n{{\n{registers}\n{instruction}\nret;\n}}\n"
    with pytest.raises(CutraceError, match=said):
        run_kernel(ptx, "k", 1, [np.zeros(1, np.uint32)])


@pytest.mark.parametrize("fault", [TypeError, ZeroDivisionError, AttributeError, RuntimeError])
def test_a_fault_of_a_decoder_is_not_blamed_on_the_instruction(
    monkeypatch: pytest.MonkeyPatch, fault: type[Exception]
) -> None:
    def decode_wrongly(*_: object) -> None:
        raise fault("in the decoder")

    monkeypatch.setattr(decode, "decode_alu", decode_wrongly)
    monkeypatch.setattr(branch, "decode_terminator", decode_wrongly)
    body = "{\n.reg .b32 %r;\nadd.u32 %r, 1, 2;\nret;\n}\n"
    ptx = f"{HEADER}.visible .entry k(.param .u64 a)\n{body}"
    with pytest.raises(fault, match="in the decoder"):
        run_kernel(ptx, "k", 1, [np.zeros(1, np.uint32)])
