"""Instructions that the array engine runs in the middle of machine code: values, rows, faults."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import assert_same_under_both

import cutrace
from cutrace.base.errors import KernelFault

PRINTS = r"""
#include <cstdio>
__global__ void prints(int *a, int *b)
{
    __shared__ int s[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = a[i];
    for (int k = 0; k < a[i] % 5; ++k) {
        if (i % 7 == 3) printf("%d of %d\n", i, k);
        b[i] += s[threadIdx.x] * 2;
    }
}
"""


@pytest.mark.parametrize(("blocks", "threads"), [(3, 128), (2, 33), (5, 40), (1, 64)])
def test_printf_among_divided_lanes_runs_compiled(
    blocks: int, threads: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = blocks * threads
    said = []

    def run(gpu: cutrace.Session) -> list[Any]:
        a = gpu.to_device(np.arange(count, dtype=np.int32))
        b = gpu.device_array(count, np.int32)
        gpu.compile(PRINTS).get_function("prints")[blocks, threads](a, b)
        found = b.copy_to_host()
        said.append(capsys.readouterr().out)
        assert found.tolist() == [2 * i * (i % 5) for i in range(count)]
        return [found]

    assert_same_under_both(tmp_path, run)
    assert said[0] == said[1]
    wanted = [f"{i} of {k}" for i in range(3, count, 7) for k in range(i % 5)]
    assert sorted(said[1].splitlines()) == sorted(wanted)


ENDS = r"""
__global__ void ends(int *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int odd = __syncthreads_count(i & 1);
    int any = __syncthreads_or(threadIdx.x == 36), all = __syncthreads_and(threadIdx.x != 36);
    out[i] = 100 * odd + 10 * (any != 0) + (all != 0);
}
"""


@pytest.mark.parametrize("threads", [32, 33, 40, 128])
def test_votes_at_barriers_run_compiled(threads: int, tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[Any]:
        out = gpu.device_array(3 * threads, np.int32)
        gpu.compile(ENDS).get_function("ends")[3, threads](out)
        return [out.copy_to_host()]

    assert_same_under_both(tmp_path, run)
    with cutrace.Session(engine="compiled") as gpu:
        (found,) = run(gpu)
    for block in range(3):
        odd = sum((block * threads + t) % 2 for t in range(threads))
        vote = 10 if threads > 36 else 1
        assert set(found[block * threads :][:threads].tolist()) == {100 * odd + vote}


CLOCKS = r"""
__global__ void clocks(const int *a, int *out, int n)
{
    int i = threadIdx.x;
    long long before = clock64();
    int sum = a[i];
    asm volatile("{ .reg .u32 low; add.cc.u32 low, %1, %1; addc.u32 %0, 0, 0; }"
                 : "=r"(sum) : "r"(sum));
    out[i] = sum + 10 * (clock64() > before);
}
"""


def test_clocks_and_carries_run_compiled(tmp_path: Path) -> None:
    values = np.array([0, 1 << 31, (1 << 31) - 1, (1 << 32) - 1] * 10, dtype=np.uint32)

    def run(gpu: cutrace.Session) -> list[Any]:
        out = gpu.device_array(40, np.int32)
        kernel = gpu.compile(CLOCKS).get_function("clocks")
        kernel[1, 40](gpu.to_device(values.view(np.int32)), out, 3)
        return [out.copy_to_host()]

    assert_same_under_both(tmp_path, run)
    with cutrace.Session(engine="compiled") as gpu:
        assert run(gpu)[0].tolist() == [10, 11, 10, 11] * 10  # twice 2^31 and more carries


ASSERTS = r"""
#include <cassert>
__global__ void asserts(int *a) { a[threadIdx.x] = 1; assert(threadIdx.x < 35); a[0] = 2; }
__global__ void traps(int *a, int n) { if (a[threadIdx.x] == n) __trap(); a[threadIdx.x] = 1; }
"""

WHO = {"asserts": "thread (35, 0, 0) of block (0, 0, 0)", "traps": "block 0"}


@pytest.mark.parametrize("kernel", [*WHO])
def test_an_assertion_and_a_trap_are_told_in_the_same_words(kernel: str, tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> None:
        a = gpu.device_array(64, np.int32)
        given = (a,) if kernel == "asserts" else (a, 0)
        gpu.compile(ASSERTS).get_function(kernel)[1, 64](*given)

    words = []
    for engine in ("array", "compiled"):
        session = cutrace.Session(tmp_path / "fault.cutrace", engine=engine)
        with pytest.raises(KernelFault) as caught, session as gpu:
            run(gpu)
        words.append(str(caught.value))
    assert words[0] == words[1]
    assert WHO[kernel] in words[0]
