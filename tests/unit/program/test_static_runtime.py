"""Programs that were built elsewhere: NVIDIA's runtime in themselves, or that of CUDA 12."""

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from program_run import HEAD, Done, cutrace

from cutrace.tracer.front.toolkit import find_host_compiler, find_toolkit
from cutrace.tracer.program.library import DRIVER, functions_of, runtime_table
from cutrace.tracer.program.wire import RUNTIME

ADD = """
__constant__ float more[2];
__device__ int count;
__managed__ float *kept;

__global__ void add(const float *a, float *sum, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { sum[i] = a[i] + more[1]; atomicAdd(&count, 1); }
}

int main()
{
    const int n = 100;
    float host[n], *a, *sum, values[2] = {0, 5};
    int counted, blocks;
    cudaDeviceProp shown;
    CHECK(cudaGetDeviceProperties(&shown, 0));
    CHECK(cudaMalloc(&a, sizeof host));
    CHECK(cudaMalloc(&sum, sizeof host));
    for (int i = 0; i < n; i++) host[i] = i;
    CHECK(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyToSymbol(more, values, sizeof values));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 1024, 0));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    add<<<4, 32, 0, stream>>>(a, sum, n);
    CHECK(cudaStreamSynchronize(stream));
    kept = sum;
    CHECK(cudaMemcpy(host, kept, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyFromSymbol(&counted, count, sizeof counted));
    printf("%s %g %d %d\\n", shown.name, host[99], counted, blocks);
    return 0;
}
"""


@pytest.fixture(scope="module")
def built_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that NVIDIA's nvcc alone built, as it does by default."""
    folder = tmp_path_factory.mktemp("elsewhere")
    toolkit = find_toolkit()
    (folder / "app.cu").write_text(HEAD + ADD)
    command = [str(toolkit.nvcc), "-arch=sm_80", f"-L{toolkit.root / 'lib'}", "-ccbin"]
    subprocess.run([*command, find_host_compiler(), "app.cu", "-o", "app"], check=True, cwd=folder)
    return folder / "app"


@pytest.fixture
def app(built_elsewhere: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(built_elsewhere, tmp_path))


def record_it(folder: Path) -> Done:
    return cutrace(folder, "record", "--", "./app")


def test_a_program_with_nvidia_s_runtime_in_itself_is_recorded(app: Path) -> None:
    done = record_it(app.parent)
    # 99 + 5; 100 threads add 1; two blocks of 1024 threads fill an SM's 64 warps
    assert (done.status, done.out) == (0, "NVIDIA H100 80GB HBM3 104 100 2\n"), done.err
    (launch,) = done.trace.launches
    assert [each.value for each in launch.launch.arguments] == ["p1", "p2", 100]


def test_one_that_is_stripped_of_names_is_recorded_too(app: Path) -> None:
    subprocess.run(["strip", app], check=True)
    done = record_it(app.parent)
    assert (done.status, done.out) == (0, "NVIDIA H100 80GB HBM3 104 100 2\n"), done.err
    assert len(done.trace.launches) == 1


def test_one_whose_runtime_is_not_found_is_told_what_to_do(app: Path) -> None:
    subprocess.run(["strip", app], check=True)
    data = bytearray(app.read_bytes())
    data[40:48], data[60:64] = bytes(8), bytes(4)  # where ELF's table of sections is, and its size
    app.write_bytes(data)
    done = record_it(app.parent)
    assert "NVIDIA's runtime in ./app is not reached" in done.err
    assert "its functions have no names there (strip, -s)" in done.err
    assert "-cudart shared, or by\n`cutrace nvcc`" in done.err
    assert "app.cutrace has 0 launches" in done.err


FAILS = """
extern "C" int fail() { cudaSetDevice(99); return cudaPeekAtLastError(); }
extern "C" int last() { return cudaGetLastError(); }
"""


def test_each_library_with_a_runtime_in_itself_has_its_own_last_error(tmp_path: Path) -> None:
    for name in ("one", "other"):
        build_library(tmp_path, name, FAILS)
    script = (
        "import ctypes\none, other = ctypes.CDLL('./one.so'), ctypes.CDLL('./other.so')\n"
        "print(one.fail(), other.last(), one.last(), one.last())\n"
    )
    (tmp_path / "app.py").write_text(script)
    done = cutrace(tmp_path, "record", "app.py")
    assert (done.status, done.out) == (0, "101 0 101 0\n"), done.err  # cudaErrorInvalidDevice


IN_A_LIBRARY = """
__global__ void fill(int *x) { x[threadIdx.x] = threadIdx.x; }
extern "C" int answer()
{
    int *x, host[32], sum = 0;
    if (cudaMalloc(&x, sizeof host)) return -1;
    fill<<<1, 32>>>(x); /* a constructor has registered it */
    if (cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost)) return -2;
    for (int each : host) sum += each;
    return sum;
}
"""


def build_library(folder: Path, name: str, text: str) -> None:
    """Build a library by NVIDIA's nvcc alone, and strip it of names."""
    toolkit = find_toolkit()
    (folder / f"{name}.cu").write_text(text)
    command = [str(toolkit.nvcc), "-arch=sm_80", f"-L{toolkit.root / 'lib'}", "-ccbin"]
    command += [find_host_compiler(), "-shared", "-Xcompiler", "-fPIC", f"{name}.cu"]
    subprocess.run([*command, "-o", f"{name}.so"], check=True, cwd=folder)
    subprocess.run(["strip", f"{name}.so"], check=True, cwd=folder)


def test_a_library_without_names_is_reached_before_its_constructors_run(tmp_path: Path) -> None:
    build_library(tmp_path, "made", IN_A_LIBRARY)
    script = 'import ctypes\nprint(ctypes.CDLL("./made.so").answer())\n'
    (tmp_path / "app.py").write_text(script)
    done = cutrace(tmp_path, "record", "app.py")
    assert (done.status, done.out) == (0, "496\n"), done.err  # 0 + ... + 31
    assert len(done.trace.launches) == 1


NAMES_IN_MESSAGES = """
#include <stdio.h>
#include <cuda_runtime.h>
__global__ void fill(int *x) { x[threadIdx.x] = 3; }
__attribute__((noinline)) static int say(int status)
{
    printf("cudaMalloc: %d\\n", status);
    return puts("cudaMemcpy") < 0;
}
int main()
{
    int *x, host[32];
    if (say(cudaMalloc(&x, sizeof host))) return 1;
    fill<<<1, 32>>>(x);
    if (cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost)) return 2;
    printf("%d\\n", host[31]);
}
"""


def test_a_stripped_programs_own_functions_that_name_the_runtimes_are_left_alone(
    tmp_path: Path,
) -> None:
    toolkit = find_toolkit()
    (tmp_path / "app.cu").write_text(NAMES_IN_MESSAGES)
    command = [str(toolkit.nvcc), "-arch=sm_80", f"-L{toolkit.root / 'lib'}", "-ccbin"]
    command += [find_host_compiler(), "app.cu", "-o", "app"]
    subprocess.run(command, check=True, cwd=tmp_path)
    subprocess.run(["strip", "app"], check=True, cwd=tmp_path)
    done = record_it(tmp_path)
    assert (done.status, done.out) == (0, "cudaMalloc: 0\ncudaMemcpy\n3\n"), done.err
    assert len(done.trace.launches) == 1


def _archives() -> list[Path]:
    """Return the static runtimes of the packages: of CUDA 13, and of 12.9."""
    return [find_toolkit().root / "lib" / "libcudart_static.a", _twelve("lib/libcudart_static.a")]


def _twelve(path: str) -> Path:
    spec = find_spec("nvidia")
    assert spec
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "cuda_runtime" / path


@pytest.mark.parametrize("archive", _archives(), ids=["13", "12"])
def test_functions_without_their_names_in_them_lie_where_the_search_takes_them(
    archive: Path,
) -> None:
    text = (DRIVER / "embedded.c").read_text()
    places = {name: int(n) for n, name in re.findall(r"\{(-?\d+), \"(\w+)\"\}", text)}
    assert len(places) == 15
    listing = subprocess.run(
        ["nm", "-n", "--defined-only", archive], capture_output=True, text=True, check=True
    ).stdout
    words = [line.split() for line in listing.splitlines() if line.count(" ") == 2]
    functions = [name for _, kind, name in words if kind in "tT"]
    middle = functions.index("__cudaInitModule")
    present = [name for name in places if name in functions]
    assert len(present) >= 14  # 12.9 has no __cudaGetProcAddress
    assert [functions[middle + places[name]] for name in present] == present


TWELVE = """
#include <stddef.h>
#include <stdio.h>
#include <cuda_runtime_api.h>
int main(void)
{
    struct cudaDeviceProp shown[2];
    char host[64], *data;
    int value;
    shown[1].major = 77;
    if (cudaGetDeviceProperties(shown, 0)) return 1;
    if (cudaDeviceGetAttribute(&value, cudaDevAttrClockRate, 0) || shown->clockRate != value)
        return 2;
    if (cudaMallocManaged((void **)&data, sizeof host, cudaMemAttachGlobal)) return 3;
    if (cudaMemAdvise(data, sizeof host, cudaMemAdviseSetReadMostly, 0)) return 4;
    if (cudaMemPrefetchAsync(data, sizeof host, 0, NULL)) return 5;
    if (cudaMemset(data, 7, sizeof host) || cudaThreadSynchronize()) return 6;
    if (cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost)) return 7;
    printf("%s %d.%d %d SMs %d %d\\n", shown->name, shown->major, shown->minor,
           shown->multiProcessorCount, host[63], shown[1].major);
    printf("%zu %d %d %d\\n", shown->sharedMemPerBlockOptin, shown->maxBlocksPerMultiProcessor,
           shown->memoryPoolsSupported, shown->clusterLaunch);
    return 0;
}
"""


@pytest.mark.parametrize("kind", ["-l:libcudart.so.12", "-l:libcudart_static.a", "stripped"])
def test_a_program_of_cuda_12_has_its_own_names(tmp_path: Path, kind: str) -> None:
    nvidia = _twelve("").parent
    includes = [f"-I{nvidia / name / 'include'}" for name in ("cuda_runtime", "cuda_nvcc")]
    (tmp_path / "app.c").write_text(TWELVE)
    command = ["g++", "-x", "c", "app.c", "-x", "none", *includes, "-w"]
    command += [
        f"-L{nvidia / 'cuda_runtime' / 'lib'}",
        "-l:libcudart_static.a" if kind == "stripped" else kind,
        *(["-s"] if kind == "stripped" else []),
        "-ldl",
        "-lrt",
        "-pthread",
        "-o",
        "app",
    ]
    subprocess.run(command, check=True, cwd=tmp_path)
    done = record_it(tmp_path)
    assert (done.status, done.out) == (
        0,
        # 227 KB, 32 blocks: CUDA's guide for 9.0
        "NVIDIA H100 80GB HBM3 9.0 132 SMs 7 77\n232448 32 1 1\n",
    ), done.err


def test_names_of_cuda_12_that_mean_another_thing_are_told_apart() -> None:
    exports, _ = runtime_table(find_toolkit(), functions_of(RUNTIME), [])
    for line in (
        "EXPORT(cudaMemAdvise, cudaMemAdvise, 0)",
        "EXPORT(cudaMemAdvise, twelve_cudaMemAdvise, 12)",
        "EXPORT(cudaMemAdvise_v2, cudaMemAdvise, 12)",
        "EXPORT(cudaMemcpyAsync_ptsz, cudaMemcpyAsync, 0)",
        "EXPORT(cudaMemPrefetchAsync_ptsz, twelve_cudaMemPrefetchAsync, 12)",
    ):
        assert f"{line}\n" in exports
    names = [line.split(",")[0] for line in exports.splitlines()]
    assert names == sorted(names)


PLUGIN = """
import _ctypes, ctypes
for name in ("first", "second", "first"):  # each at the place that the one before has left
    library = ctypes.CDLL(f"./{name}.so")
    print(library.answer())
    _ctypes.dlclose(library._handle)
"""


def test_a_library_at_the_place_of_one_that_has_left_is_reached(tmp_path: Path) -> None:
    toolkit = find_toolkit()
    for name, sign in (("first", "+"), ("second", "-")):
        (tmp_path / "made.cu").write_text(IN_A_LIBRARY.replace("sum += each", f"sum {sign}= each"))
        command = [str(toolkit.nvcc), "-arch=sm_80", f"-L{toolkit.root / 'lib'}", "-ccbin"]
        command += [find_host_compiler(), "-shared", "-Xcompiler", "-fPIC", "made.cu"]
        subprocess.run([*command, "-o", f"{name}.so"], check=True, cwd=tmp_path)
    (tmp_path / "app.py").write_text(PLUGIN)
    done = cutrace(tmp_path, "record", "app.py")
    assert (done.status, done.out) == (0, "496\n-496\n496\n"), done.err


OF_TWELVE = """
import ctypes
own = ctypes.CDLL(None)
own.dlvsym.restype = ctypes.c_void_p
place = own.dlvsym(None, b"cudaPointerGetAttributes", b"libcudart.so.12")
bytes_ = (ctypes.c_ubyte * 88)(*[7] * 88)  # cudaPointerAttributes of CUDA 13
status = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(place)(bytes_, bytes_)
print(status, bytes_[0], set(bytes_[24:]))
"""


def test_attributes_of_a_pointer_take_24_bytes_in_cuda_12(tmp_path: Path) -> None:
    """XGBoost has them on its stack: type, device, two addresses."""
    (tmp_path / "app.py").write_text(OF_TWELVE)
    done = cutrace(tmp_path, "record", "app.py")
    assert (done.status, done.out) == (0, "0 0 {7}\n"), done.err  # cudaMemoryTypeUnregistered
