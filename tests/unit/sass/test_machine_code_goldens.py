"""Kernels of tests/golden/ptx as machine code: what their comments say is what is left."""

from pathlib import Path

import pytest
from ptx.ptx_golden import read_golden

import cutrace
from cutrace.tracer.front.toolkit import find_file

GOLDEN = Path(__file__).parents[2] / "golden" / "ptx"
ON_9 = ("atomic/wide", "atomic/halves_and_vectors", "control/function_pointers",
        "control/recursion_at_a_label",
        "control/recursion_by_parameters", "copy/bulk", "copy/groups", "copy/mbarrier",
        "copy/mbarrier_parity", "copy/small", "matrix/wgmma", "warp/reduce")  # fmt: skip
ON_8 = ("control/function_pointers", "control/recursion_at_a_label", "copy/groups")
CONSTANTS = [("move/generic_addresses", code) for code in ("sm_80", "sm_90")]
EVERYWHERE = CONSTANTS + [(name, "sm_90") for name in ON_9] + [(name, "sm_80") for name in ON_8]

pytestmark = pytest.mark.skipif(
    find_file("nvdisasm") is None, reason="nvidia-cuda-nvdisasm is not installed"
)


@pytest.mark.parametrize("engine", ["array", "compiled"])
@pytest.mark.parametrize(("name", "code"), EVERYWHERE)
def test_machine_code_leaves_what_the_golden_says(name: str, code: str, engine: str) -> None:
    text = (GOLDEN / f"{name}.ptx").read_text()
    golden = read_golden(text)
    with cutrace.Session(code=code, engine=engine) as gpu:
        sources = [gpu.to_device(array) for array in golden.sources]
        results = [gpu.to_device(array * 0) for array in golden.wanted]
        kernel = gpu.load_ptx(text).get_function(golden.name)
        kernel[1, golden.block](*sources, *results)
        left = [array.copy_to_host() for array in results]
    for ours, wanted in zip(left, golden.wanted, strict=True):
        assert ours.tolist() == wanted.tolist()
