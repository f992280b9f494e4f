"""`cutrace judge PROBLEM SOLUTION`: solutions of KernelBench, GPU MODE and LeetGPU, without torch.

`device.py` stands for a framework: arrays on the device, and one kernel, of PTX.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cutrace
from cutrace.analyzer.comparison.judgement import Judgement, Tolerance, compare_values
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run

DEVICE = r'''
import ctypes
import numpy as np
cu = ctypes.CDLL("libcuda.so.1")
cu.cuInit(0)
context = ctypes.c_void_p()
cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
cu.cuCtxSetCurrent(context)

PTX = b"""
.version 8.0
.target sm_50
.address_size 64
.visible .entry scale(.param .u64 to, .param .u64 from, .param .f32 by) {
  .reg .b64 %a, %b, %i; .reg .b32 %t; .reg .f32 %x, %y;
  ld.param.u64 %a, [to]; ld.param.u64 %b, [from]; ld.param.f32 %y, [by];
  mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 4;
  add.s64 %a, %a, %i; add.s64 %b, %b, %i;
  ld.global.f32 %x, [%b]; mul.f32 %x, %x, %y; st.global.f32 [%a], %x;
  ret;
}
"""

class Array:
    def __init__(self, values):
        self.shape, self.dtype, self.nbytes = values.shape, values.dtype, values.nbytes
        self.place = ctypes.c_uint64()
        cu.cuMemAlloc_v2(ctypes.byref(self.place), ctypes.c_size_t(values.nbytes))
        cu.cuMemcpyHtoD_v2(self.place, values.ctypes.data_as(ctypes.c_void_p), values.nbytes)
    def data_ptr(self):
        return self.place.value
    def copy_to_host(self):
        values = np.empty(self.shape, self.dtype)
        cu.cuMemcpyDtoH_v2(values.ctypes.data_as(ctypes.c_void_p), self.place, values.nbytes)
        return values

def scale(to, source, by, threads=None):
    module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    cu.cuModuleLoadData(ctypes.byref(module), PTX)
    cu.cuModuleGetFunction(ctypes.byref(kernel), module, b"scale")
    words = (to.place, source.place, ctypes.c_float(by))
    pointers = (ctypes.c_void_p * 3)(*(ctypes.addressof(word) for word in words))
    threads = threads or source.shape[0]
    if cu.cuLaunchKernel(kernel, 1, 1, 1, threads, 1, 1, 0, None, pointers, None):
        raise RuntimeError("the launch failed")
    if cu.cuCtxSynchronize():
        raise RuntimeError("the kernel failed")
    return to

def empty_like(source):
    return Array(np.zeros(source.shape, source.dtype))
'''
KERNELBENCH = """
import numpy as np
from device import Array
n = 4096 * 4096 * 64
shape = height = (n,)

class Model:
    def __init__(self, by):
        self.by = by
    def forward(self, x):
        return self.by * x.copy_to_host()

def get_inputs():
    return [Array(np.random.rand(*shape).astype(np.float32))]

def get_init_inputs():
    return [3.0]
"""
HEAD = """
import numpy as np
from device import Array, empty_like, scale
kept = {}

class ModelNew:
    def __init__(self, by):
        self.by = by
    def forward(self, x):
"""
SOLUTIONS = {
    "good": "        return scale(empty_like(x), x, self.by)",
    "wrong": "        return scale(empty_like(x), x, self.by + 1)",
    "shape": "        return scale(empty_like(x), x, self.by).copy_to_host()[:-1]",
    "idle": "        return self.by * x.copy_to_host()",
    "trivial": "        scale(empty_like(x), x, 2)\n        return self.by * x.copy_to_host()",
    "keeps": """
        key = x.copy_to_host().tobytes()
        if key not in kept:
            kept[key] = scale(empty_like(x), x, self.by)
        return kept[key]""",
    "copies": """
        import sys
        product = Array(self.by * x.copy_to_host())
        for observe in sys.modules["cutrace_torch_host"].observers:
            observe("aten::mul", product)
        return scale(empty_like(x), product, 1)""",
    "first": """
        if not kept:
            kept[0] = scale(empty_like(x), x, self.by)
        return kept[0]""",
    "outside": "        return scale(empty_like(x), x, self.by, 96)",
    "raises": "        return x.nothing",
    "exits": "        import os; os._exit(0)",
    "online": """
        import socket
        socket.create_connection(("127.0.0.1", 9), 1)""",
    "large": "        return np.ones(1 << 40)",
}
"""The body of `forward`."""
EXPECTED = {
    "good": ("correct", "", "good computes what problem does"),
    "wrong": ("broken", "output", r"`out of call 0` differs in 64 of 64: \[0\] is 1\.498"),
    "shape": ("broken", "output", r"\(63,\) is not the shape \(64,\)"),
    "idle": ("broken", "launch", "launches no kernel: it returns what was in memory before, or"),
    "trivial": ("broken", "cheat", "the same when its kernels do not run: it comes from the host"),
    "keeps": (
        "broken",
        "cheat",
        "a call with equal inputs launches nothing: it returns an earlier",
    ),
    "copies": ("broken", "cheat", "aten::mul computes the result on the host, its kernels only"),
    "first": ("broken", "cheat", "call 1 launches nothing: it returns an earlier result"),
    "outside": ("broken", "outside", "reads 4 bytes outside of every array, 32 times"),
    "raises": ("broken", "program", r"raises\.py:10: AttributeError: 'Array' object has no"),
    "exits": ("broken", "program", "it ended before it returned its results"),
    "online": ("broken", "program", "online.py:12: .*Error: .*(unreachable|refused)"),
    "large": ("broken", "program", "MemoryError"),
}
"""Verdict, cause, a part of the reason. 0.37454 * 4 = 1.49816: the first of NumPy's seed 42."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("device.py").write_text(DEVICE)
    Path("problem.py").write_text(KERNELBENCH)
    return tmp_path


def judged(name: str, text: str, **options: Any) -> Judgement:
    Path(f"{name}.py").write_text(text)
    return cutrace.judge("problem.py", f"{name}.py", **options)


@pytest.mark.parametrize("name", SOLUTIONS)
def test_a_solution_of_kernelbench_has_its_verdict(name: str) -> None:
    judgement = judged(name, HEAD + SOLUTIONS[name], size={"n": 64})
    verdict, cause, reason = EXPECTED[name]
    assert (judgement.verdict, judgement.cause) == (verdict, cause), judgement.reason
    assert re.search(reason, judgement.reason), judgement.reason
    assert judgement.exit_status == (verdict != "correct")
    if verdict == "correct":
        # two warps load and store 128 bytes each: four sectors a request
        assert judgement.after.costs["global_transactions"] == 2 * 2 * 4
        assert judgement.after.estimate
        assert judgement.after.launches == ("scale<<<1, 64>>>(to, from=x, by=3.0)",)


def test_a_solution_that_is_no_python_does_not_build(capsys: pytest.CaptureFixture[str]) -> None:
    Path("b.py").write_text("def nothing(:\n")
    assert run(["judge", "problem.py", "b.py", "--size", "n=32", "--format", "json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert (answer["verdict"], answer["cause"]) == ("broken", "build")
    assert (answer["after"]["error"]["file"], answer["after"]["error"]["line"]) == ("b.py", 1)


def test_inputs_that_are_too_large_name_the_constants() -> None:
    with pytest.raises(CutraceError, match=r"--size NAME=VALUE, of n=\d+"):
        judged("good", HEAD + SOLUTIONS["good"], memory="1G")


def test_expected_values_of_a_problem_are_an_error() -> None:
    with pytest.raises(CutraceError, match="--expect: a problem's reference has"):
        judged("good", HEAD + SOLUTIONS["good"], expect={"out": [0.0]})


def test_a_constant_that_the_problem_does_not_have_is_an_error() -> None:
    with pytest.raises(CutraceError, match=r"--size m: problem\.py has the constants n"):
        judged("good", HEAD + SOLUTIONS["good"], size={"m": 4})


def test_a_constant_may_be_a_tuple_and_have_two_names() -> None:
    judgement = judged("good", HEAD + SOLUTIONS["good"], size={"shape": (32,)})
    assert [output.elements for output in judgement.outputs or ()] == [32, 32]


SIZED = """
import numpy as np
from device import Array
rows, columns = 64, 64 * 8
depth: int = 64
width = height = 64

class Model:
    def forward(self, x):
        return 3.0 * x.copy_to_host()

def get_inputs():
    return [Array(np.ones(rows * columns * depth * width * height, np.float32))]
"""
IDENTICAL = """
from device import empty_like, scale

class ModelNew:
    def forward(self, x):
        return scale(empty_like(x), x, 3.0)
"""


def test_constants_of_every_kind_of_assignment_have_other_values() -> None:
    Path("problem.py").write_text(SIZED)
    sizes = {"rows": 2, "columns": 3, "depth": 4, "height": 2}  # and width with it: one value
    first, *_ = judged("good", IDENTICAL, size=sizes).outputs or ()
    assert first.elements == 2 * 3 * 4 * 2 * 2
    first, *_ = judged("good", IDENTICAL, size={**sizes, "width": 1}).outputs or ()
    assert first.elements == 2 * 3 * 4 * 2


def test_the_advice_names_constants_of_every_kind_of_assignment() -> None:
    Path("problem.py").write_text(SIZED)
    with pytest.raises(CutraceError, match=r"columns=512, rows=64, depth=64"):
        judged("good", IDENTICAL)


def test_a_problem_that_cannot_be_imported_is_no_verdict() -> None:
    Path("problem.py").write_text(f"import nothing_like_this\n{KERNELBENCH}")
    with pytest.raises(CutraceError, match=r"problem.py:1: ModuleNotFoundError: No module"):
        judged("good", HEAD + SOLUTIONS["good"])


def test_a_build_that_takes_too_long_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cutrace.commands.running.problem.PATIENCE", 0.05)
    text = f"import time; time.sleep(60)\n{HEAD}{SOLUTIONS['good']}"
    with pytest.raises(CutraceError, match=r"slow\.py was not built within 3 s"):
        judged("slow", text, size={"n": 32})


def test_a_reference_that_fails_is_no_verdict() -> None:
    Path("problem.py").write_text(KERNELBENCH.replace("self.by * x", "self.by * y"))
    with pytest.raises(CutraceError, match=r"reference problem fails: problem.py:11: NameError"):
        judged("good", HEAD + SOLUTIONS["good"], size={"n": 32})


GPUMODE = """
import numpy as np
from device import Array, scale

def generate_input(size, seed):
    return Array(np.random.default_rng(seed).random(size, np.float32)), 5.0

def ref_kernel(data):
    return data[1] * data[0].copy_to_host()

def check_implementation(data, output):
    return bool(np.allclose(output, ref_kernel(data))), "it is not five times the input"
"""
TASK = """
name: scale
tests:
  - {"size": 32, "seed": 1}
  - {"size": 96, "seed": 2}
  - {"size": 64, "seed": 3}

benchmarks:
  - {"size": 1024, "seed": 4}
"""


def test_a_solution_of_gpu_mode_is_checked_by_the_problem_on_its_tests() -> None:
    Path("problem.py").write_text(GPUMODE)
    Path("task.yml").write_text(TASK)
    text = "from device import *\ndef custom_kernel(data):\n    return scale({})"
    good = judged("good", text.format("empty_like(data[0]), *data"))
    assert (good.verdict, len(good.outputs or ())) == ("correct", 3)
    assert good.after.costs["global_transactions"] == 3 * 2 * 4  # of the largest, three warps
    wrong = judged("wrong", text.format("empty_like(data[0]), data[0], 4"))
    assert wrong.cause == "output"
    assert "it is not five times the input" in wrong.reason
    flat = judged("flat", text.format("empty_like(data[0]), *data), (0"))
    assert "`out of call 0`: 2 arrays are returned, expected 1" in flat.reason
    short = judged("short", text.format("empty_like(data[0]), *data).copy_to_host().take(range(3)"))
    assert "(3,) is not the shape (32,)" in short.reason
    endless = judged("endless", "def custom_kernel(data):\n    while True: pass", seconds=2)
    assert (endless.verdict, endless.cause) == ("broken", "endless")


LEETGPU = """
import ctypes
import numpy as np
from device import Array

class Challenge:
    def reference_impl(self, a, out, n):
        out.__init__(2 * a.copy_to_host())
    def get_solve_signature(self):
        pointer = ctypes.POINTER(ctypes.c_float)
        return {"a": (pointer, "in"), "out": (pointer, "out"), "n": (ctypes.c_int, "in")}
    def generate_example_test(self):
        return self.test(4)
    def generate_functional_test(self):
        return [self.test(64), self.test(33)]
    def test(self, n):
        values = np.arange(n, dtype=np.float32)
        return {"a": Array(values), "out": Array(0 * values), "n": n}
"""
SOLVE = """
__global__ void twice(const float *a, float *out, int n) {
  int i = threadIdx.x;
  if (i < n)
    out[i] = 2 * a[i];
}
extern "C" void solve(const float *a, float *out, int n) {
  twice<<<1, 64>>>(a, out, n);
  cudaDeviceSynchronize();
}
"""


def test_a_solution_of_leetgpu_may_be_cuda_cpp() -> None:
    Path("problem.py").write_text(LEETGPU)
    Path("solution.cu").write_text(SOLVE)
    good = cutrace.judge("problem.py", "solution.cu")
    assert (good.verdict, len(good.outputs or ())) == ("correct", 3), good.reason
    assert good.after.launches == ("twice<<<1, 64>>>(a, out, n=64)",)
    Path("solution.cu").write_text(SOLVE.replace("2 * a", "3 * b"))
    bad = cutrace.judge("problem.py", "solution.cu")
    assert bad.cause == "build"
    assert "solution.cu(5): error" in bad.reason


@pytest.mark.parametrize(("dtype", "error"), [("f4", 0.5), ("i8", 1.0)])
def test_a_loss_is_a_number_without_a_dimension(dtype: str, error: float) -> None:
    values, reference = np.array(2.0, dtype), np.array(2.0 + error, dtype)
    output = compare_values("loss", values, reference, Tolerance(1e-4, 1e-4))
    assert (output.elements, output.differing, output.largest_error) == (1, 1, error)
    assert compare_values("loss", values, values, Tolerance(1e-4, 1e-4)).is_same
