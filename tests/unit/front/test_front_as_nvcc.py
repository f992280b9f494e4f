"""Single files as nvcc takes them: headers, integers of 8 bytes, host code among device code."""

from pathlib import Path

import numpy as np
import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.front.demangle import demangle
from cutrace.tracer.session.session import Session

MAIN = "int main() { k<<<1, 1>>>(0); }\n"
KERNEL = "__global__ void k(int *o) { *o = VALUE; }\n"
HOST = 'void talk() { printf("x"); system("y"); }\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str | bytes) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


def value(source: str, *options: str) -> int:
    """What the kernel `k` of a source stores."""
    with Session() as gpu:
        out = gpu.device_array(1, np.int32)
        gpu.compile(Path(source), options=options).get_function("k")[1, 1](out)
        return int(out.copy_to_host()[0])


@pytest.mark.parametrize("talk", ["", HOST], ids=["device_alone", "with_host_code"])
@pytest.mark.parametrize("main", ["", MAIN], ids=["kernel", "program"])
def test_a_header_beside_the_source_comes_before_one_of_its_name_elsewhere(
    main: str, talk: str
) -> None:
    write("app/k.cu", f'#include "common.h"\n{KERNEL}{main}')
    write("app/common.h", f"{talk}#define VALUE 1\n")
    write("inc/common.h", f"{talk}#define VALUE 2\n")
    assert value("app/k.cu", "-Iinc") == 1
    write("app/k.cu", f"#include <common.h>\n{KERNEL}{main}")
    assert value("app/k.cu", "-Iinc") == 2


@pytest.mark.parametrize("folder", [".", "app", "app/deep"])
def test_a_relative_header_is_found_from_the_file_that_includes_it(
    folder: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("app/k.cu", f'#include "../common/x.h"\n{KERNEL}{MAIN}')
    write("common/x.h", f'#pragma once\n#include <sys/time.h>\n#include "y.h"\n{HOST}')
    write("common/y.h", "#define VALUE 7\n")
    Path("app/deep").mkdir()
    monkeypatch.chdir(here / folder)
    relative = {".": "app/k.cu", "app": "k.cu", "app/deep": "../k.cu"}[folder]
    assert value(relative) == 7
    assert value(str(here / "app" / "k.cu")) == 7


def test_two_headers_of_one_name_are_two() -> None:
    write("k.cu", f'#include "a/a.h"\n#include "b/b.h"\n#define VALUE (A + B)\n{KERNEL}{MAIN}')
    for name, number in (("a", 10), ("b", 20)):
        write(f"{name}/{name}.h", '#include "common.h"\n')
        body = f"#define {name.upper()} {number}\n"
        write(f"{name}/common.h", f'int {name}() {{ printf("x"); return 1; }}\n{body}')
    assert value("k.cu") == 30


def test_integers_of_8_bytes_are_longs_as_on_linux() -> None:
    write(
        "k.cu",
        "#include <stdint.h>\n"
        "template <class T> struct is { static const int v = 0; };\n"
        "template <> struct is<unsigned long> { static const int v = 1; };\n"
        "template <> struct is<unsigned long long> { static const int v = 2; };\n"
        "__global__ void k(int *o) { *o = is<uint64_t>::v + (INT64_MAX > 0) * 4; }\n"
        "__global__ void named(uint64_t *a, int64_t b) { *a = b + UINT64_C(1) + INT64_C(2); }\n",
    )
    assert value("k.cu") == 1 + 4
    with Session() as gpu:
        kernels = gpu.compile(Path("k.cu")).signatures
    # Itanium C++ ABI 5.1.5: m is unsigned long, l is long
    assert {each.mangled for each in kernels} == {"_Z1kPi", "_Z5namedPml"}


def test_cub_and_barriers_have_the_same_integers() -> None:
    write(
        "k.cu",
        "#include <stdint.h>\n#include <cub/cub.cuh>\n#include <cuda/barrier>\n"
        "#include <cuda_awbarrier.h>\n#include <cuda_pipeline.h>\n#include <type_traits>\n"
        "__global__ void k(int *o)\n{\n"
        "    __shared__ typename cub::WarpReduce<int>::TempStorage t;\n"
        "    o[0] = cub::WarpReduce<int>(t).Sum(1) * 0\n"
        "        + std::is_same<std::uint64_t, unsigned long>::value;\n}\n" + MAIN,
    )
    assert value("k.cu") == 1


@pytest.mark.parametrize(
    ("before", "stored", "expected"),
    [
        ("#ifndef __NVCC__\n#error nvcc\n#endif\n", "1", 1),
        ("", "0; register int r = 3; *o = r", 3),
        ("struct S { int a, b; };\n", "0; S s = {.a = 3, .b = 4}; *o = s.b", 4),
        ("struct S { int a, b; };\n", "0; S s = (struct S){3, 4}; *o = s.a", 3),
        ("#if 1\n__constant__\n#endif\nint table[2] = {5, 6};\n", "table[1]", 6),
        (
            "#include <type_traits>\n"
            "template <class T> using wide = typename std::conditional<1, int, T>::type;\n",
            "0; wide<char> w = 300; *o = w",
            300,
        ),
        (
            "#include <vector>\ntemplate <class T> struct Box {\n    T x;\n"
            "    __host__ Box(const char *s) { x = std::vector<T>(3)[0]; }\n};\n",
            "sizeof(Box<double>)",
            8,
        ),
        (
            "struct Vec {\n    float *p;\n    __host__ Vec(int n) { cudaMalloc(&p, n); }\n"
            "    __host__ ~Vec() { cudaFree(p); }\n};\n",
            "sizeof(Vec)",
            8,
        ),
    ],
    ids=[
        "nvcc",
        "register",
        "designated",
        "literal",
        "marked",
        "conditional",
        "template",
        "host_only",
    ],
)
def test_what_gnu_c_and_nvcc_take_is_taken(before: str, stored: str, expected: int) -> None:
    kernel = f"__global__ void k(int *o) {{ *o = {stored}; }}\n"
    write("k.cu", f"#include <cstdio>\n{before}{kernel}{MAIN}")
    assert value("k.cu") == expected


@pytest.mark.parametrize("name", ["k.cu", "common.h"])
@pytest.mark.parametrize("raw", [b"\xef\xbb\xbf// caf\xe9\n", b"// caf\xe9\n", b"// \r\n"])
def test_a_mark_of_utf_8_a_latin_letter_or_a_return_change_nothing(name: str, raw: bytes) -> None:
    texts = {"k.cu": f'#include "common.h"\n{KERNEL}{MAIN}', "common.h": f"#define VALUE 3\n{HOST}"}
    for each, text in texts.items():
        write(each, (raw if each == name else b"") + text.encode())
    assert value("k.cu") == 3


def test_a_file_that_is_no_text_is_refused() -> None:
    write("k.cu", b"\x7fELF\0\0")
    with pytest.raises(CutraceError, match=r"k\.cu is not text"), Session() as gpu:
        gpu.compile(Path("k.cu"))


def test_a_template_that_a_local_header_launches_is_an_instance() -> None:
    write("k.cu", 'template <int N> __global__ void k(int *o) { *o = N; }\n#include "go.h"\n')
    write("go.h", "inline void go(int *o) { k<4><<<1, 1>>>(o); }\n")
    with Session() as gpu:
        assert gpu.compile(Path("k.cu")).kernels == ("k<4>",)


def test_a_kernel_that_takes_a_function_is_called_by_its_name() -> None:
    found = demangle("_Z1kPfPFffPKiE")
    assert found
    assert (found.name, found.parameters) == ("k", ("float *@", "float (*@)(float, const int *)"))
    write("k.cu", "__global__ void k(float *o, float (*op)(float)) { *o = op(*o); }\n")
    with Session() as gpu:
        module = gpu.compile(Path("k.cu"))
        assert module.get_function("k")
        assert str(module.signatures[0]) == "k(float *o, float (*op)(float))"
