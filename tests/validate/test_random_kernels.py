"""Random CUDA C kernels leave what they left on an NVIDIA H200, in both engines.

`random_kernels/kernels.csv` has digests of the arrays of 200 kernels (seeds 51000 to 51199);
`scripts/capture/random_kernels.py` made it, and `compare` there runs all of them: all are equal.
None is exempt. One that is captured later may have to be: but for `-O0`, ptxas of CUDA 13 computes
`neg.s16` and a `cvt.s32.s16` of its result in 32 bits, so that -(-32768) is 32768. Kernel 10093 of
an earlier generator has four such pairs: the engines leave what it left as assembled with `-O0`,
and what it left with `-O1` to `-O3` once the pairs are written as `cvt.s32.s16` and `neg.s32`.
"""

from pathlib import Path

import pytest
from fuzz.cuda.captured import Captured, captured, digests

KERNELS = list(captured(Path(__file__).with_name("random_kernels")))
STEP = 8


def test_the_capture_has_all_its_kernels_and_what_each_left() -> None:
    assert [kernel.seed for kernel in KERNELS] == list(range(51000, 51200))
    assert all(kernel.wanted for kernel in KERNELS)


@pytest.mark.parametrize("engine", ["array", "auto"])
@pytest.mark.parametrize("kernel", KERNELS[::STEP], ids=lambda kernel: kernel.name)
def test_random_kernels_leave_what_the_silicon_leaves(kernel: Captured, engine: str) -> None:
    assert digests(kernel, engine) == kernel.wanted
