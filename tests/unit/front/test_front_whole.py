"""Whole .cu files: host code cut away without moving a line, templates found by their launches."""

import re
from pathlib import Path

import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.front import cuda
from cutrace.tracer.front.source import Compiled, Options, Source
from cutrace.tracer.front.syntax.syntax import blank, definitions, marking_words
from cutrace.tracer.front.toolkit import in_cuda


def compile_whole(text: str, name: str = "whole.cu") -> Compiled:
    return cuda.to_ptx(Source(name, text, Options()), "compute_75")


def kernels(compiled: Compiled) -> list[str]:
    return sorted(str(kernel) for kernel in compiled.kernels)


PROGRAM = """#include <cstdio>
#include <iostream>
#include <vector>
#include <thrust/device_vector.h>
#include "helper_cuda.h"
#define THREADS 256
#define CHECK(call) do { if (call) { std::cerr << "failed\\n"; exit(1); } } while (0)
float h_table[1 << 20];
static const float weights[2] = {0.25f, 0.75f};
class Timer {
    std::string name;
public:
    double stop() { return clock() / 1e3; }
};
struct Body { float4 place; float mass; };
__device__ inline float weigh(const Body &b) { return b.mass * weights[threadIdx.x & 1]; }
__global__ void weights_of(const Body *bodies, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = weigh(bodies[i]);
}
template <class T> void fill(std::vector<T> &v) { for (T &x : v) x = rand() / (T)RAND_MAX; }
int main(int argc, char **argv)
{
    std::vector<float> h(argc > 1 ? atoi(argv[1]) : THREADS);
    fill(h);
    Body *d_bodies; float *d_out;
    CHECK(cudaMalloc(&d_bodies, sizeof(Body) * h.size()));
    CHECK(cudaMalloc((void **)&d_out, sizeof(float) * h.size()));
    weights_of<<<(h.size() + THREADS - 1) / THREADS, THREADS>>>(d_bodies, d_out, h.size());
    printf("%f\\n", h_table[0]);
    return 0;
}
"""


def test_a_program_with_host_code_gives_its_kernels_at_their_own_lines() -> None:
    compiled = compile_whole(PROGRAM)
    assert kernels(compiled) == ["weights_of(const Body *bodies, float *out, int n)"]
    lines = {int(line) for line in re.findall(r"\.loc\s+1 (\d+) ", compiled.ptx)}
    assert {19, 20} <= lines <= {16, 17, 18, 19, 20, 21}
    assert "h_table" not in compiled.ptx
    assert compiled.sources == {"whole.cu": PROGRAM}


def test_what_was_left_out_is_in_the_log() -> None:
    compiled = compile_whole(PROGRAM)
    log = compiled.log
    assert "left out as host code" in log
    assert "main (23)" in log
    assert compiled.compiler.missing == (
        "whole.cu(5): the header helper_cuda.h was not found and left out",
    )


def test_blanking_keeps_every_line_end_and_directive() -> None:
    unix = "int a;\nvoid f()\n{\n#define N 4 \\\n  + 1\n  g();  // ü\n}\n__device__ int d;\n"
    text = unix.replace("\n", "\r\n")
    host = [each for each in definitions(text) if not each.is_device]
    cut = blank(text, host)
    assert len(cut.encode()) == len(text.encode())
    assert cut.count("\r\n") == text.count("\r\n")
    assert cut.split() == ["#define", "N", "4", "\\", "+", "1", "__device__", "int", "d;"]


def test_braces_that_two_branches_open_once_do_not_swallow_a_kernel() -> None:
    text = (
        "int main(int c, char **v) {\n#ifdef A\n  if (c) {\n#else\n  while (c) {\n#endif\n"
        '  c--; puts("{"); } return 0; }\n__global__ void k(float *a) { a[0] = 1; }\n'
    )
    assert [each.name for each in definitions(text)] == ["main", "k"]
    assert kernels(compile_whole(text)) == ["k(float *a)"]


def test_linkage_for_c_alone_is_looked_into() -> None:
    text = (
        '#ifdef __cplusplus\nextern "C" {\n#endif\nvoid host() { std::cout << 1; }\n'
        "__global__ void k(float *a) { a[0] = 1; }\n#ifdef __cplusplus\n}\n#endif\n"
    )
    assert kernels(compile_whole(text)) == ["k(float *a)"]


def test_of_two_definitions_in_a_line_the_one_at_the_error_is_cut() -> None:
    text = (
        "const std::vector<int> sizes = {1, 2}; static const float t[2] = {1, 2};\n"
        "__global__ void k(float *a) { a[0] = t[threadIdx.x]; }\nint main() {}\n"
    )
    assert kernels(compile_whole(text)) == ["k(float *a)"]


def test_a_mark_of_byte_order_and_foreign_line_ends_do_no_harm() -> None:
    compiled = compile_whole("\ufeff" + PROGRAM.replace("\n", "\r\n"))
    assert len(compiled.kernels) == 1


def test_a_macro_that_stands_for_a_marker_marks() -> None:
    text = "#define HD __host__ __device__\n#define API HD inline\nAPI int f() { return 1; }\n"
    (found,) = definitions(text, marking_words([text]))
    assert found.is_device


def test_a_marker_inside_a_host_function_does_not_make_it_device_code() -> None:
    text = 'void f() { /* __global__ */ puts("__device__"); auto g = [] __device__ () {}; }'
    (found,) = definitions(text)
    assert not found.is_device


LAUNCHES = """
template <typename T> __global__ void add(T *a, T by, int n) { if (threadIdx.x < n) a[0] += by; }
template <int TILE> __global__ void tile(float *c) { c[TILE] = 1; }
template <class T, unsigned int SIZE, bool POW2> __global__ void sum(T *i, T *o) { o[SIZE] = *i; }
template <class T> void reduce(int n, T *d)
{
    const bool pow2 = true;
    if (n > 256) sum<T, 512, true><<<1, 2>>>(d, d); else sum<T, 256, pow2><<<1, 2>>>(d, d);
}
template void reduce<int>(int n, int *d);
template <class T> struct Runner { void run(T *x); };
template <class T> void Runner<T>::run(T *x) { add<<<1, 32>>>(x, (T)3, 4); }
template struct Runner<double>;
float *everywhere;
int main()
{
    const int block_size = 16;
    unsigned int *d_a = 0;
    tile<block_size><<<1, 2>>>(everywhere);
    tile<2 * block_size><<<1, 2>>>(everywhere);
    cudaFuncSetAttribute(tile<7>, 3, 4);
    add<<<1, 32>>>(d_a, 3u, 4);
    add<<<1, 32>>>(everywhere, 1.0f, 3);
}
"""


def test_the_instances_that_a_program_launches_are_there() -> None:
    names = {kernel.name for kernel in compile_whole(LAUNCHES).kernels}
    assert names == {
        *("tile<7>", "tile<32>", "tile<16>", "add<float>", "add<unsigned int>", "add<double>"),
        *("sum<int, 256, true>", "sum<int, 512, true>"),
    }


def test_errors_in_device_code_are_the_users_with_the_line() -> None:
    text = PROGRAM.replace("weigh(bodies[i])", "weight(bodies[i])")
    with pytest.raises(CutraceError) as caught:
        compile_whole(text)
    assert 'whole.cu(20): error: identifier "weight" is undefined' in str(caught.value)
    assert "iostream" not in str(caught.value)


def test_a_type_that_was_host_code_is_named_with_its_line() -> None:
    text = "struct Row { std::string name; int n; };\n__global__ void k(Row *r) { r->n = 1; }\n"
    with pytest.raises(CutraceError, match=r"whole\.cu\(1\): Row was left out as host code"):
        compile_whole(text)


def test_a_device_header_that_is_not_there_is_named_with_its_line() -> None:
    text = "#include <stdio.h>\n#include <no_such_rng.h>\n__global__ void k(Rng *r) { r->x = 1; }\n"
    with pytest.raises(CutraceError) as caught:
        compile_whole(text)
    _, header, error, *_ = str(caught.value).splitlines()
    assert header.startswith("whole.cu(2): the header no_such_rng.h was not found")
    assert error == 'whole.cu(3): error: identifier "Rng" is undefined'
    assert "stdio.h was" not in str(caught.value)


@pytest.mark.skipif(in_cuda("curand_kernel.h"), reason="the wheel is installed here")
def test_a_header_that_a_wheel_would_bring_is_named_with_the_wheel() -> None:
    text = "#include <curand_kernel.h>\n__global__ void k(curandState *a) { a[0] = 1; }\n"
    with pytest.raises(CutraceError, match=r"whole\.cu\(2\): error") as caught:
        compile_whole(text)
    first = str(caught.value).splitlines()[1]
    assert first.startswith("whole.cu(1): the header curand_kernel.h was not found")
    assert first.endswith("python -m pip install nvidia-curand-cu12")


def test_a_name_expression_that_names_nothing_is_told_with_the_nearest_kernel() -> None:
    text = "template <int N> __global__ void scale(int *a) { a[N] = 0; }\n"
    with pytest.raises(CutraceError) as caught:
        cuda.to_ptx(Source("k.cu", text, Options(name_expressions=("scalo<4>",))), "compute_75")
    assert str(caught.value).splitlines() == [
        "k.cu does not compile",
        'there is no kernel instance scalo<4> in it: identifier "scalo" is undefined; '
        "nearest: scale",
    ]


def test_a_program_without_kernels_says_so() -> None:
    with pytest.raises(CutraceError, match=r"whole\.cu has no kernel: no __global__ function"):
        compile_whole("int main() { return 0; }")


def test_templates_that_nobody_launches_are_named() -> None:
    text = "template <class T, int N> __global__ void scale(T *a) { a[N] = 0; }\n"
    with pytest.raises(CutraceError, match=r"only templates of kernels.*scale<T, N> \(line 1\)"):
        compile_whole(text)


def test_a_launch_from_the_device_is_refused_at_its_line() -> None:
    text = "__global__ void c() {}\n__global__ void p() {\n c<<<1, 1>>>(); }\nint main() {}\n"
    with pytest.raises(CutraceError, match=r"whole\.cu\(3\): error: .*kernel launch"):
        compile_whole(text)


def test_host_code_in_a_local_header_is_cut_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = (
        "#include <fstream>\nfloat h_a[99];\nvoid load(std::ifstream &f) { f >> h_a[0]; }\n"
        "__device__ float twice(const float *x) { return 2 * x[threadIdx.x]; }\n"
    )
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "local.h").write_text(header)
    monkeypatch.chdir(tmp_path)
    text = '#include "local.h"\n__global__ void k(float *x) { x[0] = twice(x); }\nint main() {}\n'
    compiled = compile_whole(text, "src/k.cu")
    assert kernels(compiled) == ["k(float *x)"]
    assert re.findall(r'\.file\s+\d+ "(.*)"', compiled.ptx) == ["src/k.cu", "src/local.h"]
    assert re.search(r"\.loc\s+2 4 ", compiled.ptx)
    assert compiled.sources["src/local.h"] == header
    assert "h_a" not in compiled.ptx


def test_members_of_the_host_do_not_keep_a_class_from_the_device() -> None:
    text = (
        "class Point {\npublic:\n  float x;\n  __device__ float twice() const { return 2 * x; }\n"
        "  std::string text() const { return std::to_string(x); }\n};\n"
        "__global__ void k(Point *p) { p[0].x = p[1].twice(); }\n"
    )
    assert kernels(compile_whole(text)) == ["k(Point *p)"]


def test_limits_types_and_std_functions_of_the_c_library_are_there() -> None:
    text = (
        "#include <cstdint>\n#include <cmath>\n#include <algorithm>\n"
        "__global__ void k(float *a, uint64_t *b, uint n) {\n"
        "  a[0] = std::max(a[1], std::sqrt(a[2])) + M_PI + FLT_MAX; b[0] = UINT_MAX - n; }\n"
        "int main() {}\n"
    )
    assert kernels(compile_whole(text)) == ["k(float *a, uint64_t *b, uint n)"]


def test_infinity_and_nan_are_constants_of_the_compiler_as_under_nvcc() -> None:
    text = (
        "#include <cmath>\nstruct Least { static constexpr float start = -INFINITY; };\n"
        "__constant__ double most = HUGE_VAL;\n"
        "__global__ void k(float *a) { constexpr float x = NAN; a[0] = Least::start; a[1] = x; }\n"
    )
    ptx = compile_whole(text).ptx
    assert "most = 0d7FF0000000000000;" in ptx
    # -infinity is 0xff800000, a NaN 0x7fc00000
    assert {str(0xFF800000 - (1 << 32)), str(0x7FC00000)} <= set(re.findall(r"-?\d{7,}", ptx))


def test_a_library_that_device_code_needs_is_found_in_the_second_attempt() -> None:
    text = (
        "#include <limits>\n#include <iostream>\n"
        "__global__ void k(float *a) { a[0] = std::numeric_limits<float>::max(); }\n"
        "int main() { std::cout << 1; }\n"
    )
    assert kernels(compile_whole(text)) == ["k(float *a)"]


def test_functors_may_inherit_what_the_c_library_no_longer_has() -> None:
    text = (
        "#include <thrust/functional.h>\n#include <thrust/device_vector.h>\n"
        "struct square : std::unary_function<float, float> {\n"
        "  __host__ __device__ float operator()(float x) const { return x * x; } };\n"
        "struct twice : thrust::unary_function<float, float> {\n"
        "  __host__ __device__ float operator()(float x) const { return x + x; } };\n"
        "__global__ void k(square::result_type *a) { a[0] = square()(twice()(a[0])); }\n"
        "int main() { thrust::device_vector<float> v(4); }\n"
    )
    assert kernels(compile_whole(text)) == ["k(square::result_type *a)"]


def test_names_of_references_are_free_where_a_program_declares_none() -> None:
    text = (
        "struct surface { float height; };\nstruct texture { int side; };\n"
        "__global__ void k(surface *a, texture *b) { a->height = b->side; }\nint main() {}\n"
    )
    assert kernels(compile_whole(text)) == ["k(surface *a, texture *b)"]


def test_vector_arithmetic_stands_in_for_a_helper_header_that_is_left_behind() -> None:
    text = (
        "#include <helper_math.h>\n"
        "__global__ void k(float4 *a, float3 *b) {\n"
        "  a[0] = normalize(a[1]) * 2.0f + make_float4(b[0], 1.0f); b[1] = cross(b[2], -b[3]); }\n"
        "int main() {}\n"
    )
    assert kernels(compile_whole(text)) == ["k(float4 *a, float3 *b)"]


@pytest.mark.parametrize("header", ["cublas_v2.h", "cublasLt.h", "torch/extension.h", "nccl.h"])
def test_types_that_a_librarys_header_brings_are_there_without_it(header: str) -> None:
    text = (
        f"#include <{header}>\n"
        "__global__ void k(__nv_bfloat16 *a, const half *b) { a[0] = __half2float(b[0]); }\n"
        "int main() { cublasHandle_t handle; torch::Tensor t; }\n"
    )
    assert kernels(compile_whole(text)) == ["k(__nv_bfloat16 *a, const half *b)"]


def test_complex_numbers_come_with_the_header_of_a_library() -> None:
    text = "#include <cufft.h>\n__global__ void k(cufftComplex *a) { a[0] = cuConjf(a[1]); }\n"
    assert kernels(compile_whole(text)) == ["k(cufftComplex *a)"]


def test_built_in_functions_bear_the_line_that_calls_them() -> None:
    text = "__global__ void k(float *a) {\n  a[0] = std::min(\n    a[1], a[2]); }\nint main() {}\n"
    compiled = compile_whole(text)
    assert {line.split()[1] for line in compiled.ptx.splitlines() if ".loc" in line} == {"1"}


STRIDED = """#ifdef STRIDE
#define S STRIDE
#else
#define S 1
#endif
__global__ void k(float *x) { x[threadIdx.x * S] = 1; }
"""


@pytest.mark.parametrize(
    ("includes", "where"),
    [
        ('#include "config.h"\n', r"k\.cu\(1\)"),
        ('\n#  include "sub/config.h" // ours\n', r"k\.cu\(2\)"),
        ('#include "there.h"\n', r"there\.h\(1\)"),
        ('#if 1\n#include "config.h"\n#endif\nint main() {}\n', r"k\.cu\(2\)"),
    ],
)
def test_a_header_of_the_programs_own_that_is_missing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, includes: str, where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.h").write_text('#include "config.h"\n')
    message = rf'(?s){where}: .*cannot open source file "(sub/)?config\.h".*-I FOLDER'
    with pytest.raises(CutraceError, match=message):
        compile_whole(includes + STRIDED, "k.cu")
    (tmp_path / "sub").mkdir()
    for folder in ("sub", "."):
        (tmp_path / folder / "config.h").write_text("#define STRIDE 32\n")
    compiled = compile_whole(includes + STRIDED, "k.cu")
    assert "config.h" not in "".join(compiled.compiler.missing)
    assert re.search(r"shl\.b32|mul\.wide\.u32 .*, 128;", compiled.ptx)  # 32 words of 4 bytes


@pytest.mark.parametrize(
    "includes",
    [
        '#if 0\n#include "config.h"\n#endif\n',
        '#ifndef __CUDA_ARCH__\n#include "config.h"\n#endif\n',
        '#if __has_include("config.h")\n#include "config.h"\n#error here\n#endif\n',
        '// #include "config.h"\n',
    ],
)
def test_a_header_that_device_code_does_not_include_may_be_missing(includes: str) -> None:
    assert kernels(compile_whole(includes + STRIDED)) == ["k(float *x)"]


def test_headers_of_libraries_and_samples_that_are_left_out_are_said() -> None:
    compiled = compile_whole('#include <opencv2/core.hpp>\n#include "helper_cuda.h"\n' + STRIDED)
    assert compiled.compiler.missing == (
        "whole.cu(1): the header opencv2/core.hpp was not found and left out",
        "whole.cu(2): the header helper_cuda.h was not found and left out",
    )
