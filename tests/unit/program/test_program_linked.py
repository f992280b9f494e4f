"""Programs of several files whose device code is linked (nvcc -rdc=true)."""

import re
import struct
from pathlib import Path

from program_run import HEAD, cutrace

from cutrace.tracer.program.code import MAGIC, link_texts, read_options
from cutrace.traces.reader import read_trace

SHARED = """
template <int n> __device__ __noinline__ int plus(int x) { return x + n; }
static __device__ int own = OWN;
"""
APP = """
extern __device__ int twice(int x);
extern __device__ int calls;
__device__ int limit = 40;
__global__ void k(int *out)
{
    printf("app %d\\n", own);
    out[threadIdx.x] = plus<1>(twice(threadIdx.x));
}
int main()
{
    int *out, host[4];
    cudaFuncAttributes found;
    CHECK(cudaFuncGetAttributes(&found, k));
    CHECK(cudaMalloc(&out, sizeof host));
    k<<<1, 4>>>(out);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    printf("%d %d, for %d, %d\\n", host[0], host[3], found.ptxVersion, found.numRegs > 0);
}
"""
WIDE = """
int main()
{
    float *a;
    cudaFuncAttributes found;
    CHECK(cudaFuncGetAttributes(&found, wide));
    CHECK(cudaMalloc(&a, 64 * 64 * 4));
    CHECK(cudaMemset(a, 0, 64 * 64 * 4));
    wide<<<1, 32>>>(a, 64);
    CHECK(cudaDeviceSynchronize());
    printf("at most 32: %d\\n", found.numRegs <= 32);
}
"""
MORE = """
extern __device__ int limit;
__device__ int calls;
__device__ int twice(int x)
{
    if (atomicAdd(&calls, 1) == 3) printf("more %d\\n", own + limit);
    return plus<1>(2 * x);
}
"""


def test_device_code_of_several_files_is_linked(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(HEAD + SHARED.replace("OWN", "5") + APP)
    (tmp_path / "more.cu").write_text(HEAD + SHARED.replace("OWN", "7") + MORE)
    words = ("app.cu", "more.cu", "--nvcc-flags=-rdc=true", "-d", "h200", "--")
    done = cutrace(tmp_path, "record", *words)
    said = ["app 5"] * 4 + ["more 47", "2 8, for 90, 1"]  # 2 x + 1 + 1 of threads 0 and 3
    assert (done.status, done.out.splitlines()) == (0, said), done.err
    lines = {file.rpartition("/")[2] for file in done.trace.manifest.sources}
    assert {"app.cu", "more.cu"} <= lines


FIRST = """//
// a compiler
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) twice (.param .b32 x);
.extern .global .align 4 .u32 calls;
.global .align 1 .b8 $str[2] = {65, 0};
.weak .func (.param .b32 r) plus (.param .b32 x)
{
\t.loc 1 3 0
\tret;
}
.visible .entry k()
{
\t.loc 1 5 0, function_name $L__info_string0, inlined_at 1 4 0
\tmov.u64 %rd1, $str;
\tmov.u64 %rd2, $str_long;
\tret;
}
\t.file\t1 "a.cu"
"""
SECOND = """.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 calls;
.global .align 1 .b8 $str[2] = {66, 0};
.weak .func (.param .b32 r) plus (.param .b32 x)
{
\tret;
}
.visible .func (.param .b32 r) twice (.param .b32 x)
{
\t.loc 1 7 0
\tmov.u64 %rd1, $str;
\tret;
}
\t.file\t1 "b.cu"
"""


def test_registers_are_those_of_the_assembler_with_the_options_of_the_build(
    tmp_path: Path,
) -> None:
    """64 values that live at once take more than 64 registers, unless nvcc is told a limit."""
    names = [f"v{i}" for i in range(64)]
    loads = " ".join(f"{name} = a[{i} * n];" for i, name in enumerate(names))
    stores = " ".join(f"a[{i} * n + 1] = v{i} * v{63 - i};" for i in range(64))
    (tmp_path / "app.cu").write_text(
        f"{HEAD}static __global__ void wide(float *a, int n) "
        f"{{ float {', '.join(names)}; {loads} {stores} }}\n{WIDE}"
    )
    limit = "--nvcc-flags=-rdc=true -maxrregcount=32"
    done = cutrace(tmp_path, "record", "app.cu", limit, "-d", "h200", "-o", "t.cutrace", "--")
    assert done.out == "at most 32: 1\n", done.err
    (launch,) = read_trace(tmp_path / "t.cutrace").launches
    assert launch.launch.name == "wide"
    assert {each.registers <= 32 for each in launch.launch.resources} == {True}


def test_options_of_the_assembler_are_read_where_an_image_names_them() -> None:
    text, said = b".version 8.5\n", b"--compile-only  --generate-line-info -maxrregcount=24 "
    place = 64  # where the head says where the options are, and how long
    head = struct.pack("<HHIQIIQI", 1, 0x101, 128, len(text), 0, place, 5, 90)
    head += struct.pack("<4xQQQ", 0, 0, 0) + struct.pack("<II", place + 8, len(said)) + said
    entry = head.ljust(128, b"\0") + text
    image = struct.pack("<IHHQ", MAGIC, 1, 16, len(entry)) + entry
    assert read_options(image, 90) == ("--compile-only", "-maxrregcount=24")
    assert read_options(b".version 8.5\n", 90) == ()


def test_linking_declares_once_defines_once_and_keeps_names_of_a_text_s_own_apart() -> None:
    text = link_texts([FIRST, SECOND])
    assert text.startswith("//\n// a compiler\n.version 8.0\n")
    assert ".extern" not in text
    assert text.index(".visible .func (.param .b32 r) twice (.param .b32 x);") < text.index("plus")
    assert re.findall(r"\.weak \.func .*", text) == [
        ".weak .func (.param .b32 r) plus (.param .b32 x)"
    ]
    assert re.findall(r"\.u32 calls", text) == [".u32 calls"]
    assert re.findall(r"\$str\S*", text) == [
        *("$str$0[2]", "$str$1[2]", "$str$0;", "$str_long;", "$str$1;"),
    ]  # fmt: skip
    assert re.findall(r'\.file\s+(\d+) "(.*)"', text) == [("1", "a.cu"), ("100001", "b.cu")]
    assert re.findall(r"\.loc (\d+)", text) == ["1", "1", "100001"]


def test_one_text_is_left_as_it_is() -> None:
    assert link_texts([FIRST]) == FIRST
