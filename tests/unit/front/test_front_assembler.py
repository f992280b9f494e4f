"""The assembler may crash over PTX that no compiler wrote; cutrace does not."""

from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.tracer.front import resources
from cutrace.tracer.front.resources import assemble

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
EMPTY = HEAD + ".visible .entry k()\n{\nret;\n}\n"
CRASHES = (
    HEAD
    + """
.visible .entry k(.param .u64 a)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd1;
    .param .b32 spare;
    mov.u32 %r1, 7;
    st.param.b32 [spare], %r1;
    ld.param.b32 %r2, [spare];
    ld.param.u64 %rd1, [a];
    st.global.u32 [%rd1], %r2;
    ret;
}
"""
)
"""A parameter that no call takes: the assembler of CUDA 12.9 reads memory that it does not have."""


def test_a_cubin_or_the_reasons_come_back() -> None:
    made = assemble(EMPTY, "sm_80", "-v")
    assert made.cubin is not None
    assert made.cubin[:4] == b"\x7fELF"
    assert "Used" in made.report
    refused = assemble(EMPTY.replace("ret", "rat"), "sm_80")
    assert refused.cubin is None
    assert "rat" in refused.report


def test_a_crash_is_one_sentence_and_the_next_question_is_answered() -> None:
    with pytest.raises(CutraceError, match="assembler crashed over this PTX, for sm_80"):
        assemble(CRASHES, "sm_80")
    assert assemble(EMPTY, "sm_80").cubin is not None


def test_what_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "TIMEOUT", 0.0)
    with pytest.raises(CutraceError, match="did not finish this PTX, for sm_80"):
        assemble(EMPTY, "sm_80")


def test_a_kernel_that_crashes_the_assembler_is_recorded(tmp_path: Path) -> None:
    with cutrace.Session(tmp_path / "t.cutrace") as gpu:
        out = gpu.device_array(1, np.uint32)
        gpu.load_ptx(CRASHES).get_function("k")[1, 1](out)
        assert out.copy_to_host().tolist() == [7]
    assert len(cutrace.read_trace(tmp_path / "t.cutrace").launches) == 1
