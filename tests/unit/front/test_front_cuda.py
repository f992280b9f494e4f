"""CUDA C++ to PTX: what comes out, and that nothing of this machine is in it."""

import os
from pathlib import Path
from typing import Any

import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.front import compile as compile_module
from cutrace.tracer.front import cuda, ptx, whole_file
from cutrace.tracer.front.source import Options, Source, read_options

REVERSE = """#include "sizes.h"
__global__ void reverse(int *d_out, const int *d_in)
{
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    d_out[LAST - i] = d_in[i];
}
"""
HALF = """#include <cuda_fp16.h>
__global__ void twice(__half *x) { x[threadIdx.x] = __hadd(x[0], hsin(x[0])); }
"""


def compile_text(text: str, options: Options | None = None, name: str = "kernel.cu") -> str:
    return cuda.to_ptx(Source(name, text, options or Options()), "compute_75").ptx


def files(text: str) -> list[str]:
    return [line.split('"')[1] for line in text.splitlines() if ".file" in line]


def test_a_kernel_comes_out_with_its_name_signature_and_compiler() -> None:
    compiled = cuda.to_ptx(
        Source("r.cu", REVERSE.replace('#include "sizes.h"', ""), Options(defines=("LAST=7",))),
        "compute_75",
    )
    assert [str(kernel) for kernel in compiled.kernels] == ["reverse(int *d_out, const int *d_in)"]
    assert compiled.kernels[0].mangled == "_Z7reversePiPKi"
    assert ".target sm_75" in compiled.ptx
    assert compiled.compiler.name == "nvrtc"
    assert compiled.compiler.options == ("-lineinfo", "-DLAST=7")
    assert compiled.compiler.target == "compute_75"


def test_the_ptx_is_the_same_in_every_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = []
    for folder in ("one", "another"):
        where = tmp_path / folder / "src"
        where.mkdir(parents=True)
        (where / "sizes.h").write_text("#define LAST 262143\n")
        monkeypatch.chdir(where.parent)
        texts.append(cuda.to_ptx(Source("src/reverse.cu", REVERSE), "compute_75"))
    assert texts[0] == texts[1]
    assert files(texts[0].ptx) == ["src/reverse.cu"]
    assert str(tmp_path) not in repr(texts[0])


def test_a_local_header_keeps_its_relative_path_and_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = "__device__ int last(const int *p) { return 7 - p[1]; }\n"
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "sizes.h").write_text(header)
    monkeypatch.chdir(tmp_path)
    text = '#include "sizes.h"\n__global__ void k(int *p) { p[last(p)] = 1; }\n'
    compiled = cuda.to_ptx(Source("k.cu", text, Options(includes=("inc",))), "compute_75")
    assert set(files(compiled.ptx)) == {"k.cu", "inc/sizes.h"}
    assert compiled.sources == {"k.cu": text, "inc/sizes.h": header}


def test_an_absolute_name_stays_as_given_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = str(tmp_path / "k.cu")
    monkeypatch.chdir(tmp_path)
    assert files(compile_text("__global__ void k() {}", name=name)) == [name]


def test_headers_of_cuda_are_found_and_named_as_they_are_included() -> None:
    text = compile_text(HALF)
    assert set(files(text)) <= {"kernel.cu", "cuda_fp16.hpp", "cuda_fp16.h"}
    assert "site-packages" not in text


def test_template_instances_are_asked_for_by_name() -> None:
    text = "template <class T, int N> __global__ void scale(T *x, T by) { x[N] *= by; }"
    asked = Options(name_expressions=("scale<float, 4>", "scale<double, 2>"))
    compiled = cuda.to_ptx(Source("k.cu", text, asked), "compute_75")
    assert compiled.names["scale<float, 4>"] == "_Z5scaleIfLi4EEvPT_S0_"
    assert {str(kernel) for kernel in compiled.kernels} == {
        "scale<float, 4>(float *x, float by)",
        "scale<double, 2>(double *x, double by)",
    }


def test_an_error_is_the_compilers_own_with_the_files_own_line() -> None:
    with pytest.raises(CutraceError, match=r'k\.cu\(2\): error: identifier "b" is undefined'):
        compile_text("__global__ void k(int *a) {\n a[0] = b; }\n", name="k.cu")


def test_a_message_about_a_header_of_cuda_does_not_show_where_it_lies() -> None:
    text = "#include <cuda_fp16.h>\n__global__ void k() { __half2 h = __hadd2(1); }\n"
    with pytest.raises(CutraceError, match=r"k\.cu\(2\): error") as caught:
        compile_text(text, name="k.cu")
    assert "site-packages" not in str(caught.value)


def test_warnings_are_kept_in_the_log() -> None:
    text = "__global__ void k(int *a) { int unused; a[0] = 1; }"
    compiled = cuda.to_ptx(Source("k.cu", text), "compute_75")
    assert 'variable "unused" was declared but never referenced' in compiled.log


def test_an_unknown_target_names_the_known_ones() -> None:
    with pytest.raises(CutraceError, match=r"target compute_13: NVRTC 12\.\d+ compiles for comp"):
        cuda.to_ptx(Source("k.cu", ""), "compute_13")


def test_an_option_that_nvrtc_does_not_know_is_named() -> None:
    with pytest.raises(CutraceError, match="no-such-option"):
        compile_text("", Options(extra=("--no-such-option",)))


def test_the_words_of_a_command_line_are_sorted() -> None:
    words = ["-DN=4", "-D", "M", "--include-path=a", "-I", "b", "-std=c++14", "-use_fast_math"]
    assert read_options(words, ["k<1>"]) == Options(
        defines=("N=4", "M"),
        includes=("a", "b"),
        std="c++14",
        name_expressions=("k<1>",),
        extra=("-use_fast_math",),
    )
    with pytest.raises(CutraceError, match="option -I: a value was expected"):
        read_options(["-I"])
    with pytest.raises(CutraceError, match=r'expected a list such as \["-DN=4"\], got .*-DN=8'):
        read_options("-DN=8")


def test_ptx_is_taken_as_it_is() -> None:
    text = compile_text('extern "C" __global__ void k(float *a, int n) { a[n] = 1; }')
    compiled = ptx.to_ptx(Source("k.ptx", text))
    assert compiled.ptx == text
    assert compiled.compiler.name == "ptx"
    assert compiled.compiler.target == "sm_75"
    assert [str(kernel) for kernel in compiled.kernels] == ["k(u64 k_param_0, u32 k_param_1)"]


def test_what_is_no_ptx_says_so() -> None:
    with pytest.raises(CutraceError, match=r"a\.ptx: not PTX"):
        ptx.to_ptx(Source("a.ptx", "int main() {}"))


def test_the_working_directory_does_not_change() -> None:
    before = os.getcwd()
    compile_text("__global__ void k() {}")
    assert os.getcwd() == before


def test_a_header_that_changes_while_it_is_compiled_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    header, sizes = tmp_path / "sizes.h", ["#define LAST 15\n", "#define LAST 31\n"]
    header.write_text("#define LAST 7\n")
    compile_source = compile_module.compile_source

    def save_meanwhile(*arguments: Any, **options: Any) -> Any:
        outcome = compile_source(*arguments, **options)
        if sizes:
            header.write_text(sizes.pop(0))
        return outcome

    monkeypatch.setattr(cuda, "compile_source", save_meanwhile)
    last = cuda.to_ptx(Source("r.cu", REVERSE), "compute_75")
    assert (header.read_text(), sizes) == ("#define LAST 31\n", [])
    assert last.ptx == cuda.to_ptx(Source("r.cu", REVERSE), "compute_75").ptx
    sizes += [f"#define LAST {last}\n" for last in range(9)]
    with pytest.raises(CutraceError, match=r"r\.cu: its headers change whenever it is compiled"):
        cuda.to_ptx(Source("r.cu", REVERSE), "compute_75")


def test_the_text_of_a_header_is_the_one_that_was_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "__device__ inline int last(int n) { return n * n; }\n"
    (tmp_path / "last.h").write_text(text)
    finish = compile_module.finish

    def save_first(*arguments: Any, **options: Any) -> Any:
        (tmp_path / "last.h").write_text("// empty\n")
        return finish(*arguments, **options)

    monkeypatch.setattr(whole_file, "finish", save_first)
    source = '#include "last.h"\n__global__ void k(int *x) { *x = last(*x); }\nint main() {}\n'
    compiled = cuda.to_ptx(Source("k.cu", source), "compute_75")
    assert compiled.sources == {"k.cu": source, "last.h": text}


@pytest.mark.parametrize("folder", ["José", "日本/größe", "a b/naïve"])
def test_paths_beyond_ascii_keep_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    place = tmp_path / folder
    place.mkdir(parents=True)
    (place / "größe.h").write_text("__device__ int twice(int x) { return 2 * x * x; }\n")
    text = '#include "größe.h"\n__global__ void k(int *x) { *x = twice(*x); }\n'
    monkeypatch.chdir(place)
    for source in (text, f"{text}int main() {{}}\n"):
        compiled = cuda.to_ptx(Source("schön.cu", source), "compute_75")
        assert set(files(compiled.ptx)) == {"schön.cu", "größe.h"} == set(compiled.sources)
    monkeypatch.chdir(tmp_path)
    compiled = cuda.to_ptx(Source(f"{folder}/schön.cu", text), "compute_75")
    assert set(files(compiled.ptx)) == {f"{folder}/schön.cu", f"{folder}/größe.h"}
    named = ptx.to_ptx(Source("k.ptx", compiled.ptx.replace("ö", r"\303\266")))
    assert files(named.ptx) == files(compiled.ptx)
