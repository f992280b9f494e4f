"""Names of Numba's shared arrays, from the Python source."""

import pyarrow as pa

from cutrace.tracer.session.module import numba_names

SOURCE = """
from numba import cuda

@cuda.jit
def other(x):
    theirs = cuda.shared.array(32, 'f4')
    theirs[0] = x[0]

@cuda.jit
def tiled(a, b):
    left = cuda.shared.array((16, 16), 'f4')
    sums = cuda.local.array(4, 'f4')
    right: int = 0
    right = shared.array((16, 16), 'f4')
    left[0] = right[0] = a[0]

@cuda.jit
def parts(a):
    one, two = cuda.shared.array(4, 'f4'), cuda.shared.array(4, 'f4')
"""


def names(variables: list[str], lines: list[int], texts: list[str]) -> dict[str, str]:
    table = pa.table({"file": ["k.py"] * len(lines), "line": lines, "text": texts})
    return dict(numba_names(variables, table, {"/home/me/k.py": SOURCE}))


def test_arrays_have_the_names_of_their_assignments_in_the_order_of_numbas_numbers() -> None:
    found = names(["_cudapy_smem_10", "_cudapy_smem_9"], [10, 15], ["mov", "st"])
    assert found == {"_cudapy_smem_9": "left", "_cudapy_smem_10": "right"}


def test_arrays_that_no_assignment_names_have_the_line_of_their_first_use() -> None:
    texts = ["ret;", "mov.u64 %rd1, _cudapy_smem_3;", "mov.u64 %rd2, _cudapy_smem_4;"]
    found = names(["_cudapy_smem_3", "_cudapy_smem_4"], [19, 20, 20], texts)
    assert found["_cudapy_smem_3"] == "shared memory 1, line 20"
    assert found["_cudapy_smem_4"] == "shared memory 2, line 20"
    # an array that the compiler removed: two are assigned, one is left
    assert names(["_cudapy_smem_5"], [15], ["mov.u64 %rd1, _cudapy_smem_5;"]) == {
        "_cudapy_smem_5": "shared memory, line 15"
    }


def test_other_kernels_are_left_alone() -> None:
    assert names(["_ZZ4tilePfE1a"], [10], ["ret;"]) == {}
