"""Programs of several files whose device code is linked (nvcc -rdc=true)."""

import re
from pathlib import Path

from program_run import HEAD, cutrace

from cutrace.tracer.program.linked import link_texts

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
