"""Kernels of Triton: their PTX, their arguments, their times."""

from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from program_run import cutrace

from cutrace.tracer.front.signature import list_kernels
from cutrace.tracer.program.startup import torch_host, triton_host

has_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs pip install triton")

SCRIPT = """
import numpy as np
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)

@triton.autotune([triton.Config({"BLOCK": b}, num_warps=1) for b in (32, 1024)], key=["n"])
@triton.jit
def double(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)

@triton.jit
def square(a, out, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(a + at)))

x = np.arange(5000, dtype=np.float32)
out = np.empty_like(x)
add[(5,)](x, x, out, 5000, BLOCK=1024)
assert (out == 2 * x).all()
double[lambda meta: (triton.cdiv(5000, meta["BLOCK"]),)](x, out, 5000)
assert (out == 2 * x).all()
times = {each.kwargs["BLOCK"]: ms for each, (ms, *_) in double.configs_timings.items()}
print(double.best_config.kwargs["BLOCK"], times[32] < times[1024])
a = np.eye(64, dtype=np.float16) * 3
out = np.zeros((64, 64), np.float32)
square[(1,)](a, out, N=64, num_warps=4)
assert (out == 9 * np.eye(64)).all()
"""


@has_triton
@pytest.mark.slow  # Triton compiles five kernels
def test_a_script_of_triton_runs_with_arrays_of_numpy(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SCRIPT)
    done = cutrace(tmp_path, "record", "app.py", "-d", "h100")
    assert done.status == 0, done.err
    # 1024 elements to a block are 5 blocks, which keep 5 of 132 SMs busy; 32 are 157 blocks
    assert done.out == "32 True\n"
    assert "times that Triton measures are counted" in done.err
    assert "compiled for" not in done.err
    add, double, square = done.trace.launches
    shown = [(each.name, each.value) for each in add.launch.arguments]
    assert shown[:4] == [("x", "x"), ("y", "x"), ("out", "out"), ("n", 5000)]
    assert double.launch.grid == (157, 1, 1)  # 5000 / 32, and no trial of the autotuner besides
    assert square.launch.block == (128, 1, 1)
    assert "wgmma" in square.instructions()["opcode"].to_pylist()  # what tl.dot is on 9.0
    table = add.instructions().select(["file", "line", "opcode"]).to_pylist()
    assert {(row["file"], row["line"]) for row in table if row["opcode"] == "st"} == {
        ("app.py", 10)
    }
    assert SCRIPT.splitlines()[9].strip().startswith("tl.store")


PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 .ptr .global .align 1 add_param_0, .param .u32 add_param_1,
.param .u64 .ptr .global .align 1 add_param_2, .param .u64 .ptr .global .align 1 add_param_3)
{ ld.param.u32 %r1, [add_param_1]; ret; }
"""


def test_parameters_of_triton_get_the_names_of_its_python() -> None:
    kernel = SimpleNamespace(name="add", kernel=PTX.encode())
    source = SimpleNamespace(signature={"x": "*fp32", "BLOCK": "constexpr", "n": "i32"})
    named = triton_host._with_names(kernel, source)
    assert "[add_param_n]" in named
    (found,) = list_kernels(named)
    assert [name for _, name in found.parameters] == ["x", "n", "global_scratch", "profile_scratch"]


def test_parameters_of_a_kernel_that_ptx_alone_names_keep_their_numbers() -> None:
    (found,) = list_kernels(PTX)
    assert [name for _, name in found.parameters][:2] == ["add_param_0", "add_param_1"]


def test_ptx_that_was_kept_names_the_file_where_its_function_lies_now() -> None:
    def function() -> None:
        """Of this file."""

    text = f'.file 1 "/elsewhere/{Path(__file__).name}"\n.file 2 "/elsewhere/other.py"\n'
    moved = triton_host._with_own_file(text, SimpleNamespace(fn=function))
    assert moved == f'.file 1 "{__file__}"\n.file 2 "/elsewhere/other.py"\n'


def test_torch_is_told_that_there_is_no_gpu_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    version = SimpleNamespace(cuda=None)  # as built for the CPU
    torch = SimpleNamespace(version=version, cuda=SimpleNamespace(is_available=lambda: True))
    torch_host.choose_host(torch)
    assert (torch.cuda.is_available(), torch.cuda.device_count()) == (False, 0)
    assert capsys.readouterr().err.count("torch runs on the CPU") == 1


def test_torch_knows_the_capability_that_kernels_of_triton_are_compiled_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Driver:
        def cuInit(self, flags: int) -> int:
            return 0

        def cuDeviceComputeCapability(self, major: Any, minor: Any, device: int) -> int:
            major._obj.value, minor._obj.value = 8, 6
            return 0

    monkeypatch.setattr("ctypes.CDLL", lambda name: Driver())
    torch = SimpleNamespace(cuda=SimpleNamespace())
    torch_host.keep_on_host(torch)
    assert torch.cuda.get_device_capability() == torch.cuda.get_device_capability(0) == (8, 6)


def test_inductor_measures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Benchmarker:
        def benchmark_gpu(self, call: Any, **more: Any) -> Any:
            raise AssertionError

    class InductorBenchmarker(Benchmarker):
        def benchmark_gpu(self, call: Any, **more: Any) -> Any:
            raise AssertionError

    calls: list[str] = []
    monkeypatch.setattr(triton_host, "_count", lambda call: call() or 0.25)
    module = SimpleNamespace(Benchmarker=Benchmarker, InductorBenchmarker=InductorBenchmarker)
    triton_host.count_for_inductor(module)
    for kind in (Benchmarker, InductorBenchmarker):
        bound = kind().benchmark_gpu(lambda: calls.append("once"), estimation_iters=5)
        assert bound == 0.25
    assert InductorBenchmarker().benchmark_gpu(lambda: None, return_mode="all") == [0.25]
    assert calls == ["once", "once"]
