"""A block is decoded when warps first run it; what is unknown is refused before that."""

from unittest.mock import patch

import numpy as np
import pytest
from ptx.ptx_run import HEADER, run_kernel

from cutrace.base.errors import CutraceError
from cutrace.tracer.simt import ptx_code
from cutrace.tracer.simt.decode.decoder import Decoder
from cutrace.tracer.simt.interp import decode

HEAD = ".visible .entry k(.param .u64 a)\n{\n.reg .b32 %r<9>; .reg .b64 %w<9>; .reg .pred %p;\n"
START = "ld.param.u64 %w1, [a];\nst.global.u32 [%w1], 7;\n"


def kernel(body: str) -> str:
    return f"{HEADER}{HEAD}{START}{body}\n}}\n"


def skipping(instruction: str) -> str:
    """A kernel with an instruction in a block that no lane runs."""
    return kernel(f"setp.ne.u32 %p, 0, 0;\n@%p bra far;\nret;\nfar: {instruction}\nret;")


@pytest.mark.parametrize(
    ("known", "unknown", "said"),
    [
        ("add.u32 %r1, %r2, %r3;", "add.u32 %r1, %r2, %w3;", "`%w3` is .b64, expected 32 bits"),
        ("add.u32 %r1, %r2, 3;", "add.u32 %r1, %r2;", "expected 2 sources, found 1"),
        ("mov.u32 %r1, %tid.x;", "mov.u32 %r1, %tib.x;", "%tib.x"),
        ("ld.global.u32 %r1, [%w1+4];", "ld.global.v2.u32 %r1, [%w1+4];", "expected 2 registers"),
        ("cp.async.ca.shared.global [%w1], [%w1], 4;",
         "cp.async.ca.shared.global [%w1], [%w1], 5;", "a number of bytes: 4, 8 or 16"),
    ],
)  # fmt: skip
def test_an_unknown_instruction_that_no_lane_reaches_is_refused(
    known: str, unknown: str, said: str
) -> None:
    """Also after a known one of nearly the same form."""
    (out,) = run_kernel(skipping(known), "k", 1, [np.zeros(4, np.uint32)])
    assert out.tolist() == [7, 0, 0, 0]
    with (
        patch.object(ptx_code, "plan_block") as plan_block,
        pytest.raises(CutraceError, match=said),
    ):
        run_kernel(skipping(unknown), "k", 1, [np.zeros(4, np.uint32)])
    plan_block.assert_not_called()


def test_a_later_launch_decodes_the_blocks_that_it_runs() -> None:
    pcs: list[int] = []

    def decode_and_note(decoder: Decoder, pc: int) -> object:
        pcs.append(pc)
        return real(decoder, pc)

    real = decode.decode_instruction
    text = kernel(
        "ld.global.u32 %r1, [%w1+4];\nsetp.eq.u32 %p, %r1, 0;\n@%p bra other;\n"
        "mov.u32 %r2, %tid.x;\nmul.lo.u32 %r3, %r2, 5;\nbra end;\n"
        "other: mov.u32 %r4, %ntid.x;\nadd.u32 %r3, %r4, 1000;\n"
        "end: st.global.u32 [%w1+8], %r3;\nret;"
    )
    run_kernel(text, "k", 1, [np.array([0, 1, 0], np.uint32)])
    with patch.object(decode, "decode_instruction", decode_and_note):
        (out,) = run_kernel(text, "k", 1, [np.array([0, 0, 0], np.uint32)])
    assert out.tolist() == [7, 0, 1000 + 1]
    assert pcs == [*range(5), *range(8, 12)]
    with patch.object(decode, "decode_instruction", decode_and_note):
        (out,) = run_kernel(text, "k", 1, [np.array([0, 1, 0], np.uint32)])
    assert out.tolist() == [7, 1, 0]
    assert pcs[9:] == [*range(8), *range(10, 12)]
