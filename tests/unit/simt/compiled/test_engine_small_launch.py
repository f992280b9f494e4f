"""Launches that seem short are interpreted, and go on in machine code where they are not."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import files_of
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import CutraceError, KernelFault
from cutrace.tracer.simt import tier
from cutrace.tracer.simt.codegen import compiled_kernel

SOURCE = """
#include <cstdio>
extern "C" __global__ void add(int *a, int n) {
    for (int k = 0; k < n; ++k) a[threadIdx.x] += k % (threadIdx.x + 2);
}
extern "C" __global__ void tell(int *a, int n) {
    for (int k = 0; k < n; ++k) a[threadIdx.x] += k;
    printf("%d\\n", a[threadIdx.x]);
}
extern "C" __global__ void leave(int *a, int n) {
    for (int k = 0; k < n; ++k) a[threadIdx.x + (k == n - 1) * 1000] += k;
}
"""


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels that are compiled from now on; none is remembered as long."""
    names: list[str] = []
    compile_ = tier.LaunchTier._compile

    def note(launch: tier.LaunchTier) -> None:
        names.append(launch._code.program.name)
        compile_(launch)

    monkeypatch.setattr(tier.LaunchTier, "_compile", note)
    monkeypatch.setattr(tier, "_HOT", set())
    return names


def record(folder: Path, engine: str, kernel: str, *counts: int) -> NDArray[Any]:
    with cutrace.Session(folder / f"{engine}.cutrace", engine=engine) as gpu:
        a = gpu.to_device(np.arange(64, dtype=np.int32))
        for count in counts:
            gpu.compile(SOURCE).get_function(kernel)[1, 64](a, count)
        found: NDArray[Any] = a.copy_to_host()
        return found


def test_a_launch_that_takes_long_goes_on_compiled(tmp_path: Path, compiled: list[str]) -> None:
    found = record(tmp_path, "auto", "add", 10, 12000, 10)
    assert compiled == ["add", "add"]  # the first is brief; the third is known by the second
    counts = [*range(10), *range(12000), *range(10)]
    assert found.tolist() == [lane + sum(k % (lane + 2) for k in counts) for lane in range(64)]
    record(tmp_path, "array", "add", 10, 12000, 10)
    traces = [files_of(tmp_path / f"{engine}.cutrace") for engine in ("auto", "array")]
    assert traces[0] == traces[1]


def test_a_brief_launch_is_not_compiled(tmp_path: Path, compiled: list[str]) -> None:
    assert record(tmp_path, "auto", "add", 3).tolist() == [
        lane + sum(k % (lane + 2) for k in range(3)) for lane in range(64)
    ]
    assert compiled == []


def test_what_a_kernel_prints_is_printed_once(
    tmp_path: Path, compiled: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    found = record(tmp_path, "auto", "tell", 60000)
    printed = capfd.readouterr().out.split()
    assert printed == [str(lane + sum(range(60000))) for lane in range(64)]
    assert found.tolist() == [int(text) for text in printed]
    assert compiled == ["tell"]


def test_a_fault_of_a_brief_launch_is_told(tmp_path: Path, compiled: list[str]) -> None:
    with pytest.raises(KernelFault, match="reads 4 bytes outside"):
        record(tmp_path, "auto", "leave", 20)
    assert compiled == []


PLAIN = 'extern "C" __global__ void plain(int *a) { a[threadIdx.x] += 1; }'


def test_a_kernel_that_is_launched_often_is_compiled(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tier, "_SPENT", Counter())
    monkeypatch.setattr(tier, "OFTEN", 3)
    for engine in ("auto", "array"):
        with cutrace.Session(tmp_path / f"{engine}.cutrace", engine=engine) as gpu:
            a = gpu.to_device(np.zeros(64, dtype=np.int32))
            kernel = gpu.compile(PLAIN).get_function("plain")
            for _ in range(5):
                kernel[1, 64](a)
            assert a.copy_to_host().tolist() == [5] * 64
    assert compiled == ["plain", "plain"]  # the fourth and the fifth
    assert files_of(tmp_path / "auto.cutrace") == files_of(tmp_path / "array.cutrace")


def test_why_a_kernel_is_not_compiled_is_found_out_once(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(kernel: Any, *others: Any) -> Any:
        asked.append(kernel.name)
        raise CutraceError("not today")

    monkeypatch.setattr(tier, "_SPENT", Counter())
    monkeypatch.setattr(tier, "OFTEN", 0)
    monkeypatch.setattr(compiled_kernel, "_CODE", {})
    monkeypatch.setattr(compiled_kernel, "write_kernel", refuse)
    with cutrace.Session(tmp_path / "x.cutrace") as gpu:
        a = gpu.to_device(np.zeros(64, dtype=np.int32))
        kernel = gpu.compile(PLAIN).get_function("plain")
        for _ in range(3):
            kernel[1, 64](a)
        assert a.copy_to_host().tolist() == [3] * 64
    assert (asked, compiled) == (["plain"], ["plain"] * 3)


RING = """
#include <cstdio>
__device__ __noinline__ float half(float x, int n) {
    for (int k = 0; k < n; ++k) x = x * 0.5f + (float)(k & 3);
    return x;
}
extern "C" __global__ void ring(float *a, unsigned *count, int n) {
    __shared__ float s[64];
    int i = threadIdx.x;
    float x = a[blockIdx.x * 64 + i];
    for (int k = 0; k < n; ++k) {
        if ((i ^ k) & 1) x = half(x, i & 7);
        else if (k == 5) x += __shfl_xor_sync(__activemask(), x, 2);
        s[i] = x;
        __syncthreads();
        x += s[(i + 7) & 63];
        if (__syncthreads_or(k == n - 1 && i == 3)) atomicAdd(count, 1u);
    }
    if (i >= 40) return;
    while (atomicCAS(count + 1 + blockIdx.x, 0u, 1u) != 0u);
    a[blockIdx.x * 64 + i] = x;
    atomicExch(count + 1 + blockIdx.x, 0u);
}
"""


@pytest.mark.parametrize("brief", [1, 7, 60, 150, 400, 700, 1000])
def test_registers_rows_and_waiting_lanes_go_over_to_machine_code(
    brief: int, tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tier, "BRIEF", brief)
    results = []
    for engine in ("auto", "array"):
        with cutrace.Session(tmp_path / f"{engine}.cutrace", engine=engine) as gpu:
            a = gpu.to_device(np.linspace(1, 2, 192, dtype=np.float32))
            count = gpu.to_device(np.zeros(4, dtype=np.uint32))
            gpu.compile(RING).get_function("ring")[3, 64](a, count, 6)
            results.append((a.copy_to_host().tolist(), count.copy_to_host().tolist()))
    assert compiled == ["ring"]
    assert results[0] == results[1]
    assert results[0][1] == [192, 0, 0, 0]
    assert files_of(tmp_path / "auto.cutrace") == files_of(tmp_path / "array.cutrace")
