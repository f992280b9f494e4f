"""Packages that call nvcc at run time, and launches as CUDA 3 had them, which PyCUDA asks for.

PyCUDA itself is built from C++ for a minute and a half; docs/support.md has its own tests.
Here a package of its name has what is changed of it, and ctypes calls the driver as it does.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from program_run import cutrace

from cutrace.tracer.program.startup import nvcc_host

COMPILER = """
def compile_plain(source, options, keep, nvcc, cache_dir, target="cubin"):
    raise OSError("there is no nvcc")

class DynamicModule:
    def add_stdlib(self, library):
        raise OSError(f"there is no lib{library}.a")
"""
DRIVER = """
class CompileError(Exception):
    def __init__(self, message, command, stdout=None, stderr=None):
        super().__init__(message)
        self.stderr = stderr
"""
SCRIPT = '''
import ctypes
from pycuda import compiler
from pycuda.driver import CompileError

SCALE = """
extern "C" __global__ void scale(float *data, float by, int n)
{
    extern __shared__ float kept[];
    kept[threadIdx.x] = by;
    if (threadIdx.x < n)
        data[blockIdx.x * 32 + threadIdx.x] *= kept[threadIdx.x];
}
"""
dynamic = compiler.DynamicModule()
assert dynamic.add_stdlib("cudadevrt") is dynamic
try:
    dynamic.add_stdlib("cublas_device")
    raise SystemExit("a library that is not there was found")
except OSError:
    pass
code = compiler.compile_plain(SCALE, ["-arch", "sm_90"], False, "nvcc", None)
cuda = ctypes.CDLL("libcuda.so.1")

def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert not status, (name, status)

context, module, scale = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
data, host = ctypes.c_uint64(), (ctypes.c_float * 64)(*range(64))
call("cuInit", 0)
assert cuda.cuProfilerInitialize(None, None, 0) == 801  # CUDA_ERROR_NOT_SUPPORTED
call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
attached = ctypes.c_void_p()
call("cuCtxAttach", ctypes.byref(attached), 0)
assert attached.value == context.value
call("cuModuleLoadData", ctypes.byref(module), code)
call("cuModuleGetFunction", ctypes.byref(scale), module, b"scale")
call("cuMemAlloc_v2", ctypes.byref(data), ctypes.c_size_t(256))
call("cuMemcpyHtoD_v2", data, host, ctypes.c_size_t(256))
assert cuda.cuFuncSetBlockShape(scale, 0, 1, 1) == 1  # CUDA_ERROR_INVALID_VALUE
assert cuda.cuParamSetv(scale, 4090, host, 128) == 1
call("cuFuncSetBlockShape", scale, 32, 1, 1)
call("cuFuncSetSharedSize", scale, 128)
call("cuParamSetv", scale, 0, ctypes.byref(data), 8)
call("cuParamSetf", scale, 8, ctypes.c_float(0.5))
call("cuParamSeti", scale, 12, 31)
call("cuParamSetSize", scale, 16)
call("cuLaunchGrid", scale, 2, 1)
call("cuMemcpyDtoH_v2", host, data, ctypes.c_size_t(256))
assert list(host) == [i if i % 32 == 31 else i / 2 for i in range(64)]  # 31 of each block
call("cuCtxDetach", context)
try:
    compiler.compile_plain("__global__ void k() { nothing(); }", [], False, "nvcc", None)
except CompileError as error:
    print(error.stderr)
'''


def test_a_package_that_calls_nvcc_gets_ptx_with_lines_and_launches_as_of_old(
    tmp_path: Path,
) -> None:
    package = tmp_path / "pycuda"
    package.mkdir()
    for name, text in {"__init__": "", "compiler": COMPILER, "driver": DRIVER}.items():
        (package / f"{name}.py").write_text(text)
    (tmp_path / "app.py").write_text(SCRIPT)
    done = cutrace(tmp_path, "record", "app.py")
    assert done.status == 0, done.err
    lines = [line.strip() for line in SCRIPT.splitlines()]
    slip = next(at for at, line in enumerate(lines, start=1) if "nothing()" in line)
    assert f'app.py({slip}): error: identifier "nothing" is undefined' in done.out
    (launch,) = done.trace.launches
    assert launch.launch.grid == (2, 1, 1)
    assert launch.launch.block == (32, 1, 1)
    assert launch.launch.shared_dynamic == 128
    table = launch.instructions().select(["file", "line", "opcode", "space"]).to_pylist()
    stores = [row for row in table if row["opcode"] == "st" and row["space"] == "global"]
    scaled = "data[blockIdx.x * 32 + threadIdx.x] *= kept[threadIdx.x];"
    assert [row["line"] for row in stores] == [lines.index(scaled) + 1]
    assert {row["file"] for row in stores} == {"app.py"}
    assert launch.launch.signature == "scale(float *data, float by, int n)"


OWN = """
extern "C" __global__ void own(int *x)
{
    *x = 1;
}
"""


def test_a_source_has_the_lines_of_the_python_file_that_it_is_written_in() -> None:
    text = Path(__file__).read_text()
    first = text[: text.index('OWN = """')].count("\n") + 1
    source = nvcc_host.with_lines_of_python(f"int before;\n{OWN}int after;\n")
    own = f'int before;\n\n#line {first} "{__file__}"\n{OWN}'
    assert source == f'{own}\n#line 7 "<generated>"\nint after;\n'
    assert nvcc_host.with_lines_of_python("int generated;") == "int generated;"
    escaped = "__global__ void k()\n{\n}\n"  # its lines are not those of the file
    assert nvcc_host.with_lines_of_python(escaped) == escaped


COMPILER_CALLED = """#!{python}
import sys
from pathlib import Path
assert sys.argv[1:5] == ["-m", "cutrace", "nvcc", "--ptx"], sys.argv
source, made, depends = Path(sys.argv[-6]), Path(sys.argv[-1]), Path(sys.argv[-3])
header = Path("{header}")
with open("{calls}", "a") as calls:
    print(*sys.argv[5:-6], file=calls)
if "error" in source.read_text():
    sys.exit("no")
print("a warning")
made.write_text(f"{{source.read_text()}} with {{header.read_text()}}")
depends.write_text(f"{{made}} : {{source}} \\\\\\n   {{header}}\\n")
"""


class Compilers:
    """A stand-in for `python -m cutrace nvcc`, which writes down how it is called."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.header, self._calls = folder / "h.h", folder / "calls"
        self.header.write_text("one")
        python = folder / "python"
        python.write_text(
            COMPILER_CALLED.format(python=sys.executable, header=self.header, calls=self._calls)
        )
        python.chmod(0o755)
        monkeypatch.setenv("CUTRACE_PYTHON", str(python))
        monkeypatch.setenv("CUTRACE_SOURCES", str(folder / "sources"))

    def calls(self) -> list[str]:
        """The options of each call."""
        return self._calls.read_text().splitlines()


@pytest.fixture
def compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compilers:
    return Compilers(tmp_path, monkeypatch)


def test_a_source_is_compiled_once_until_a_file_that_it_includes_changes(
    compilers: Compilers,
) -> None:
    for _ in range(2):
        made = nvcc_host.make_ptx("k", ["-O1"])
        assert (made.ptx, made.out) == (b"k with one", "a warning\n")
    assert compilers.calls() == ["-O1"]
    assert nvcc_host.make_ptx("k", ["-O2"]).ptx == b"k with one"
    compilers.header.write_text("three")
    assert nvcc_host.make_ptx("k", ["-O1"]).ptx == b"k with three"
    assert compilers.calls() == ["-O1", "-O2", "-O1"]
    assert [nvcc_host.make_ptx("error", []).status for _ in range(2)] == [1, 1]


def test_cupy_gets_ptx_of_its_backend_nvcc_and_the_name_of_our_compiler(
    compilers: Compilers,
) -> None:
    def refuse(*said: object) -> ValueError:
        return ValueError(*said)

    compiler = SimpleNamespace(
        _get_arch=lambda: "90",
        CompileException=refuse,
        _compile_with_cache_cuda=lambda source, *options: (source, options),
    )
    nvcc_host.serve_cupy(compiler)
    assert compiler._compile_with_cache_cuda(OWN, "-O1")[0].endswith(f"\n{OWN}")
    log: list[str] = []
    stream = SimpleNamespace(write=log.append)
    made = compiler.compile_using_nvcc("k", ("-dc", "-O1"), "80", "k.cu", "cubin", True, stream)
    assert (made, log) == (b"k with one", ["a warning\n"])
    compiler.compile_using_nvcc("k", ("-o", "preprocess.ptx"), code_type="ptx")
    assert compilers.calls() == ["-arch=sm_80 -dc -O1", "-arch=sm_90"]
    with pytest.raises(ValueError, match="no"):
        compiler.compile_using_nvcc("error")
    environment = SimpleNamespace()
    nvcc_host.name_nvcc(environment)
    assert environment._nvcc_path.endswith("/python -m cutrace nvcc")


EXTENSION = """
import ctypes, os, subprocess
CUDA_HOME = None
class FileBaton:
    pass
def load_inline(name, cpp_sources, cuda_sources=None, functions=None):
    lock = FileBaton(os.path.join(os.environ["TORCH_EXTENSIONS_DIR"], "lock"))
    assert lock.try_acquire() and not FileBaton(lock._path).try_acquire()
    with open(f"{name}.cu", "w") as file:
        file.write("".join(["#include <cstdio>\\n", *cuda_sources]))
    nvcc = os.path.join(CUDA_HOME, "bin", "nvcc")
    words = ("-shared", "-Xcompiler", "-fPIC", "-o", f"{name}.so", f"{name}.cu")
    subprocess.run((nvcc, *words, f"-L{CUDA_HOME}/lib64", "-lcudart"), check=True)
    lock.release()
    lock.wait()
    return ctypes.CDLL(f"./{name}.so")
"""
INLINE = '''
import os, sys, types
from torch.utils import cpp_extension
os.makedirs(os.environ["TORCH_EXTENSIONS_DIR"], exist_ok=True)
source = """
__global__ void twice(float *x) {
    x[threadIdx.x] *= 2;
}
extern "C" float run() {
    float *x, first = 21;
    cudaMalloc(&x, 4);
    cudaMemcpy(x, &first, 4, cudaMemcpyHostToDevice);
    twice<<<1, 1>>>(x);
    cudaMemcpy(&first, x, 4, cudaMemcpyDeviceToHost);
    return first;
}
"""
module = cpp_extension.load_inline("twice", "", source, functions=["run"])
module.run.restype = cpp_extension.ctypes.c_float
print(module.run())
'''


def test_an_extension_of_torch_is_built_by_the_toolkit_and_has_lines_of_the_script(
    tmp_path: Path,
) -> None:
    package = tmp_path / "torch" / "utils"
    package.mkdir(parents=True)
    head = "from types import SimpleNamespace\nversion = SimpleNamespace(cuda=None)\n"
    (package.parent / "__init__.py").write_text(f"{head}cuda = SimpleNamespace()\n")
    (package / "__init__.py").write_text("")
    (package / "cpp_extension.py").write_text(EXTENSION)
    (tmp_path / "app.py").write_text(INLINE)
    done = cutrace(tmp_path, "record", "app.py")
    assert (done.status, done.out) == (0, "42.0\n"), done.err
    (launch,) = done.trace.launches
    lines = {(Path(each["file"]).name, each["line"]) for each in launch.instructions().to_pylist()}
    assert ("app.py", 7) in lines


FOREIGN = """
from tvm_ffi.cpp import extension
home = extension.Path(extension._find_cuda_home())
print((home / "bin/nvcc").is_file(), extension._get_cuda_target())
"""


def test_tvm_ffi_builds_with_the_toolkit_for_the_device(tmp_path: Path) -> None:
    package = tmp_path / "tvm_ffi" / "cpp"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    names = ("_find_cuda_home", "_get_cuda_target")
    asks = "".join(f"def {name}(): raise RuntimeError('nvidia-smi')\n" for name in names)
    (package / "extension.py").write_text(f"from pathlib import Path\n{asks}")
    (tmp_path / "app.py").write_text(FOREIGN)
    done = cutrace(tmp_path, "record", "app.py", "-d", "a100")
    assert done.out == "True -gencode=arch=compute_80,code=compute_80\n", done.err


def test_tilelang_compiles_to_ptx() -> None:
    formats: list[str] = []
    given: list[list[str]] = []

    def compile_cuda(
        code: str, target_format: str = "ptx", arch: object = None, options: list[str] | None = None
    ) -> str:
        formats.append(target_format)
        given.append(options or [])
        return code

    nvcc = SimpleNamespace(compile_cuda=compile_cuda)
    nvcc_host.serve_tilelang(nvcc)
    assert nvcc.compile_cuda("k", "cubin", ["-arch=sm_90a"]) == "k"
    assert nvcc.compile_cuda("k", target_format="fatbin", arch=None, options="-O3") == "k"
    assert formats == ["ptx", "ptx"]
    unchecked = "-DCCCL_DISABLE_CTK_COMPATIBILITY_CHECK"
    assert given == [[unchecked], ["-O3", unchecked]]
