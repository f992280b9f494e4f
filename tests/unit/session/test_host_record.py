import io
from pathlib import Path

import numpy as np
import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.session.source.record import record
from cutrace.traces.reader import read_trace

REVERSE = """// cutrace: reverse<<<2, 32>>>(out:i32[64], in:i32[64]=arange)
__global__ void reverse(int *out, const int *in)
{
    int last = gridDim.x * blockDim.x - 1;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[last - i] = in[i];
}
"""

SCALE = """
template <int N> __global__ void scale(float *data, float by) { data[threadIdx.x % N] *= by; }
"""

SCRIPT = """
import numpy as np
from cutrace.tracer.session.session import Session

with Session({path}) as gpu:
    gpu.to_device(np.zeros(4, np.int32), name="zeros")
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.write_text(text)
    return path


def message(*launches: str, source: str = "a.cu") -> str:
    with pytest.raises(CutraceError) as raised:
        record(source, launches, "t.cutrace")
    assert not Path("t.cutrace").exists()
    return str(raised.value)


def test_the_launches_of_the_comments_are_recorded() -> None:
    path = record(write("reverse.cu", REVERSE))
    assert path == Path("reverse.cutrace")
    (launch,) = read_trace(path).manifest.launches
    assert [argument.value for argument in launch.arguments] == ["out", "in"]
    assert read_trace(path).manifest.sources == {"reverse.cu": REVERSE}


def test_a_launch_line_goes_before_the_comments() -> None:
    write("reverse.cu", REVERSE)
    path = record("reverse.cu", ["reverse<<<1, 16>>>(b:i32[16], a:i32[16])"], "t.cutrace")
    (launch,) = read_trace(path).manifest.launches
    assert launch.block == (16, 1, 1)


def test_a_name_used_again_is_the_same_array() -> None:
    write("scale.cu", SCALE)
    lines = ["scale<4><<<1, 4>>>(d:f32[4]=arange, 2)", "scale<8><<<1, 4>>>(d, 0.5f)"]
    trace = read_trace(record("scale.cu", lines))
    first, second = trace.manifest.launches
    assert first.arrays == second.arrays
    assert first.arguments[1].value == 2.0
    assert [event.kind for event in trace.manifest.events] == ["copy", "launch", "launch"]


def test_a_file_beside_the_source_is_read_for_its_comment() -> None:
    Path("folder").mkdir()
    np.save("folder/in.npy", np.arange(64, dtype=np.int32))
    write("folder/reverse.cu", REVERSE.replace("arange", "in.npy"))
    assert record("folder/reverse.cu").is_dir()


def test_options_reach_the_compiler() -> None:
    write("a.cu", "__global__ void k(int *d) { d[0] = N; }")
    trace = read_trace(record("a.cu", ["k<<<1, 1>>>(d:i32[1])"], options=["-DN=4"]))
    assert "-DN=4" in trace.manifest.compilers[0].options


def test_printing_goes_to_the_output() -> None:
    write("a.cu", '__global__ void k() { printf("%d\\n", 3); }')
    output = io.StringIO()
    record("a.cu", ["k<<<1, 2>>>()"], output=output)
    assert output.getvalue() == "3\n3\n"


def test_without_a_launch_the_kernels_are_listed_with_an_example() -> None:
    write("a.cu", REVERSE.partition("\n")[2] + SCALE)
    lines = message().split("\n")
    assert lines[0] == "a.cu does not say which kernel to launch. Its kernels:"
    assert lines[1] == "  reverse(int *out, const int *in)"
    assert lines[2] == "  scale<N>(float *data, float by)"
    assert lines[-2] == (
        '  cutrace record a.cu --launch "reverse<<<4, 256>>>(out:i32[1024], in:i32[1024]=arange)"'
    )
    assert lines[-1].startswith('  cutrace record a.cu --launch "scale<')
    assert "Run the whole program" not in message()


def test_a_program_may_be_run_whole_and_each_of_its_kernels_alone() -> None:
    kernels = "__global__ void a(int *p) { *p = 1; }\n__global__ void b(int *p) { *p = 2; }\n"
    write("a.cu", kernels + "int main() { a<<<1, 2>>>(0); b<<<3,\n 4>>>(0); }")
    told = message()
    assert "Run the whole program:\n  cutrace record a.cu --\nOr write a launch" in told
    assert [line[32:38] for line in told.split("\n") if "--launch" in line] == ["a<<<4,", "b<<<4,"]
    assert told.endswith("The program itself launches so:\n  a<<<1, 2>>>(0)\n  b<<<3, 4>>>(0)")


def test_the_example_works_as_it_stands() -> None:
    write("a.cu", REVERSE.partition("\n")[2])
    example = message().rpartition("--launch ")[2].strip('"')
    assert record("a.cu", [example]).is_dir()


def example(source: str) -> str:
    write("a.cu", source)
    return message().partition('--launch "')[2]


def test_the_example_fits_types_two_dimensions_and_open_shared_memory() -> None:
    counts = example("#include <cstdint>\n__global__ void k(const uint8_t *a, size_t n) {}")
    assert counts.startswith("k<<<4, 256>>>(a:u8[1024]=arange, 1024)")
    vectors = example("__global__ void k(const float4 *a, uchar3 *b) {}")
    assert vectors.startswith("k<<<4, 256>>>(a:f32[1024,4]=arange, b:u8[1024,3])")
    flat = example("__global__ void k(float *a, int n) { a[blockIdx.y * n + threadIdx.x] = 1; }")
    assert flat.startswith("k<<<(4, 4), (16, 16)>>>(a:f32[64,64], 64)")
    # 256 threads of 8 bytes
    shared = example("__global__ void k(int *a) { extern __shared__ int s[]; a[0] = s[0]; }")
    assert shared.startswith("k<<<4, 256, 2048>>>(a:i32[1024])")
    above = example("extern __shared__ int s[];\n__global__ void k(int *a) { s[0] = a[0]; }")
    assert above.startswith("k<<<4, 256, 2048>>>(a:i32[1024])")
    flag = example("__global__ void k(int *a, int n, bool flip) { a[0] = flip; }")
    assert flag.startswith("k<<<4, 256>>>(a:i32[1024], 1024, 1)")
    structures = example("struct P { float x, y; };\n__global__ void k(P *p) { p->x = 0; }")
    # two floats of 4 bytes
    assert structures.startswith("k<<<4, 256>>>(p:u8[1024,8])")
    assert "An array of `P` is written as its bytes, 8 each" in structures
    # eight floats of 4 bytes
    particle = "struct Particle { float x, y, z, w, vx, vy, vz, vw; };\n"
    eight = example(particle + "__global__ void k(Particle *p) { p->x = 0; }")
    assert eight.startswith("k<<<4, 256>>>(p:u8[1024,32])")


def test_a_second_integer_of_the_example_is_the_length_of_a_row(tmp_path: Path) -> None:
    text = (
        "__global__ void k(const float *a, float *b, int rows, int columns, float f)\n{\n"
        "    int row = blockIdx.x * blockDim.x + threadIdx.x;\n    if (row >= rows) return;\n"
        "    for (int c = 0; c < columns; ++c) b[row] += f * a[row * columns + c];\n}\n"
    )
    # 1024 rows of 64 are 65536 elements
    wanted = "k<<<4, 256>>>(a:f32[65536]=arange, b:f32[65536], 1024, 64, 1.0)"
    assert example(text).startswith(wanted)
    assert record(Path("a.cu"), [wanted], out=tmp_path / "a.cutrace").is_dir()


def test_the_numbers_of_the_programs_own_launch_are_left_to_the_program() -> None:
    program = (
        "#define BLOCK 128\n__global__ void k(float *m, int n) { if (n) m[threadIdx.x] = 1; }\n"
        "int main() { int n = 1 << 10; float *m; dim3 block(BLOCK), grid(n / BLOCK + 1);\n"
        "    cudaMalloc(&m, n * 4);\n    k<<<grid, block>>>(m, n);\n}\n"
    )
    told = example(program)
    assert told.startswith("k<<<4, 256>>>(m:f32[1024], 1024)")
    assert told.endswith("The program itself launches so:\n  k<<<grid, block>>>(m, n)")
    assert "Run the whole program:\n  cutrace record a.cu --\n" in message()


def test_the_example_keeps_to_the_launch_bounds() -> None:
    row = "__global__ void __launch_bounds__(96) k(int *a) { a[threadIdx.x] = 0; }"
    # 11 blocks of 96 are the first to cover 1024
    assert example(row).startswith("k<<<11, 96>>>(a:i32[1024])")
    # 128 threads are 8 rows of 16, so that 8 blocks cover 64 rows
    flat = "template <int n> __global__ void __launch_bounds__(n) k(int *a) { a[threadIdx.y] = 0; }"
    launched = "\nint main(int argc, char **argv) { k<128><<<argc, 128>>>(0); }"
    assert example(flat + launched).startswith("k<128><<<(4, 8), (16, 8)>>>(a:i32[64,64])")


def test_an_argument_that_does_not_fit_is_pointed_at_in_the_comments_own_line() -> None:
    kernel = "__global__ void k(int *a) { a[0] = 1; }\n"
    write("a.cu", f"\n// cutrace: k<<<1, 1>>>(a:f32[4])\n{kernel}")
    with pytest.raises(CutraceError, match=r"^a\.cu:2: launch line, column 13: .* of float32"):
        record("a.cu")
    with pytest.raises(CutraceError, match=r"^launch line, column 12: .* of float32"):
        record("a.cu", ["k<<<1,1>>>(a:f32[4])"])


def test_the_example_knows_what_a_types_name_stands_for() -> None:
    names = (
        "typedef unsigned long long int word;\nusing key = word;\n#define REAL double\n"
        "__global__ void k(key *a, const REAL *b, long unsigned int *c, cuFloatComplex *d) {}"
    )
    line = example("#include <cuComplex.h>\n" + names)
    assert line.startswith(
        "k<<<4, 256>>>(a:u64[1024], b:f64[1024]=arange, c:u64[1024], d:f32[1024,2])"
    )
    unknown = example("#include <utility>\n__global__ void k(std::pair<int, float> *p) {}")
    # an int and a float
    assert unknown.startswith("k<<<4, 256>>>(p:u8[1024,8])")


def test_the_example_calls_one_of_several_of_a_name_by_its_ptx_name() -> None:
    overloads = (
        "__global__ void k(int n, float a[8][4]) { a[n][0] = 0; }\n"
        "__global__ void k(int n, double *a) { a[n] = 0; }\n"
    )
    write("a.cu", overloads)
    listed, _, line = message().partition("\nWrite a launch")
    assert "\n  k(int n, float a[8][4])" in listed
    assert "\n  k(int n, double *a)" in listed
    assert '"_Z1kiPA4_f<<<4, 256>>>(1024, a:f32[1024])"' in line


@pytest.mark.parametrize(
    "source",
    [
        "struct P { float x; };\n__global__ void k(P p, int *a) { a[0] = p.x; }",
        "typedef struct { float x; } P;\n__global__ void k(int *a, const P p) { a[0] = p.x; }",
        "__global__ void k(float4 v, int *a) { a[0] = v.x; }",
    ],
)
def test_a_structure_by_value_is_said_to_need_a_script(source: str) -> None:
    write("a.cu", source)
    told = message()
    assert "by value is launched from a Python script" in told
    assert "--launch" not in told
    # a kernel beside it that a launch line can say is the example
    write(
        "a.cu", f"{source}\nenum class mode : int {{ on }};\n__global__ void z(int *a, mode m) {{}}"
    )
    assert message().endswith('--launch "z<<<4, 256>>>(a:i32[1024], 1024)"')


def test_the_example_reads_the_headers_that_a_source_reaches() -> None:
    write("real.h", "typedef double real;\n#define SIDE 64\n")
    told = example('#include "real.h"\n__global__ void k(real *a) { a[blockIdx.y] = 0; }')
    assert told.startswith("k<<<(4, 4), (16, 16)>>>(a:f64[64,64])")


def test_the_programs_own_launch_is_shown_for_its_sizes() -> None:
    program = "int main() { scale<float><<<n / 64,\n    64>>>(d, 2.f); }"
    told = example("template <typename T> __global__ void scale(T *d, T k) {}\n" + program)
    assert told.endswith("launches so:\n  scale<float><<<n / 64, 64>>>(d, 2.f)")


def test_a_source_without_kernels_says_so() -> None:
    write("a.cu", "__device__ int x;\n")
    assert message() == "a.cu has no kernel: expected a __global__ function"


def test_a_kernel_that_is_not_there_lists_those_that_are() -> None:
    write("a.cu", REVERSE)
    text = message("revers<<<1, 1>>>()")
    assert text.startswith("a.cu has no kernel `revers`; nearest: reverse; its kernels:")
    assert text.endswith("  reverse(int *out, const int *in)")


def test_a_template_that_is_not_there_lists_those_that_are() -> None:
    write("a.cu", SCALE)
    assert message("scal<16><<<1, 1>>>()") == (
        "a.cu has no kernel `scal<16>`; nearest: scale<N>; its kernels:"
        "\n  scale<N>(float *data, float by)"
    )


def test_a_template_without_its_arguments_says_how_to_name_an_instance() -> None:
    write("a.cu", SCALE)
    assert message("scale<<<1, 1>>>()").startswith(
        "a.cu has no kernel `scale`; it is a template, to be launched as an instance: scale<16>;"
    )


def test_a_template_with_wrong_arguments_shows_the_compilers_error() -> None:
    write("a.cu", SCALE)
    assert message("scale<float><<<1, 1>>>()").startswith("a.cu does not compile\n")


def test_the_example_of_a_template_is_an_instance() -> None:
    write("a.cu", "template <class T, int N> __global__ void k(T *out) { out[0] = N; }")
    assert message().endswith('--launch "k<float, 16><<<4, 256>>>(out:f32[1024])"')


def test_a_wrong_argument_is_pointed_at() -> None:
    write("a.cu", SCALE)
    line = "scale<4><<<1, 4>>>(data:f32[4], out:f32[4])"
    first, shown, caret = message(line).split("\n")
    assert first == (
        "launch line, column 33: scale<4>(float *data, float by): argument 2 `by` is float: "
        "expected a number, got the device array `out`"
    )
    assert (shown, caret) == (f"  {line}", " " * 34 + "^")


def test_a_wrong_count_is_pointed_at_the_arguments() -> None:
    write("a.cu", REVERSE)
    first, _, caret = message("reverse<<<1, 4>>>(a:i32[4])").split("\n")
    assert first.endswith("reverse(int *out, const int *in): expected 2 arguments, got 1")
    assert caret == " " * 19 + "^"


def test_a_type_that_the_kernel_does_not_take_is_pointed_at() -> None:
    write("a.cu", REVERSE)
    text = message("reverse<<<1, 4>>>(a:i32[4], b:f32[4])")
    assert "column 29: " in text
    assert "argument 2 `in` is const int *: got `b` of float32" in text


def test_an_array_that_was_never_made_is_pointed_at() -> None:
    write("a.cu", REVERSE)
    text = message("reverse<<<1, 4>>>(data:i32[4], dat)")
    assert "there is no array `dat` yet; nearest: data; expected its type and shape" in text


def test_an_array_keeps_its_type_and_shape() -> None:
    write("a.cu", REVERSE)
    text = message("reverse<<<1, 4>>>(a:i32[4], a:i32[8])")
    assert "column 29: `a` is an array already, int32 of shape (4,)" in text


def test_an_error_in_a_comment_names_file_and_line() -> None:
    write("a.cu", "\n// cutrace: k<<<1, 1>>(x)\n")
    assert message().startswith("a.cu:2: launch line, column 9: expected `>>>`")


def test_a_block_that_no_device_takes_is_refused() -> None:
    write("a.cu", REVERSE)
    text = message("reverse<<<1, 2048>>>(a:i32[4], a)")
    assert "block.x is 2048, expected 1 to 1024" in text


def test_a_mistyped_path_names_the_nearest_files() -> None:
    write("reverse.cu", REVERSE)
    assert message(source="revers.cu") == ("revers.cu: there is no such file; nearest: reverse.cu")


def test_a_file_of_another_kind_is_refused() -> None:
    write("notes.txt", "")
    assert message(source="notes.txt") == "notes.txt: expected a .cu, .ptx or .py file"


def test_a_program_or_a_source_of_host_code_is_told_how_it_is_recorded() -> None:
    write("app", "")
    Path("app").chmod(0o755)
    assert message(source="app").endswith("file; of a program, `cutrace record -- ./PROGRAM`")
    write("host.cu", "int main() { return 0; }\n")
    assert message(source="host.cu").endswith("`cutrace record host.cu --` runs the whole program")


def test_a_script_records_to_its_own_path_or_where_it_is_asked() -> None:
    write("a.py", SCRIPT.format(path='"own.cutrace"'))
    assert record("a.py") == Path("own.cutrace")
    assert record("a.py", out="asked.cutrace") == Path("asked.cutrace")
    assert len(read_trace("asked.cutrace").manifest.events) == 1


def test_a_script_without_a_path_records_under_its_own_name() -> None:
    write("a.py", SCRIPT.format(path=""))
    assert record("a.py") == Path("a.cutrace")


def test_a_script_finds_its_neighbours_and_its_arguments() -> None:
    Path("folder").mkdir()
    write("folder/neighbour.py", "NAME = 'n.cutrace'")
    head = "import sys\nimport neighbour\nassert sys.argv == ['folder/a.py']\n"
    write("folder/a.py", head + SCRIPT.format(path="neighbour.NAME"))
    assert record("folder/a.py") == Path("n.cutrace")


@pytest.mark.parametrize("out", [None, "asked.cutrace"])
def test_a_script_may_change_its_folder(out: str | None, tmp_path: Path) -> None:
    Path("inner").mkdir()
    write("a.py", f"import os\nos.chdir('inner')\n{SCRIPT.format(path='')}")
    trace = record("a.py", out=out)
    assert trace == Path(out or "a.cutrace")
    assert len(read_trace(trace).manifest.events) == 1
    assert Path.cwd() == tmp_path


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("x = 1\n", "a.py: the script opened no session"),
        ("x = 1\ny = x / 0\n", "a.py:2: ZeroDivisionError: division by zero"),
        ("x = (\n", "a.py:1: SyntaxError: '(' was never closed (a.py, line 1)"),
        ("raise SystemExit(3)\n", "a.py: the script ended with exit status 3"),
    ],
)
def test_a_script_that_does_not_record_one_trace_says_why(script: str, expected: str) -> None:
    write("a.py", script)
    assert expected in message(source="a.py")


def test_a_second_session_of_a_script_is_refused_and_the_first_trace_whole() -> None:
    write("a.py", 2 * SCRIPT.format(path=""))
    with pytest.raises(CutraceError, match=r"the script opens a second cutrace\.Session\(\)"):
        record("a.py", out="t.cutrace")
    assert len(read_trace("t.cutrace").manifest.events) == 1
