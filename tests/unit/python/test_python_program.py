"""Python programs as they are: `cutrace record script.py`."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from program_run import Done, cutrace

from cutrace.tracer.front.signature import python_parameters
from cutrace.tracer.program.code import BUNDLE_MAGIC, read_code, read_ptx

has_numba_cuda = pytest.mark.skipif(
    find_spec("numba_cuda") is None, reason='needs pip install "cutrace[numba]"'
)

ADD = """
import sys
import numpy as np
from numba import cuda

@cuda.jit
def add(a, b, out, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = a[i] + b[i]

n = int(sys.argv[1])
a = cuda.to_device(np.arange(n, dtype=np.float32))
out = cuda.device_array_like(a)
add[(n + 255) // 256, 256](a, a, out, n)
assert (out.copy_to_host() == 2 * np.arange(n)).all()
print(n, "sums are right")
"""


def run(folder: Path, source: str, *words: str) -> Done:
    """Record a script."""
    (folder / "app.py").write_text(source)
    return cutrace(folder, "record", "app.py", *words)


@has_numba_cuda
def test_a_script_of_numba_runs_unchanged_and_is_counted_by_its_own_lines(tmp_path: Path) -> None:
    done = run(tmp_path, ADD, "700")
    assert (done.status, done.out) == (0, "700 sums are right\n"), done.err
    assert "app.cutrace has 1 launch" in done.err
    (launch,) = done.trace.launches
    assert launch.launch.grid == (3, 1, 1)  # 700 threads in blocks of 256
    shown = [(each.name, each.value) for each in launch.launch.arguments]
    assert shown == [("a", "a"), ("b", "a"), ("out", "out"), ("n", 700)]
    table = launch.instructions().select(["file", "line", "opcode"]).to_pylist()
    stores = [(row["file"], row["line"]) for row in table if row["opcode"] == "st"]
    assert stores == [("app.py", 10)]
    assert ADD.splitlines()[9].strip() == "out[i] = a[i] + b[i]"


def test_a_numba_kernel_has_its_parameters_beside_cuda_in_a_string(tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(
        "SCALE = '__global__ void scale(float *data) {}'\ndef add(n, step):\n    pass\n"
    )
    entry = "_ZN8__main__3addB2v1B5c1abcExx"
    ptx = (
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        f".visible .entry {entry}(\n\t.param .u64 {entry}_param_0,\n"
        f'\t.param .u64 {entry}_param_1\n)\n{{\n\t.loc 1 2 1\n\tret;\n}}\n.file 1 "{file}"\n'
    )
    (kernel,) = read_code(ptx.encode(), 90).kernels
    assert (kernel.name, [name for _, name in kernel.parameters]) == ("add", ["n", "step"])


@has_numba_cuda
def test_a_script_is_analyzed_as_it_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(ADD.replace("sys.argv[1]", "700"))
    done = cutrace(tmp_path, "analyze", "app.py", "-q")
    assert done.status == 0, done.err
    assert "add<<<3, 256>>>" in done.out
    assert "700 sums are right" in done.err


FEATURES = """
import ctypes
import math
import numpy as np
from numba import cuda, float32

@cuda.jit(device=True)
def square(x):
    return x * x

@cuda.jit
def sum_squares(data, out):
    part = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    part[t] = square(data[i]) if i < data.size else 0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            part[t] += part[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        cuda.atomic.add(out, 0, part[0])

@cuda.jit
def sines(x, y):
    i = cuda.grid(1)
    if i < x.size:
        own = cuda.local.array(2, float32)
        own[0] = math.sin(x[i])
        own[1] = 2 * own[0]
        y[i] = own[0] + own[1]

@cuda.jit
def turn(data):
    i = cuda.grid(1)
    grid = cuda.cg.this_grid()
    mine = data[(i + 32) % data.size]
    grid.sync()
    data[i] = mine

@cuda.reduce
def total(a, b):
    return a + b

@cuda.jit
def hello(n):
    print("thread", cuda.threadIdx.x, n)

ones = np.ones(1000, np.float32)
out = cuda.to_device(np.zeros(1, np.float32))
sum_squares[8, 128](cuda.to_device(2 * ones), out)
print(out.copy_to_host()[0])
y = np.zeros_like(ones)
stream = cuda.stream()
device_y = cuda.to_device(y, stream)
sines[8, 128, stream](cuda.to_device(ones, stream), device_y)
y = device_y.copy_to_host(stream=stream)
print(np.allclose(y, 3 * np.sin(1.0)))
turned = cuda.to_device(np.arange(64))
turn[2, 32](turned)
print((turned.copy_to_host() == (np.arange(64) + 32) % 64).all())
print(total(np.arange(100.0)), flush=True)  # before what the kernel prints
hello[1, 2](5)
cuda.synchronize()
ctypes.CDLL(None).fflush(None)  # kernels print to C's stdout
print(cuda.get_current_device().compute_capability, cuda.is_available())
managed = cuda.managed_array(100, np.float32)
managed[:] = 0
sines[1, 128](managed, managed)
cuda.synchronize()
print(managed.sum())

@cuda.jit
def count(out, nested): # of empty tuples, for which Numba cannot make lines
    out[0] = len(nested)

counted = np.zeros(1, np.int64)
count[1, 1](counted, ((), ()))
print(counted[0])
"""


@has_numba_cuda
@pytest.mark.filterwarnings("ignore")
def test_what_numba_offers_is_there(tmp_path: Path) -> None:
    done = run(tmp_path, FEATURES)
    assert done.status == 0, done.err
    assert done.out.splitlines() == [
        "4000.0",  # 1000 squares of 2
        *("True", "True"),
        "4950.0",  # 0 + 1 + ... + 99
        *("thread 0 5", "thread 1 5"),
        "ComputeCapability(major=9, minor=0) True",
        *("0.0", "2"),
    ]


LINKED = """
import numpy as np
from cuda.bindings import driver
from numba import cuda

source = '''
extern "C" __device__ int plus(int *sum, int a, int b)
{
    *sum = a + b;
    return 0;
}
'''
plus = cuda.declare_device("plus", "int32(int32, int32)", link=cuda.CUSource(source))

@cuda.jit
def add(out):
    out[cuda.threadIdx.x] = plus(cuda.threadIdx.x, 40)

out = cuda.to_device(np.zeros(3, np.float32))
add[1, 3](out)
module = driver.cuModuleLoadData(open("scale.ptx", "rb").read() + b"\\0")[1]
scale = driver.cuModuleGetFunction(module, b"scale")[1]
place = np.array([out.__cuda_array_interface__["data"][0]], np.uint64)
pointers = np.array([place.ctypes.data], np.uint64)
driver.cuLaunchKernel(scale, 1, 1, 1, 3, 1, 1, 0, 0, pointers.ctypes.data, 0)  # of cuda-python
print(out.copy_to_host(), "call" in next(iter(add.inspect_lto_ptx().values())))  # it is inlined
try:
    cuda.jit("void()", link=[cuda.CUSource("wrong", name="wrong.cu")])(lambda: None)
except Exception as error:
    print("wrong.cu(1): error" in str(error), "/sources/" in str(error))
"""


@has_numba_cuda
def test_kernels_of_numba_are_linked_to_cuda_c_and_share_arrays_with_another_package(
    tmp_path: Path,
) -> None:
    (tmp_path / "scale.ptx").write_text(SCALE)
    done = run(tmp_path, LINKED)
    assert done.status == 0, done.err
    assert done.out.splitlines() == ["[80. 82. 84.] False", "True False"]  # twice 40 + 0, 1, 2
    kernels = [each.launch.kernel for each in done.trace.launches]
    assert len(kernels) == 2
    assert kernels[1] == "scale"
    sources = done.trace.manifest.sources
    assert any("*sum = a + b;" in text for text in sources.values())


NVRTC = """
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
import numpy as np

text = '''
extern "C" __global__ void twice(float *data, int n)
{
    int i = threadIdx.x;
    if (i < n) data[i] *= 2;
}
'''
device = Device()
device.set_current()
stream = device.create_stream()
program = Program(text, "c++", ProgramOptions(arch=f"sm_{device.arch}"))
kernel = program.compile("cubin").get_kernel("twice")
data = device.allocate(400, stream=stream)
view = np.frombuffer((__import__("ctypes").c_char * 400).from_address(int(data.handle)), np.float32)
view[:] = 21
launch(stream, LaunchConfig(grid=1, block=100), kernel, data, np.int32(100))
stream.sync()
print(view.sum())
"""


@has_numba_cuda
def test_machine_code_that_a_script_asks_of_nvrtc_is_ptx_with_lines(tmp_path: Path) -> None:
    done = run(tmp_path, NVRTC)
    assert (done.status, done.out) == (0, "4200.0\n"), done.err  # 100 times 42
    assert 5 in done.trace.launches[0].instructions()["line"].to_pylist()
    (text,) = done.trace.manifest.sources.values()
    assert text.splitlines()[4].strip() == "if (i < n) data[i] *= 2;"


RUNTIME = """
import numpy as np
from cuda.bindings import driver, nvml, runtime

def done(answer):
    assert answer[0] == 0, answer
    return answer[1] if len(answer) > 1 else None

host = np.arange(100, dtype=np.float32)
data = done(runtime.cudaMalloc(host.nbytes))
toward, back = runtime.cudaMemcpyKind.cudaMemcpyHostToDevice, runtime.cudaMemcpyKind(2)
done(runtime.cudaMemcpy(data, host.ctypes.data, host.nbytes, toward))
module = done(driver.cuModuleLoadData(open("scale.ptx", "rb").read() + b"\\0"))
kernel = done(driver.cuModuleGetFunction(module, b"scale"))
arguments = (np.array([data], dtype=np.uint64),)
pointers = np.array([each.ctypes.data for each in arguments], dtype=np.uint64)
done(driver.cuLaunchKernel(kernel, 1, 1, 1, 100, 1, 1, 0, 0, pointers.ctypes.data, 0))
done(runtime.cudaMemcpy(host.ctypes.data, data, host.nbytes, back))
nvml.init_v2()
name = done(runtime.cudaGetDeviceProperties(0)).name.decode()
print(host.sum(), name, nvml.device_get_count_v2())
assert driver.cuIpcGetMemHandle(0)[0] == 801
"""
SCALE = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 data) {
 .reg .b32 %r<2>; .reg .b64 %rd<3>; .reg .f32 %f<2>;
 ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x;
 mad.wide.u32 %rd2, %r1, 4, %rd1;
 ld.global.f32 %f1, [%rd2]; add.f32 %f1, %f1, %f1; st.global.f32 [%rd2], %f1;
 ret;
}
"""


@has_numba_cuda
def test_the_bindings_of_the_runtime_call_the_one_that_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "scale.ptx").write_text(SCALE)
    done = run(tmp_path, RUNTIME)
    assert (done.status, done.out) == (0, "9900.0 NVIDIA H100 80GB HBM3 1\n"), (
        done.err
    )  # twice 0 + ... + 99
    assert len(done.trace.launches) == 1
    assert re.search(r"what is not supported was asked for by .*cuda.bindings \d+\.\d+", done.err)


def test_a_script_s_own_error_stays_its_own(tmp_path: Path) -> None:
    done = run(tmp_path, "import sys\nraise ValueError(sys.argv[1:])\n", "--", "-x", "7")
    assert "ValueError: ['-x', '7']\n" in done.err
    assert "sitecustomize" not in done.err


def test_the_package_of_a_missing_library_is_named_below_the_error(tmp_path: Path) -> None:
    (tmp_path / "net-1.dist-info").mkdir()
    needs = ("nvidia-cufake==12.1; extra == 'all'", "nvidia-cufakelt-cu13==0.8", "nvidia-cuda-else")
    metadata = ("Metadata-Version: 2.1", "Name: net", *(f"Requires-Dist: {each}" for each in needs))
    (tmp_path / "net-1.dist-info" / "METADATA").write_text("\n".join(metadata))
    done = run(tmp_path, "import ctypes\nctypes.CDLL('libcufake_graph.so.9')\n")
    assert "OSError: libcufake_graph.so.9: cannot open" in done.err
    assert "\ncutrace: install it with: python -m pip install 'nvidia-cufake==12.1'\n" in done.err


def test_a_sitecustomize_of_the_user_s_own_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("OWN = 'mine'\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(filter(None, sys.path))}")
    done = run(tmp_path, "import sitecustomize\nprint(sitecustomize.OWN)\n")
    assert done.out == "mine\n", done.err


def test_parameters_are_called_as_the_python_function_calls_them() -> None:
    text = "def f(a):\n    def g(x, y): pass\ndef g(z): pass\n"
    assert python_parameters("g", 2, ["__global__ void g();", text]) == ("x", "y")
    assert python_parameters("g", 1, [text]) == ("z",)
    assert python_parameters("h", 1, [text]) == ()


def test_pieces_that_a_linker_collects_are_read_one_by_one() -> None:
    head = BUNDLE_MAGIC.to_bytes(4, "little") + (2).to_bytes(4, "little")
    pieces = b"".join(len(p).to_bytes(8, "little") + p for p in (b"one\0", b"two"))
    data = head + len(pieces).to_bytes(8, "little") + pieces
    assert read_ptx(data, 90) == ["one", "two"]
