"""What NVIDIA's libraries export is ours, or refused by its name: never theirs with our handle."""

import re
import subprocess
from pathlib import Path

import pytest
from program_run import HEAD, cutrace

from cutrace.tracer.program.exported.stand_ins import STAND_INS, read_names
from cutrace.tracer.program.library import HEADERS, build_library
from cutrace.tracer.program.toolkit import find_host_compiler, find_toolkit

REAL = tuple(
    path
    for folder in map(Path, __import__("site").getsitepackages())
    for path in sorted(folder.glob("nvidia/**/lib/lib*.so.*"))
)
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
    texts = [header.read_text(encoding="utf-8") for header in HEADERS.glob("*.h")]
    declared = {n for text in texts for n in re.findall(r"CUTRACE_REFUSED\((\w{5,})\)", text)}
    assert len(declared) > 200
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


THEIRS = """
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
    (tmp_path / "theirs.c").write_text(THEIRS)
    shared = [find_host_compiler(), "-shared", "-fPIC", "-x", "c", "theirs.c"]
    into = ["-Wl,-soname,libcusparse.so.12", "-o", "libcusparse.so.12"]
    subprocess.run([*shared, *into], cwd=tmp_path, check=True)
    (tmp_path / "app.cu").write_text(HEAD + ASKS)
    done = cutrace(tmp_path, "record", "app.cu", "--")
    assert done.out == "0 10 -1 ", done.err
    assert "cusparseSgebsr2gebsr is not supported" in done.err
