"""Launches that seem short run in the array engine, and are begun anew where they are not."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import files_of
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import CutraceError, KernelFault
from cutrace.tracer.simt import run
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
    compile_ = run._compiled

    def note(program: Any, blocks: int) -> Any:
        names.append(program.kernel.name)
        return compile_(program, blocks)

    monkeypatch.setattr(run, "_compiled", note)
    monkeypatch.setattr(run, "_LONG", set())
    return names


def record(folder: Path, engine: str, kernel: str, *counts: int) -> NDArray[Any]:
    with cutrace.Session(folder / f"{engine}.cutrace", engine=engine) as gpu:
        a = gpu.to_device(np.arange(64, dtype=np.int32))
        for count in counts:
            gpu.compile(SOURCE).get_function(kernel)[1, 64](a, count)
        found: NDArray[Any] = a.copy_to_host()
        return found


def test_a_launch_that_takes_long_is_begun_anew_and_compiled(
    tmp_path: Path, compiled: list[str]
) -> None:
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
    record(tmp_path, "auto", "tell", 5000)
    assert len(capfd.readouterr().out.split()) == 64
    assert compiled == []


def test_a_fault_of_a_brief_launch_is_told(tmp_path: Path, compiled: list[str]) -> None:
    with pytest.raises(KernelFault, match="reads 4 bytes outside"):
        record(tmp_path, "auto", "leave", 20)
    assert compiled == []


PLAIN = 'extern "C" __global__ void plain(int *a) { a[threadIdx.x] += 1; }'


def test_a_kernel_that_is_launched_often_is_compiled(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_SPENT", Counter())
    monkeypatch.setattr(run, "OFTEN", 3)
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

    monkeypatch.setattr(run, "_SPENT", Counter())
    monkeypatch.setattr(run, "OFTEN", 0)
    monkeypatch.setattr(compiled_kernel, "_CODE", {})
    monkeypatch.setattr(compiled_kernel, "write_kernel", refuse)
    with cutrace.Session(tmp_path / "x.cutrace") as gpu:
        a = gpu.to_device(np.zeros(64, dtype=np.int32))
        kernel = gpu.compile(PLAIN).get_function("plain")
        for _ in range(3):
            kernel[1, 64](a)
        assert a.copy_to_host().tolist() == [3] * 64
    assert (asked, compiled) == (["plain"], ["plain"] * 3)
