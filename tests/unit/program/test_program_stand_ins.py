"""NVIDIA's libraries: what they export is ours, or refused by its name, in their versions."""

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest
from program_run import HEAD, Done, cutrace

from cutrace.tracer.front.toolkit import find_host_compiler, find_toolkit
from cutrace.tracer.program.library import (
    HEADERS,
    STAND_INS,
    build_library,
    named_in,
    read_names,
)

THEIRS = """
int cublasCreate_v2(void **handle) { return 90; }
int cublasDdot_v2(void *h, int n, double *x, int p, double *y, int q, double *out) { return 90; }
int cublasSgemmEx(void) { return 90; }
"""
"""As NVIDIA's library has these names; none of it is to run."""

APP = """
extern "C" int cublasCreate_v2(void **);
extern "C" int cublasSgemmEx();
extern "C" int cublasDdot_v2(void *, int, double *, int, double *, int, double *);
int main() {
    void *handle; double *x, dot;
    CHECK(cudaMallocManaged(&x, 24));
    for (int i = 0; i < 3; i++) x[i] = i + 1;
    int made = cublasCreate_v2(&handle), did = cublasDdot_v2(handle, 3, x, 1, x, 1, &dot);
    printf("%d %d %.0f %d", made, did, dot, cublasSgemmEx());
}
"""


def link_elsewhere(folder: Path) -> Done:
    """Build `app` with nvcc itself, and a library with the name and versions of NVIDIA's."""
    toolkit, compiler = find_toolkit(), find_host_compiler()
    (folder / "theirs.c").write_text(THEIRS)
    (folder / "map").write_text("libcublas.so.12 { global: cublas*; };")
    (folder / "app.cu").write_text(HEAD + APP)
    into = [*("-o", "libcublas.so", "-Wl,-soname,libcublas.so.12", "-Wl,--version-script,map")]
    shared = [compiler, "-shared", "-fPIC", "-x", "c", "theirs.c", *into]
    subprocess.run(shared, cwd=folder, check=True)
    ours = f"-L{build_library(toolkit, compiler)}"
    nvcc = [str(toolkit.nvcc), "-ccbin", compiler, "-cudart", "shared", "-L.", "-lcublas", ours]
    subprocess.run([*nvcc, "app.cu", "-o", "app"], cwd=folder, check=True)
    (folder / "libcublas.so").rename(folder / "libcublas.so.12")
    return cutrace(folder, "record", "--", "./app")


@pytest.mark.slow
def test_a_program_that_asks_for_nvidias_cublas_gets_ours(tmp_path: Path) -> None:
    done = link_elsewhere(tmp_path)
    # 1 + 4 + 9, and CUBLAS_STATUS_NOT_SUPPORTED of a call that we do not compute
    assert (done.status, done.out) == (0, "0 0 14 15"), done.err
    events = [event.name for event in done.trace.manifest.events if event.kind == "library"]
    assert events == ["cublasDdot"]


def test_only_a_program_that_names_a_library_gets_ours(tmp_path: Path) -> None:
    (tmp_path / "named").write_bytes(b"\x7fELF...\0libcufft.so.11\0...")
    (tmp_path / "longer").write_bytes(b"\x7fELF...\0libcufft.so.11.2\0...")
    (tmp_path / "empty").touch()
    found = [named_in(tmp_path / name) for name in ("named", "longer", "empty", "absent")]
    assert found == [["libcufft.so.11"], [], [], []]


def test_a_library_that_is_missing_is_named_with_its_package(tmp_path: Path) -> None:
    """`--libraries run` needs NVIDIA's own: here one of that name is linked, then removed."""
    compiler = find_host_compiler()
    (tmp_path / "theirs.c").write_text("int cufftDestroy(int plan) { return plan; }")
    (tmp_path / "app.c").write_text(
        "int cufftDestroy(int);\nint main() { return cufftDestroy(0); }"
    )
    into = ["-o", "libcufft.so", "-Wl,-soname,libcufft.so.12"]
    shared = [compiler, "-shared", "-fPIC", "-x", "c", "theirs.c", *into]
    subprocess.run(shared, cwd=tmp_path, check=True)
    link = [compiler, "-x", "c", "app.c", "-x", "none", "-o", "app", "./libcufft.so"]
    subprocess.run(link, cwd=tmp_path, check=True)
    (tmp_path / "libcufft.so").unlink()
    done = cutrace(tmp_path, "record", "--libraries", "run", "--", "./app")
    assert "./app: the system could not start it" in done.err
    assert "libcufft.so.12: install with python -m pip install nvidia-cufft, or" in done.err
    assert "--libraries compute" in done.err


MANAGED = r"""
#include <nvml.h>
#include <dlfcn.h>
#include <unistd.h>
int main() {
    nvmlDevice_t device; nvmlMemory_t memory; unsigned count, clock, power; char name[64];
    int early = nvmlDeviceGetCount(&count);
    nvmlReturn_t did[] = {nvmlInit(), nvmlDeviceGetCount(&count),
        nvmlDeviceGetHandleByIndex(0, &device), nvmlDeviceGetName(device, name, 64),
        nvmlDeviceGetMemoryInfo(device, &memory),
        nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &clock)};
    for (nvmlReturn_t each : did) printf("%d ", each);
    int few = nvmlDeviceGetName(device, name, 3), other = nvmlDeviceGetHandleByIndex(1, &device);
    nvmlDeviceGetName(device, name, 64);
    printf("%d %d %d: %u x %s, %u MHz, %llu; power %d", early, few, other, count, name, clock,
           memory.total, nvmlDeviceGetPowerUsage(device, &power));
    int version, newer; nvmlMemory_v2_t more; nvmlProcessInfo_t process; nvmlComputeMode_t mode;
    unsigned none = 0, one = 1, drawing = 9;
    nvmlSystemGetCudaDriverVersion(&version); nvmlSystemGetCudaDriverVersion_v2(&newer);
    int asked = nvmlDeviceGetComputeRunningProcesses(device, &none, NULL);
    nvmlDeviceGetComputeRunningProcesses(device, &one, &process);
    nvmlDeviceGetGraphicsRunningProcesses(device, &drawing, NULL);
    nvmlDeviceGetMemoryInfo_v2(device, &more); nvmlDeviceGetComputeMode(device, &mode);
    printf("; %d %d %u %u %d %u %d %d", version == newer, asked, none, one,
           process.pid == (unsigned)getpid(), drawing, more.total == memory.total, mode);
    auto first = (nvmlReturn_t (*)(unsigned *))dlsym(RTLD_DEFAULT, "nvmlDeviceGetCount");
    nvmlGpuP2PStatus_t own = (nvmlGpuP2PStatus_t)9;  // NCCL asks of each pair, of one alone, too
    int known = first(&none), paired = nvmlDeviceGetP2PStatus(device, device, 0, &own);
    printf("; %d %u %d %d", known, none, paired, own);
    nvmlShutdown();
}
"""


def test_a_program_reads_names_and_clocks_but_no_power(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(HEAD + MANAGED)
    built = cutrace(tmp_path, "nvcc", "app.cu", "-lnvidia-ml", "-o", "app")
    assert built.status == 0, built.err
    done = cutrace(tmp_path, "record", "-d", "h200", "--", "./app")
    # errors: 1 uninitialized, 7 insufficient size, 2 invalid argument, 3 not supported
    # no room for 1 process: 7; with room it is this one, none draws, its mode is the default, 0
    shown = "1 x NVIDIA H200, 1980 MHz, 150109880320; power 3; 1 7 1 1 1 0 1 0; 0 1 0 0"
    assert done.out == f"0 0 0 0 0 0 1 7 2: {shown}", done.err


NEURAL = r"""
extern "C" {
    int cudnnCreate(void **); int cudnnDestroy(void *); int cudnnSetStream(void *, cudaStream_t);
    int cudnnGetStream(void *, cudaStream_t *); int cudnnConvolutionForward();
}
int main() {
    void *handle; cudaStream_t stream, same;
    CHECK(cudaStreamCreate(&stream));
    int did[] = {cudnnCreate(&handle), cudnnSetStream(handle, stream),
                 cudnnGetStream(handle, &same), cudnnConvolutionForward(),
                 cudnnDestroy(handle), cudnnSetStream(NULL, stream)};
    for (int each : did) printf("%d ", each);
    printf("%d", same == stream);
}
"""


def test_cudnn_has_handles_and_refuses_operations_by_name(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(HEAD + NEURAL)
    built = cutrace(tmp_path, "nvcc", "app.cu", "-lcudnn", "-o", "app")
    assert built.status == 0, built.err
    done = cutrace(tmp_path, "record", "--", "./app")
    # CUDNN_STATUS_NOT_SUPPORTED is 3000, NOT_INITIALIZED is 1001
    assert done.out == "0 0 0 3000 0 1001 1", done.err
    assert "cudnnConvolutionForward is not supported" in done.err


SOLVED = r"""
#include <cusolverDn.h>
#define DO(call) do { int did = (call); if (did) { printf("line %d: %d\n", __LINE__, did); \
    exit(9); } } while (0)
int main() {
    cusolverDnHandle_t h; double *a, *b, *w; float *s, *t; int *info, *pivots, size;
    DO(cusolverDnCreate(&h));
    CHECK(cudaMallocManaged(&a, 64)); CHECK(cudaMallocManaged(&b, 64));
    CHECK(cudaMallocManaged(&w, 64)); CHECK(cudaMallocManaged(&s, 64));
    CHECK(cudaMallocManaged(&t, 64)); CHECK(cudaMallocManaged(&info, 64)); pivots = info + 4;
    a[0] = 4; a[1] = 1; a[2] = 99; a[3] = 3; b[0] = 1; b[1] = 2;  // the upper part is not read
    DO(cusolverDnDpotrf_bufferSize(h, CUBLAS_FILL_MODE_LOWER, 2, a, 2, &size));
    DO(cusolverDnDpotrf(h, CUBLAS_FILL_MODE_LOWER, 2, a, 2, w, size, info));
    DO(cusolverDnDpotrs(h, CUBLAS_FILL_MODE_LOWER, 2, 1, a, 2, b, 2, info));
    printf("%.4f %.4f %d; ", b[0], b[1], *info);
    s[0] = 0; s[1] = 3; s[2] = 2; s[3] = 4; t[0] = t[2] = 2; t[1] = t[3] = 10;
    DO(cusolverDnSgetrf(h, 2, 2, s, 2, t + 8, pivots, info));
    DO(cusolverDnSgetrs(h, CUBLAS_OP_N, 2, 1, s, 2, pivots, t, 2, info));
    DO(cusolverDnSgetrs(h, CUBLAS_OP_T, 2, 1, s, 2, pivots, t + 2, 2, info));
    printf("%g %g %g %g %d; ", t[0], t[1], t[2], t[3], pivots[0]);
    a[0] = a[3] = 2; a[1] = 99; a[2] = 1;
    DO(cusolverDnDsyevd(h, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_UPPER, 2, a, 2, w, b, 1,
                        info));
    printf("%g %g %.4f %.4f; %d", w[0], w[1], -a[0] * a[1], a[2] * a[3],
           cusolverDnDpotri(h));
}
"""


@pytest.mark.slow
def test_linear_equations_and_eigenvalues_are_computed(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(HEAD + SOLVED)
    built = cutrace(tmp_path, "nvcc", "app.cu", "-lcusolver", "-lcublas", "-o", "app")
    assert built.status == 0, built.err
    done = cutrace(tmp_path, "record", "--", "./app")
    # 4x + y = 1, x + 3y = 2: x = 1/11, y = 7/11
    # 2y = 2, 3x + 4y = 10: x = 2, y = 1; transposed 3y = 2, 2x + 4y = 10: x = 11/3, y = 2/3
    # of ((2, 1), (1, 2)): 1 with (1, -1) / sqrt 2, and 3 with (1, 1) / sqrt 2
    solved = "0.0909 0.6364 0; 2 1 3.66667 0.666667 2; 1 3 0.5000 0.5000; 9"
    assert (done.status, done.out) == (0, solved), done.err


LEGACY = """
#include <cublas.h>
int main() {
    float *a, *x, *y, host[6] = {1, 3, 2, 4, 1, 1};
    cublasInit();
    if (cublasAlloc(4, 4, (void **)&a) || cublasAlloc(2, 4, (void **)&x)) return 1;
    if (cublasAlloc(2, 4, (void **)&y)) return 2;
    cublasSetMatrix(2, 2, 4, host, 2, a, 2);
    cublasSetVector(2, 4, host + 4, 1, x, 1);
    cublasSgemv('t', 2, 2, 2.f, a, 2, x, 1, 0.f, y, 1);
    printf("%g %g", cublasSdot(2, x, 1, y, 1), cublasSasum(2, y, 1));
    cublasSgemm('n', 'n', -1, 2, 2, 1.f, a, 2, a, 2, 0.f, a, 2);
    int first = cublasGetError();
    printf(" %d %d", first, cublasGetError());
    cublasFree(a);
    return cublasShutdown();
}
"""


@pytest.mark.slow
def test_programs_call_cublas_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(HEAD + LEGACY)
    built = cutrace(tmp_path, "nvcc", "app.cu", "-lcublas", "-o", "app")
    assert built.status == 0, built.err
    done = cutrace(tmp_path, "record", "--", "./app")
    # columns (1, 3) and (2, 4): twice their sums are 8 and 12; an error stays until it is asked for
    assert (done.status, done.out) == (0, "20 20 7 0"), done.err


REAL = sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/**/lib/lib*.so.*"))
"""NVIDIA's libraries that are installed."""


def exported(library: Path) -> set[str]:
    said = subprocess.run(
        ["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True
    ).stdout
    return {line.split()[-1] for line in said.splitlines()}


@pytest.fixture(scope="module")
def ours() -> set[str]:
    folder = build_library(find_toolkit(), find_host_compiler())
    return exported(folder / "libcuda.so.1")


def plain(symbols: set[str]) -> set[str]:
    """The names of symbols, without their versions."""
    return {symbol.partition("@")[0] for symbol in symbols}


@pytest.mark.parametrize("library", read_names())
def test_every_name_that_a_library_exports_is_there(library: str, ours: set[str]) -> None:
    listed = read_names()[library]
    assert len(listed) > 20
    assert {*listed} - plain(ours) == set()


def test_each_file_has_each_name_in_its_own_version(ours: set[str]) -> None:
    for library in STAND_INS:
        for file in library.files if library.has_versions else ():
            wanted = {f"{name}@{file}" for name in read_names()[library.linked]}
            assert wanted - ours == set(), file


def test_what_headers_declare_is_there(ours: set[str]) -> None:
    names = ("cublas_v2.h", "cublasLt.h", "cufft.h", "cusolverDn.h", "cusparse.h")
    answer = subprocess.run(
        [find_host_compiler(), *("-x", "c", "-E", "-P", f"-I{find_toolkit().include}", "-")],
        input="".join(f'#include "{HEADERS / name}"\n' for name in (*names, "nvml.h")),
        capture_output=True,
        text=True,
        check=True,
    )
    declared = {*re.findall(r"\w+ ((?:cu|nvml)\w+)\(\);", answer.stdout)}
    assert len(declared) > 220
    assert declared - plain(ours) == set()


@pytest.mark.parametrize("library", ["cudart", *(each.linked for each in STAND_INS)])
def test_the_list_has_what_the_installed_library_exports(library: str) -> None:
    files = [path for path in REAL if path.name.startswith(f"lib{library}.so.")]
    if not files:
        pytest.skip(f"NVIDIA's {library} is not installed")
    begin = next((e.names for e in STAND_INS if e.linked == library), "cuda")
    for file in files:
        real = {name for name in plain(exported(file)) if name.lstrip("_").startswith(begin)}
        if library == "cublas":
            real = {name for name in real if not name.startswith("cublasLt")}
        assert len(real) > 20
        assert real - {*read_names()[library]} - plain(exported_here()) == set()


def exported_here() -> set[str]:
    return exported(build_library(find_toolkit(), find_host_compiler()) / "libcuda.so.1")


def test_a_refusal_says_its_name_and_the_librarys_status() -> None:
    """CUSPARSE_STATUS_NOT_SUPPORTED is 10, CUFFT_NOT_SUPPORTED 16, that of cuSOLVER 9."""
    library = build_library(find_toolkit(), find_host_compiler()) / "libcuda.so.1"
    code = f"import ctypes; l = ctypes.CDLL({str(library)!r}); print("
    code += "l.cusparseSgebsr2gebsr(), l.cufftXtSetJITCallback(), l.cusolverSpScsrlsvqr())"
    done = subprocess.run(["python3", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["10", "16", "9"]
    assert [line.split()[1] for line in done.stderr.splitlines()] == [
        "cusparseSgebsr2gebsr",
        "cufftXtSetJITCallback",
        "cusolverSpScsrlsvqr",
    ]


OF_SPARSE = """
int cusparseCreate(void **handle) { return 90; }
int cusparseSparseToDense(void) { return 90; }
int cusparseSgebsr2gebsr(void) { return 90; }
"""
ASKS = """
#include <dlfcn.h>
int main() {
    void *library = dlopen("./libcusparse.so.12", RTLD_NOW);
    const char *names[] = {"cusparseCreate", "cusparseSgebsr2gebsr", "cusparseNoSuch"};
    void *handle;
    for (const char *name : names) {
        int (*function)(void **) = (int (*)(void **))dlsym(library, name);
        printf("%d ", function ? function(&handle) : -1);
    }
    cudaFree(0);
}
"""


@pytest.mark.slow
def test_who_asks_nvidias_library_for_a_function_gets_ours(tmp_path: Path) -> None:
    """As Python's packages do: they open the file that they bring."""
    (tmp_path / "theirs.c").write_text(OF_SPARSE)
    shared = [find_host_compiler(), "-shared", "-fPIC", "-x", "c", "theirs.c"]
    into = ["-Wl,-soname,libcusparse.so.12", "-o", "libcusparse.so.12"]
    subprocess.run([*shared, *into], cwd=tmp_path, check=True)
    (tmp_path / "app.cu").write_text(HEAD + ASKS)
    done = cutrace(tmp_path, "record", "app.cu", "--")
    assert done.out == "0 10 -1 ", done.err
    assert "cusparseSgebsr2gebsr is not supported" in done.err
