"""The compiled engine gives what the array engine gives, to the last byte."""

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import assert_same_under_both, files_of
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import KernelFault
from cutrace.tracer.session.record_options import RecordOptions, default_options
from cutrace.tracer.session.source.record import record
from cutrace.tracer.simt import wave
from cutrace.tracer.simt.codegen import compiled_blocks, compiled_kernel
from cutrace.tracer.simt.rows import access_rows, pattern

GALLERY = Path(str(files("cutrace.traces") / "gallery"))
SOURCES = (
    "bitonic_sort/bitonic_sort.cu",
    "constant_table/constant_table.cu",
    "divergence/ways_by_thread.cu",
    "histogram/histogram_dynamic.cu",
    "local_array/local_array.cu",
    "matrix_product/product_tiled.cu",
    "reduction/reduce7_many.cu",
    "transpose/transpose_padded.cu",
)

SPARSE = """
__global__ void spmv(const int *start, const int *column, const float *x, float *y, int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) {
        float sum = 0.0f;
        for (int k = start[row]; k < start[row + 1]; ++k) sum += x[column[k]];
        y[row] = sum;
    }
}
"""


@pytest.mark.parametrize("source", SOURCES)
def test_a_gallery_kernel_leaves_the_same_trace(source: str, tmp_path: Path) -> None:
    traces = []
    for engine in ("array", "compiled"):
        with default_options(RecordOptions(engine=engine)):
            trace = record(GALLERY / source, out=tmp_path / f"{engine}.cutrace")
        traces.append(files_of(trace))
    assert [name for name in traces[0] if traces[0][name] != traces[1][name]] == []


def skewed(gpu: cutrace.Session) -> list[Any]:
    """Rows of 0 to 63 elements, one of 700, over random columns."""
    random = np.random.default_rng(5)
    lengths = random.integers(0, 64, 3000)
    lengths[1500] = 700
    start = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    column = random.integers(0, 3000, start[-1]).astype(np.int32)
    kernel = gpu.compile(SPARSE).get_function("spmv")
    given = [gpu.to_device(a) for a in (start, column, np.ones(3000, np.float32))]
    out = gpu.device_array(3000, np.float32)
    kernel[24, 128](*given, out, 3000)
    found = out.copy_to_host()
    np.testing.assert_array_equal(found, lengths)  # sums of ones
    return [found]


def test_a_skewed_loop_leaves_the_same_trace(tmp_path: Path) -> None:
    assert_same_under_both(tmp_path, skewed)


def test_batches_and_epochs_end_at_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (access_rows, compiled_kernel, compiled_blocks):
        monkeypatch.setattr(module, "ROWS", 250)
    monkeypatch.setattr(wave, "RUNS", 400)
    monkeypatch.setattr(pattern, "EPOCH", 300)
    trace = assert_same_under_both(tmp_path, skewed)
    launch = cutrace.read_trace(trace).launches[0]
    assert sum(1 for _ in launch.access_batches()) >= 1


RACE = """
__global__ void race(int *a, int *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    __shared__ int s[1024];
    s[threadIdx.x] = i;
    int left = s[(threadIdx.x + 96) % blockDim.x];
    a[(i + 32) % n] = a[i] + left;
    b[i] = a[(i + 64) % n];
    a[i] = b[(i + 160) % n];
}
"""


def test_warps_race_in_the_same_order(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[Any]:
        a, b = (gpu.to_device(np.arange(k, k + 1024, dtype=np.int32)) for k in (0, 5000))
        gpu.compile(RACE).get_function("race")[4, 256](a, b, 1024)
        return [a.copy_to_host(), b.copy_to_host()]

    assert_same_under_both(tmp_path, run)


LEAVING = """
__global__ void leaving(const int *a, int *out, unsigned *sum) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = 0;
    for (int k = 0; k < 40; ++k) {
        if (a[i] == k) return;
        if (k % 3 == a[i] % 3) { if (k % 2) n += k; else { n -= a[i]; continue; } }
        if (n > 100) break;
        n += __popc(k * a[i]) + (n / (k - 7 ? k - 7 : 1)) % 5;
    }
    atomicAdd(sum, n);
    out[i] = atomicMax(out + i % 7, n) + (n >= 0 ? min(n, 17) : max(n, -17));
}
"""


def test_lanes_that_leave_by_turns_leave_the_same_trace(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[Any]:
        values = np.random.default_rng(3).integers(0, 60, 640).astype(np.int32)
        out, total = gpu.device_array(640, np.int32), gpu.device_array(1, np.uint32)
        kernel = gpu.compile(LEAVING).get_function("leaving")
        kernel[10, 64](gpu.to_device(values), out, total)
        return [out.copy_to_host(), total.copy_to_host()]

    assert_same_under_both(tmp_path, run)


CROSSING = """
__global__ void crossing(const int *start, const int *column, const float *x, float *y, int rows,
                         int *counts) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    float sum = 0;
    for (int k = start[row] + lane; k < start[row + 1]; k += 32) sum += x[column[k]];
    for (int o = 16; o; o /= 2) sum += __shfl_down_sync(~0u, sum, o);
    if (lane == 0) y[row] = sum;
    unsigned large = __ballot_sync(~0u, sum > 3.0f);
    if (__any_sync(~0u, sum > 5)) atomicAdd(counts, __popc(large) & __activemask());
    if (lane < 11) {
        int v = lane * 3;
        v += __shfl_xor_sync(0x7ff, v, lane);
        if (__all_sync(0x7ff, v > 2)) v = 7;
        atomicAdd(counts + 1, v + __shfl_up_sync(0x7ff, v, 3));
    }
}
"""


def test_lanes_that_talk_to_one_another_leave_the_same_trace(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[Any]:
        random = np.random.default_rng(1)
        lengths = random.integers(0, 90, 500)
        start = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        column = random.integers(0, 500, start[-1]).astype(np.int32)
        given = [gpu.to_device(a) for a in (start, column, np.ones(500, np.float32))]
        sums, counts = gpu.device_array(500, np.float32), gpu.device_array(2, np.int32)
        kernel = gpu.compile(CROSSING).get_function("crossing")
        kernel[127, 128](*given, sums, 500, counts)
        np.testing.assert_array_equal(sums.copy_to_host(), lengths)  # sums of ones
        return [sums.copy_to_host(), counts.copy_to_host()]

    assert_same_under_both(tmp_path, run)


WAITS = """
__global__ void meet(int *out, int n) {
    __shared__ int s[128];
    for (int k = 0; k < (blockIdx.x + 1) * 2; ++k) {
        s[threadIdx.x] = k + threadIdx.x;
        __syncthreads();
        if (threadIdx.x / 32 == k % 4) out[blockIdx.x] += s[127 - threadIdx.x];
        __syncthreads();
    }
}
"""


def test_blocks_that_meet_at_different_times_leave_the_same_trace(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[Any]:
        out = gpu.device_array(8, np.int32)
        gpu.compile(WAITS).get_function("meet")[8, 128](out, 8)
        return [out.copy_to_host()]

    assert_same_under_both(tmp_path, run)


FAULTS = """
__global__ void bad(const int *a, int *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 3) b[i] = a[i == 700 ? i + n : i];
}
__global__ void odd(int *a) {
    int i = threadIdx.x;
    *(int *)((char *)a + 4 * i + (i == 37)) = i;
}
__global__ void endless(volatile int *a, int n) { while (n < 100) { n = n / 2; } *a = n; }
__global__ void left_by_nobody(int *a, int n) { for (;;) { a[threadIdx.x] += n; } }
"""


def told(folder: Path, run: Any, **options: Any) -> list[str]:
    """What the fault of a run says under each engine."""
    words = []
    for engine in ("array", "compiled"):
        session = cutrace.Session(folder / "fault.cutrace", engine=engine, **options)
        with pytest.raises(KernelFault) as caught, session as gpu:
            run(gpu)
        words.append(str(caught.value))
    return words


@pytest.mark.parametrize(
    ("kernel", "says"), [("bad", "reads 4 bytes outside"), ("odd", "4 bytes misaligned")]
)
def test_a_fault_is_told_in_the_same_words(kernel: str, says: str, tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> None:
        a, b = (gpu.device_array(1024, np.int32, name) for name in "ab")
        arguments = (a, b, 5000) if kernel == "bad" else (a,)
        gpu.compile(FAULTS).get_function(kernel)[8, 128](*arguments)

    first, second = told(tmp_path, run)
    assert first == second
    assert says in first


def test_a_fault_of_one_of_two_warps_is_told_in_the_same_words(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> None:
        a = gpu.device_array(128, np.int32, "a")
        gpu.compile(FAULTS).get_function("odd")[1, 64](a)  # lane 5 of the second warp

    first, second = told(tmp_path, run)
    assert first == second
    assert "thread (37, 0, 0)" in first


def test_a_loop_without_end_is_told_in_the_same_words(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> None:
        a = gpu.device_array(1, np.int32)
        gpu.compile(FAULTS).get_function("endless")[1, 64](a, 5)

    first, second = told(tmp_path, run, max_instructions=1000)
    assert first == second
    assert "does not end" in first


def test_a_loop_that_nothing_leaves_is_told_in_the_same_words(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> None:
        a = gpu.device_array(64, np.int32)
        gpu.compile(FAULTS).get_function("left_by_nobody")[1, 64](a, 5)

    first, second = told(tmp_path, run)
    assert first == second
    assert "nothing leaves the loop" in first


def test_what_is_not_compiled_is_refused_if_asked_for(tmp_path: Path) -> None:
    says = "the compiled engine does not look for bytes that nobody wrote"
    session = cutrace.Session(tmp_path / "x", engine="compiled", check_uninitialized=True)
    with pytest.raises(cutrace.CutraceError, match=says), session as gpu:
        gpu.compile(FAULTS).get_function("odd")[1, 1](gpu.device_array(1, np.int32))


def test_an_engine_that_does_not_exist_is_refused() -> None:
    with pytest.raises(cutrace.CutraceError, match="no engine `quick`, expected one of auto"):
        cutrace.Session(engine="quick")


CHOICES = """
__global__ void same(int *a, int n) { for (int k = 0; k < n; ++k) a[threadIdx.x] += k; }
__global__ void skew(int *a, int n) { for (int k = 0; k < a[threadIdx.x]; ++k) a[k] += n; }
__global__ void once(int *a, int n) { if (a[threadIdx.x]) a[threadIdx.x] = n; }
"""


@pytest.mark.parametrize(
    ("kernel", "blocks", "compiled"),
    [
        *(("same", 16, True), ("skew", 16, True), ("skew", 15, False)),
        *(("once", 1024, True), ("once", 1023, False)),
    ],
)
def test_large_launches_are_compiled_and_those_of_loops_sooner(
    kernel: str, blocks: int, compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    compile_ = compiled_kernel.compile_kernel

    def note(*given: Any) -> Any:
        made.append(given)
        return compile_(*given)

    monkeypatch.setattr(compiled_kernel, "compile_kernel", note)
    with cutrace.Session(tmp_path / "choice.cutrace") as gpu:
        a = gpu.device_array(256, np.int32)
        gpu.compile(CHOICES).get_function(kernel)[blocks, 256](a, 3)
    assert bool(made) == compiled


HALVES = """
#define TEST(bit, how) { int holds; \\
    asm("{.reg .pred p; setp." how " p, %1, %2; selp.s32 %0, 1, 0, p;}" \\
        : "=r"(holds) : "h"(a), "h"(b)); found |= holds << bit; }
__global__ void halves(int *out, const unsigned short *in)
{
    int found = 0, i = threadIdx.x;
    unsigned short a = in[i], b = in[i + 8];
    TEST(0, "lt.f16") TEST(1, "neu.f16") TEST(2, "eq.ftz.f16") TEST(3, "nan.bf16")
    out[i] = found;
}
"""


def test_halves_are_compared_by_the_compiled_engine(tmp_path: Path) -> None:
    one, nan, tiny, top = 0x3C00, 0x7FFF, 0x0001, 0x8000
    pairs = [(one, one), (top | one, one), (nan, one), (tiny, 0), (top, 0), (0, tiny)]
    values = np.zeros(16, dtype=np.uint16)
    values[:6], values[8:14] = np.array(pairs).T

    def run(gpu: cutrace.Session) -> list[NDArray[Any]]:
        out = gpu.device_array(8, np.int32)
        gpu.compile(HALVES, arch="compute_90").get_function("halves")[1, 8](
            out, gpu.to_device(values)
        )
        return [out.copy_to_host()]

    assert_same_under_both(tmp_path, run)
    with cutrace.Session(engine="compiled") as gpu:
        (found,) = run(gpu)
    lower, unlike, equal, none = 1, 2, 4, 8
    expected = [equal, lower | unlike, unlike | none, unlike | equal, equal, lower | unlike | equal]
    assert found[:6].tolist() == expected


def test_a_predicated_result_that_nobody_reads_needs_no_value_before(tmp_path: Path) -> None:
    ptx = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .pred %p; .reg .b32 %t, %low, %high; .reg .b64 %o, %at, %pair;
ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %at, %t, 4; add.u64 %o, %o, %at;
mov.u32 %low, 7; mul.wide.u32 %pair, %t, 3; setp.lt.u32 %p, %t, 16;
@%p mov.b64 {%low, %high}, %pair;
st.global.u32 [%o], %low; ret;
}
"""

    def run(gpu: cutrace.Session) -> list[NDArray[Any]]:
        out = gpu.device_array(32, np.uint32)
        gpu.load_ptx(ptx).get_function("k")[1, 32](out)
        assert out.copy_to_host().tolist() == [3 * n if n < 16 else 7 for n in range(32)]
        return [out.copy_to_host()]

    assert_same_under_both(tmp_path, run)


def test_predicated_logic_keeps_the_bits_of_both_operands(tmp_path: Path) -> None:
    # LLVM 22 gets the masked instruction of AVX-512 wrong that this would be.
    ptx = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 more)
{
.reg .pred %p; .reg .b32 %t, %a, %high, %c, %eight, %u, %v; .reg .b64 %o, %w, %place, %to;
ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; and.b32 %c, %t, 7; setp.gt.u32 %p, %t, 3;
mov.u32 %high, 0; mov.u32 %eight, 8; mov.u32 %a, 0; mov.u32 %u, 0; mov.u32 %v, 0;
mul.wide.u32 %w, %t, 4; add.u64 %w, %o, %w; st.global.u32 [%w+2048], %t;
@%p mul.lo.u32 %a, %t, 8;
st.global.u32 [%w+2048], %c;
@%p mov.b32 %u, %t;
@%p mov.b32 %v, %t;
st.global.u32 [%w+2048], %v;
@%p lop3.b32 %c, %a, 4294967288, %c, 226;
mul.wide.u32 %place, %c, %eight;
ld.param.u64 %w, [out]; add.s64 %place, %place, %w;
@%p mov.b64 {%a, %high}, %place;
mov.b64 %to, {%a, %high};
@%p st.global.v2.b32 [%to], {%u, %v};
ret;
}
"""

    def run(gpu: cutrace.Session) -> list[NDArray[Any]]:
        out = gpu.device_array((512, 2), np.uint32)
        gpu.load_ptx(ptx).get_function("k")[1, 32](out, out)
        return [out.copy_to_host()[:255, 0]]

    assert_same_under_both(tmp_path, run)
    with cutrace.Session(engine="compiled") as gpu:
        (left,) = run(gpu)
    wanted = {8 * n + n % 8: n for n in range(4, 32)}
    assert left.tolist() == [wanted.get(place, 0) for place in range(255)]
