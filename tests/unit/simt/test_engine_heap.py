"""`malloc`, `free`, `new` and `delete` in kernels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import assert_same_under_both

import cutrace
from cutrace.base.errors import KernelFault
from cutrace.tracer.simt.memory.device_runtime import Heap
from cutrace.tracer.simt.memory.memory import Allocation

LISTS = """
struct Node { int value; Node *next; };
__global__ void build(Node **lists, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Node *first = 0;
    if (i < n)
        for (int k = 0; k <= i % 3; ++k) {
            Node *node = new Node;
            node->value = i + k, node->next = first, first = node;
        }
    lists[i] = first;
}
__global__ void drain(Node **lists, int *sums)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (Node *node = lists[i], *next; node; node = next) {
        next = node->next;
        sum += node->value;
        delete node;
    }
    sums[i] = sum;
}
"""


def test_what_one_kernel_allocates_another_reads_and_gives_back(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[Any]:
        module = gpu.compile(LISTS)
        lists, sums = gpu.device_array(128, np.uint64), gpu.device_array(128, np.int32)
        first: list[Any] = []
        for _ in range(2):
            module.get_function("build")[2, 64](lists, 100)
            first.append(lists.copy_to_host())
            module.get_function("drain")[2, 64](lists, sums)
        assert (first[0] == first[1]).all()  # all of it was given back
        wanted = [sum(range(i, i + i % 3 + 1)) if i < 100 else 0 for i in range(128)]
        assert sums.copy_to_host().tolist() == wanted
        return [*first, sums.copy_to_host()]

    assert_same_under_both(tmp_path, run)


def test_a_heap_that_is_full_gives_null(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[Any]:
        asks = gpu.compile("__global__ void k(int *a) { a[threadIdx.x] = malloc(3 << 20) != 0; }")
        a = gpu.device_array(4, np.int32)
        asks.get_function("k")[1, 4](a)
        assert a.copy_to_host().tolist() == [1, 1, 0, 0]  # of 8 MB
        return [a.copy_to_host()]

    assert_same_under_both(tmp_path, run)


def test_freeing_what_malloc_did_not_give_is_a_fault(tmp_path: Path) -> None:
    with cutrace.Session(tmp_path / "t.cutrace") as gpu:
        a = gpu.device_array(4, np.int32)
        kernel = gpu.compile("__global__ void k(int *a) {\n    free(a + 1);\n}").get_function("k")
        with pytest.raises(
            KernelFault, match=r":2.*free\(0x700000004\): expected what malloc gave"
        ):
            kernel[1, 1](a)


def test_pieces_given_back_are_joined() -> None:
    heap = Heap(Allocation("heap", 1024, 64))
    places = [heap.take(size) for size in (16, 1, 17)]
    assert places == [1024, 1040, 1056]  # multiples of 16 bytes: 16, 16, 32
    assert heap.take(1) == 0
    assert [heap.give(place) for place in (1040, 1024, 1024)] == [True, True, False]
    assert heap.take(32) == 1024
    assert [heap.give(place) for place in (1056, 1024)] == [True, True]
    assert heap.take(64) == 1024
