"""What cutrace leaves out is said by its name, at the launch of a kernel that can reach it."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from ptx_run import HEADER, run_kernel

from cutrace.errors import CutraceError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("instruction", "said"),
    [
        ("cp.async.bulk.commit_group;", "bulk copies by the tensor memory accelerator"),
        ("wgmma.fence.sync.aligned;", "matrix products of warp groups"),
        ("tcgen05.wait::ld.sync.aligned;", "tensor memory"),
        ("barrier.cluster.arrive.aligned;", "clusters of blocks"),
        ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r], %r, [%r];",
         "stores to other blocks of a cluster"),
    ],
)  # fmt: skip
def test_the_message_names_what_is_left_out_and_where(instruction: str, said: str) -> None:
    ptx = f"{HEADER}.visible .entry k(.param .u64 a)\n{{\n.reg .b32 %r;\n{instruction}\nret;\n}}\n"
    with pytest.raises(CutraceError, match=f"cutrace leaves out {said}.*PTX line 7"):
        run_kernel(ptx, "k", 1, [np.zeros(1, np.uint32)])


def test_an_instruction_that_nobody_knows_is_named() -> None:
    ptx = HEADER + ".visible .entry k(.param .u64 a)\n{ .reg .b32 %r; frobnicate.u32 %r, 1; }"
    with pytest.raises(
        CutraceError, match=r"does not know this instruction: `frobnicate\.u32 %r, 1"
    ):
        run_kernel(ptx, "k", 1, [np.zeros(1, np.uint32)])


def test_the_document_of_instructions_is_current() -> None:
    script = ROOT / "scripts" / "write_instructions.py"
    if not script.exists():
        pytest.skip("the scripts are not beside the tests")
    wanted = runpy.run_path(str(script))["text"]()
    assert (ROOT / "docs" / "instructions.md").read_text(encoding="utf-8") == wanted
