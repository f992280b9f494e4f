"""What is found out of a kernel is found out once, also by sessions that load its text again."""

from pathlib import Path

import numpy as np

import cutrace
from cutrace.tracer.session.kernel_facts import known_kernel, known_module
from cutrace.traces.reader import read_trace

COUNT = """
__device__ int total = 7;
__global__ void count(int *out) { out[threadIdx.x] = total++ * 0 + threadIdx.x; }
"""


def record(trace: Path) -> str:
    """Launch `count`, and return its PTX."""
    with cutrace.Session(trace) as gpu:
        module = gpu.compile(COUNT)
        out = gpu.device_array(32, np.int32, name="out")
        module.get_function("count")[1, 32](out)
        assert int(module.get_global("total").copy_to_host(np.int32)[0]) != 7
        assert out.copy_to_host().tolist() == list(range(32))
    return module.ptx


def test_a_text_is_read_once_and_each_session_has_its_own_variables(tmp_path: Path) -> None:
    first, second = record(tmp_path / "a.cutrace"), record(tmp_path / "b.cutrace")
    assert first == second
    assert known_module(first) is known_module(second)
    (name,) = (launch.launch.kernel for launch in read_trace(tmp_path / "a.cutrace").launches)
    assert known_kernel(first, name) is known_kernel(second, name)
    files = [path.relative_to(tmp_path / "a.cutrace") for path in sorted(tmp_path.rglob("a.*/0/*"))]
    assert files
    for file in files:
        a, b = ((tmp_path / trace / file).read_bytes() for trace in ("a.cutrace", "b.cutrace"))
        assert a == b, file


def test_what_makes_blocks_depend_on_one_another_is_kept_with_the_kernel(tmp_path: Path) -> None:
    text = "__global__ void next(int *n, int *out) { out[threadIdx.x] = atomicAdd(n, 1); }\n"
    with cutrace.Session(tmp_path / "a.cutrace") as gpu:
        module = gpu.compile(text)
        kernel = known_kernel(module.ptx, module.signatures[0].mangled)
    assert (
        kernel.dependence
        == "source.cu:1: `atom.global.add.u32` reads what other blocks have added to"
    )
    assert kernel.parameter_bytes == 8 + 8
