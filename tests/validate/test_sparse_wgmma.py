"""`wgmma.mma_async.sp` leaves what an NVIDIA H100 left, bit for bit: all types and selectors.

`sparse_wgmma.npz` has of each case the bytes of A and B, the metadata of 128 threads, and D; the
numbers of a case 0 are normal, those of the others have exponents up to 40 apart, or any bytes.
`scripts/capture/sparse_wgmma.py` makes it.
"""

from pathlib import Path

import numpy as np
import pytest
from cases.sparse_wgmma_kernel import kernel_of
from ptx.ptx_run import run_kernel

CHIP = np.load(Path(__file__).parent / "sparse_wgmma.npz")


@pytest.mark.parametrize("number", range(len(CHIP["names"])), ids=map(str, CHIP["names"]))
def test_a_sparse_product_of_a_warpgroup(number: int) -> None:
    unused, result = np.zeros(512, np.uint32), np.zeros(512, np.uint32)
    arrays = [CHIP["images"][number], unused, CHIP["metadata"][number], result]
    found = run_kernel(kernel_of(str(CHIP["names"][number])), "k", 128, arrays)[-1]
    assert found.tolist() == CHIP["results"][number].tolist()
