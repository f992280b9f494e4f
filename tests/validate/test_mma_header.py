"""Loops of cutrace's `mma.h` have few instructions more than those of NVIDIA's.

`mma_header.csv` is from scripts/capture/mma_header.py, with nvcc of CUDA 13.0.
"""

import csv
import runpy
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.analyzer.machine.machine_code import HALVES_RESERVE, HEADER_RESERVE
from cutrace.analyzer.profile import analyze
from cutrace.tracer.front.resources import assemble

HERE = Path(__file__).parent
SCRIPT = runpy.run_path(str(HERE.parents[1] / "scripts" / "capture" / "mma_header.py"))


def counted() -> dict[str, int]:
    """The instructions of each loop with NVIDIA's header."""
    with (HERE / "mma_header.csv").open(newline="") as file:
        return {name: int(many) for name, many in list(csv.reader(file))[1:]}


def ratios(types: tuple[str, ...], arch: str) -> dict[str, float]:
    """How many instructions each loop has with our header, for one of NVIDIA's."""
    theirs = counted()
    with cutrace.Session() as gpu:
        ptx = gpu.compile(SCRIPT["source"](types), arch=arch).ptx
    cubin = assemble(ptx, "sm_90").cubin
    assert cubin
    return {name: many / theirs[name] for name, many in SCRIPT["loops"](cubin)}


def test_loops_are_about_as_short_as_with_nvidias_header() -> None:
    kinds = tuple(SCRIPT["TYPES"])
    found = ratios(kinds, "compute_90")
    assert len(found) == 9 * (3 * 4 + 1 + 1)  # nine orders; three shapes but for tf32 and double
    assert sum(found.values()) / len(found) < 1.1
    assert max(found.values()) * HEADER_RESERVE <= 1
    shared = [ratio for name, ratio in found.items() if name.endswith("shared")]
    assert max(shared) < 1.15


@pytest.mark.parametrize(
    ("types", "reserve"), [(("half", "halves"), HALVES_RESERVE), (("byte",), HEADER_RESERVE)]
)
def test_what_is_counted_of_ptx_for_older_chips_is_in_nvidias_loops(
    types: tuple[str, ...], reserve: float
) -> None:
    assert max(ratios(types, "compute_75").values()) * reserve <= 1


def test_the_bound_of_issue_slots_holds_with_nvidias_header(tmp_path: Path) -> None:
    name, size = "half_16_16_16_R_C_global", 1024
    with cutrace.Session(tmp_path / "t.cutrace") as gpu:
        factors = [gpu.device_array(size * size, np.float16) for _ in range(2)]
        product = gpu.device_array(size * size, np.float32)
        kernel = gpu.compile(SCRIPT["source"](("half",)), arch="compute_90").get_function(name)
        kernel[(2, 2), (32, 1)](*factors, product, np.int32(size))
    (profile,) = analyze(tmp_path / "t.cutrace", device="h100").launches
    issued = next(b.amount for b in profile.bounds if b.resource == "issue slots")
    # Four warps, 64 steps of 16 along the sum: of the loop alone, which NVIDIA's header leaves.
    assert 0.5 < issued / (4 * (size // 16) * counted()[name]) <= 1
