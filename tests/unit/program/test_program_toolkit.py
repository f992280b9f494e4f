"""Builds that look for a CUDA toolkit: CMake, plain Makefiles, and host files that g++ compiles."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from program_run import cutrace

from cutrace.base.errors import CutraceError
from cutrace.tracer.program.toolkit import OLDER, make_toolkit, with_older_members

DEVICE = """
#include <cstdio>
#include <cublas_v2.h>
__device__ float twice(float x);
__global__ void fill(float *a) { a[threadIdx.x] = twice(threadIdx.x); }
void launch(float *a)
{
    float sum = 0;
    cublasHandle_t handle;
    fill<<<1, 32>>>(a);
    cublasCreate(&handle);
    cublasSasum(handle, 32, a, 1, &sum);
    printf("%g\\n", sum);
}
void show(const cudaDeviceProp &p) { printf("%d %d\\n", p.clockRate, p.memoryClockRate); }
"""
MORE = "__device__ float twice(float x) { return 2 * x; }\n"
HOST = """
#include <cuda_runtime.h>
void launch(float *a);
void show(const cudaDeviceProp &p);
int main()
{
    float *a;
    cudaDeviceProp p;
    cudaGetDeviceProperties(&p, 0);
    show(p);
    cudaMallocManaged(&a, 128);
    cudaMemAdvise(a, 128, cudaMemAdviseSetPreferredLocation, 0);
    cudaMemPrefetchAsync(a, 128, 0);
    launch(a);
    return cudaThreadSynchronize();
}
"""
"""Device 0 as a number, clock rates, and cudaThreadSynchronize are CUDA 12's."""

LISTS = """
cmake_minimum_required(VERSION 3.20)
project(app LANGUAGES CXX CUDA)
find_package(CUDAToolkit 13 REQUIRED)
add_executable(app device.cu more.cu host.cpp)
set_target_properties(app PROPERTIES CUDA_ARCHITECTURES "80;90" CUDA_SEPARABLE_COMPILATION ON)
target_link_libraries(app PRIVATE CUDA::cudart_static CUDA::cublas)
"""
MAKEFILE = """
NVCC = $(CUDA_HOME)/bin/nvcc
app: device.o more.o host.o
\t$(NVCC) -dlink -arch=sm_80 device.o more.o -o linked.o
\tg++ $^ linked.o -o app -L$(CUDA_HOME)/lib64 -lcublas -lcudart_static -ldl -lpthread
%.o: %.cu
\t$(NVCC) -arch=sm_80 -dc $< -o $@
host.o: host.cpp
\tg++ -c -I$(CUDA_HOME)/include host.cpp
"""
# h100: 1980 MHz and 2619 MHz of memory (models/devices/h100.toml); 2 * (0 + 1 + ... + 31) = 992
PRINTED = "1980000 2619000\n992\n"


def write_sources(folder: Path) -> None:
    (folder / "device.cu").write_text(DEVICE)
    (folder / "more.cu").write_text(MORE)
    (folder / "host.cpp").write_text(HOST)


def build(folder: Path, *command: str) -> None:
    root = make_toolkit()
    named = {"CUDACXX": str(root / "bin" / "nvcc"), "CUDA_HOME": str(root)}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **named},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_cmake_finds_the_toolkit_and_its_program_is_recorded(tmp_path: Path) -> None:
    beside = Path(sys.executable).with_name("cmake")
    cmake = str(beside) if beside.is_file() else shutil.which("cmake")
    if cmake is None:
        pytest.skip("cmake is not installed: pip install cmake")
    write_sources(tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(LISTS)
    build(tmp_path, cmake, "-B", "build", "-G", "Unix Makefiles")
    build(tmp_path, cmake, "--build", "build")
    done = cutrace(tmp_path, "record", "-d", "h100", "-o", "app.cutrace", "--", "build/app")
    assert (done.status, done.out) == (0, PRINTED), done.err
    assert [each.launch.kernel for each in done.trace.launches] == ["_Z4fillPf"]


def test_no_header_is_found_beside_the_changed_ones(tmp_path: Path) -> None:
    """Gcc follows a link to a system header where its target's path is shorter."""
    (tmp_path / "host.cpp").write_text(HOST)
    include = make_toolkit() / "include"
    command = ("g++", "-H", "-fsyntax-only", "-isystem", str(include), "host.cpp")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    opened = [line.split()[-1] for line in done.stderr.splitlines() if line.startswith(". ")]
    assert (done.returncode, opened) == (0, [str(include / "cuda_runtime.h")]), done.stderr
    linked = [path.name for path in include.rglob("*.h") if path.is_symlink()]
    assert not linked


def test_a_makefile_builds_with_the_toolkit(tmp_path: Path) -> None:
    write_sources(tmp_path)
    (tmp_path / "Makefile").write_text(MAKEFILE)
    build(tmp_path, "make")
    done = cutrace(tmp_path, "record", "-d", "h100", "-o", "app.cutrace", "--", "./app")
    assert (done.status, done.out) == (0, PRINTED), done.err


def test_the_verb_prints_a_folder_with_the_names_of_a_toolkit(tmp_path: Path) -> None:
    done = cutrace(tmp_path, "toolkit")
    root = Path(done.out.strip())
    assert (done.status, root) == (0, make_toolkit())
    libraries = "cudart cuda cublas cublasLt cusparse cufft curand cusolver nvrtc nvidia-ml"
    for name in ("bin/ptxas", "include/cuda.h", "version.json", "nvvm/libdevice"):
        assert (root / name).exists(), name
    for name in libraries.split():
        assert (root / "lib64" / f"lib{name}.so").resolve().is_file(), name
    query = subprocess.run([root / "bin" / "__nvcc_device_query"], capture_output=True, text=True)
    assert query.stdout == "90\n"  # of the default device, h100


def test_older_members_take_the_place_of_what_is_reserved() -> None:
    types = (
        "struct __device_builtin__ cudaMemPoolProps { int reserved[4]; };\n"
        "struct __device_builtin__ cudaDeviceProp\n{\n    int last;\n    int reserved[56];\n};\n"
    )
    assert with_older_members(types) == types.replace(
        "reserved[56];\n", f"reserved[{56 - 8}];\n    int {', '.join(OLDER)};\n"
    ).join(("#define CUTRACE_PROPERTIES\n", ""))
    with pytest.raises(CutraceError, match="expected a struct cudaDeviceProp"):
        with_older_members("struct cudaDeviceProp;")


def test_libraries_are_named_as_to_nvcc(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text("#include <cublas_v2.h>\nint main() { cublasCreate(0); }\n")
    done = cutrace(tmp_path, "record", "app.cu", "-lcublas", "-L.", "-o", "app.cutrace")
    assert done.status == 2
    assert "-lcublas is for the sources of a program, as in cutrace record app.cu -l" in done.err
