"""Kernels that do not end: stopped after so many instructions, at the line of their loop."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.base.errors import CutraceError, KernelFault
from cutrace.commands._main import run
from cutrace.tracer.simt import wave
from cutrace.tracer.simt.warp import instruction_limit
from cutrace.tracer.simt.warp.instruction_limit import SLICE
from cutrace.tracer.simt.warp.program import Wave

COUNT = """// cutrace: count<<<2, 64>>>(out:i32[128], 1000)
__global__ void count(int *out, int rounds)
{
    int seen = 0;
    for (int i = 0; i != rounds; i++)
        seen += out[i & 127];
    out[blockIdx.x * 64 + threadIdx.x] = seen;
}
"""


def launch(source: str, limit: int, grid: int, block: int, *scalars: int) -> None:
    """Run a kernel that takes 256 ints and some scalars."""
    with cutrace.Session(max_instructions=limit) as gpu:
        module = gpu.compile(source)
        (name,) = module.kernels
        array = gpu.to_device(np.zeros(256, np.int32))
        module.get_function(name)[grid, block](array, *scalars)


def fault(source: str, limit: int, grid: int, block: int, *scalars: int) -> str:
    """What is said of a kernel that does not end."""
    with pytest.raises(KernelFault) as raised:
        launch(source, limit, grid, block, *scalars)
    return str(raised.value)


def test_a_loop_without_end_is_a_fault_at_its_line() -> None:
    source = """
    __global__ void k(int *data) {
        int t = threadIdx.x;
        data[t] = t;
        if (t >= 96)
            for (unsigned i = 1; i != 0; i += 2)
                data[i & 255] ^= t;
    }"""
    text = fault(source, 10_000, 2, 128)
    assert text.startswith("source.cu:6: kernel `k` does not end: warp 3 of block (0, 0, 0)")
    assert "ran 10000 instructions" in text
    assert "--max-instructions" in text


def test_the_innermost_loop_is_named() -> None:
    source = """
    __global__ void k(int *data, int n) {
        for (int i = 0; i < 4; i++) {
            data[i] = i;
            for (unsigned j = 0; j != n; j += 2)
                data[j & 255] ^= i;
        }
    }"""
    assert fault(source, 5_000, 1, 32, 7).startswith("source.cu:5: ")


def test_a_function_without_a_loop_is_named_where_it_is_or_by_its_callers_loop() -> None:
    source = """
    __device__ __noinline__ int odd(int n) {
        return n < 0 ? n : n + 2;
    }
    __global__ void k(int *data) {
        int n = 1;
        while (n)
            n = odd(n);
        data[0] = n;
    }"""
    lines = {fault(source, limit, 1, 32).split(":")[1] for limit in (1000, 1003)}
    assert lines == {"3", "7"}


def test_a_budget_that_is_just_enough_is_not_exceeded() -> None:
    """The budget is a warp's: two blocks of two warps may run four times as much."""
    text = COUNT.replace("1000", "10")

    def record(limit: int) -> int:
        with cutrace.Session(max_instructions=limit) as gpu:
            kernel = gpu.compile(text).get_function("count")
            kernel[2, 64](gpu.to_device(np.zeros(128, np.int32)), 10)
        counted = cutrace.analyze(gpu.trace, scope="all").launches[0].counters["ptx_instructions"]
        assert isinstance(counted, int)
        return counted // 4

    ran = record(1 << 20)
    assert record(ran) == ran
    with pytest.raises(KernelFault):
        record(ran - 1)


def test_the_command_line_takes_a_budget_for_sources_and_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("count.cu").write_text(COUNT)
    Path("count.py").write_text(
        "import cutrace, numpy\n"
        "with cutrace.Session() as gpu:\n"
        "    kernel = gpu.compile('count.cu').get_function('count')\n"
        "    kernel[2, 64](gpu.to_device(numpy.zeros(128, numpy.int32)), 1000)\n"
    )
    for source in ("count.cu", "count.py"):
        shutil.rmtree("count.cutrace", ignore_errors=True)
        assert run(["record", source, "--max-instructions", "500"]) == 1
        assert "count.cu:5: kernel `count` does not end" in capsys.readouterr().err
        assert not Path("count.cutrace").exists()
        assert run(["record", source, "--max-instructions", "50000"]) == 0
        capsys.readouterr()


@pytest.mark.parametrize("limit", [0, -5, 1 << 32])
def test_a_budget_without_sense_is_refused(limit: int) -> None:
    with pytest.raises(CutraceError, match=r"max_instructions is .*, expected 1 to 2147483648"):
        cutrace.Session(max_instructions=limit)


def test_a_loop_that_nothing_leaves_is_a_fault_at_once() -> None:
    # were it run, 2^28 instructions of a warp would take minutes
    source = """
    __global__ void k(int *data) {
        if (threadIdx.x >= 32)
            for (;;)
                atomicAdd(data, 1);
    }"""
    text = fault(source, 1 << 28, 1, 64)
    assert text.startswith("source.cu:")
    assert "nothing leaves the loop in which warp 1 of block (0, 0, 0) is" in text


def test_a_loop_that_a_trap_leaves_runs_on() -> None:
    source = """
    __global__ void k(int *data) {
        for (;;)
            if (++data[threadIdx.x] == 5)
                __trap();
    }"""
    assert "`trap` was executed in block 0" in fault(source, 10_000, 1, 32)


def test_machine_code_comes_back_every_few_million_instructions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that Python hears Ctrl-C and alarms; a round is 2 instructions or more."""
    times = []
    left = instruction_limit.instructions_left

    def count(own: Wave, block: int) -> int:
        times.append(block)
        return left(own, block)

    monkeypatch.setattr(wave, "instructions_left", count)
    with cutrace.Session(engine="compiled") as gpu:
        array = gpu.to_device(np.zeros(256, np.int32))
        gpu.compile(LONG).get_function("run")[1, 32](array, 8_000_000)
    assert len(times) >= 2 * 8_000_000 // SLICE


LONG = """extern "C" __global__ void run(int *out, int rounds)
{
    unsigned x = 1;
    for (int i = 0; i < rounds; i++)
        x = x * 1664525u + (x >> 9);
    out[threadIdx.x] = x;
}
"""
