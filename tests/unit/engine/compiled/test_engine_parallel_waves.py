"""Blocks of a launch in several threads: the same bytes as in one, or one thread and why."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import files_of
from numpy.typing import NDArray

import cutrace
from cutrace.cli import run
from cutrace.errors import CutraceError, KernelFault
from cutrace.tracer.engine import run as engine
from cutrace.tracer.engine.compiled import compiled_kernel, machine_rows
from cutrace.tracer.engine.parallel import held_rows, parallel_waves
from cutrace.tracer.engine.rows import pattern

Run = Callable[[cutrace.Session], list[NDArray[Any]]]
Said = pytest.CaptureFixture[str]

SOURCE = """
__global__ void scale(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = 2 * a[i] + 1;
}
__global__ void transpose(int *out, const int *in, int n) {
    __shared__ int tile[8][9];
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    out[(blockIdx.x * 8 + threadIdx.y) * n + blockIdx.y * 8 + threadIdx.x] =
        tile[threadIdx.x][threadIdx.y];
}
__global__ void gather(int *out, const int *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (unsigned k = 0, x = 77u * i + 5; k < i % 9u; ++k) {
        x = x * 1664525u + 1013904223u;
        sum += in[x % n];
    }
    out[i] = sum;
}
__global__ void bytes(unsigned char *out, const unsigned short *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i] >> 8;
}
__global__ void chain(int *a, int from) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, before = i - (int)blockDim.x;
    a[i] = blockIdx.x >= from && before >= 0 ? a[before] + 1 : i;
}
__global__ void last(int *a, int *b) {
    a[threadIdx.x] = blockIdx.x;
    b[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
__global__ void over(int *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    a[i] = n;
}
__global__ void sum(float *a) { atomicAdd(a, 1.0f); }
__global__ void ticket(int *a, int *b) {
    a[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(b, 1);
}
__global__ void tally(int *a, const int *in, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 0; r < rounds; ++r) atomicAdd(a + (in[i] + r) % 3, 1);
}
__global__ void large(unsigned long long *a) { atomicAdd(a, 1ull << 40); }
__global__ void tops(int *a, const int *in) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicMax(a + i % 2, in[i]);
}
__global__ void peek(int *a, int *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(a, 1);
    b[i] = blockIdx.x % 2 ? a[1] : a[0];
}
__global__ void swap(int *a) { atomicExch(a, (int)blockIdx.x); }
__global__ void mixed(int *a) { atomicAdd(a, 1); atomicMax(a, (int)threadIdx.x); }
__global__ void fence(int *a) {
    a[blockIdx.x * blockDim.x + threadIdx.x] = 1;
    __threadfence();
}
"""
N = 1024


@pytest.fixture(autouse=True)
def small_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waves of 64 lanes on a machine of four cores."""
    monkeypatch.setattr(engine, "WAVE_LANES", 64)
    monkeypatch.setattr("os.cpu_count", lambda: 4)


def scale(gpu: cutrace.Session) -> list[NDArray[Any]]:
    a = gpu.to_device(np.arange(N, dtype=np.int32))
    gpu.compile(SOURCE).get_function("scale")[N // 64, 64](a, N - 7)
    np.testing.assert_array_equal(a.copy_to_host()[: N - 7], 2 * np.arange(N - 7) + 1)
    return [a.copy_to_host()]


def transpose(gpu: cutrace.Session) -> list[NDArray[Any]]:
    given = np.arange(N, dtype=np.int32).reshape(32, 32)
    out = gpu.device_array((32, 32), np.int32)
    gpu.compile(SOURCE).get_function("transpose")[(4, 4), (8, 8)](out, gpu.to_device(given), 32)
    np.testing.assert_array_equal(out.copy_to_host(), given.T)
    return [out.copy_to_host()]


def gather(gpu: cutrace.Session) -> list[NDArray[Any]]:
    out = gpu.device_array(N, np.int32)
    given = gpu.to_device(np.arange(N, dtype=np.int32))
    kernel = gpu.compile(SOURCE).get_function("gather")
    for _ in range(2):  # the second launch finds what the first left behind
        kernel[N // 32, 32](out, given, N)
    return [out.copy_to_host()]


def bytes_(gpu: cutrace.Session) -> list[NDArray[Any]]:
    out = gpu.device_array(N, np.uint8)
    given = gpu.to_device((np.arange(N) * 37).astype(np.uint16))
    gpu.compile(SOURCE).get_function("bytes")[N // 32, 32](out, given)
    return [out.copy_to_host()]


def record(
    folder: Path, jobs: int, launch: Run, **options: Any
) -> tuple[dict[str, bytes], list[NDArray[Any]]]:
    """The files of a trace, and the arrays after the launch."""
    trace = folder / f"{jobs}.cutrace"
    with cutrace.Session(trace, engine="compiled", jobs=jobs, **options) as gpu:
        found = launch(gpu)
    return files_of(trace), found


def assert_same(folder: Path, launch: Run, jobs: int, **options: Any) -> None:
    """Record in one thread and in several, and compare files and arrays."""
    one, ours = record(folder, 1, launch, **options)
    several, theirs = record(folder, jobs, launch, **options)
    assert one.keys() == several.keys()
    assert [name for name in one if one[name] != several[name]] == []
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize("launch", [scale, transpose, gather, bytes_])
def test_the_number_of_threads_changes_nothing(
    launch: Run, jobs: int, tmp_path: Path, capsys: Said
) -> None:
    assert_same(tmp_path, launch, jobs)
    assert capsys.readouterr().err == ""  # nothing kept them from running side by side


def test_a_part_of_a_launch_is_recorded_alike(tmp_path: Path, capsys: Said) -> None:
    assert_same(tmp_path, gather, 2, sample_blocks=9, sample_seed=4)
    assert_same(tmp_path, transpose, 2, only={"blocks": "3-9", "spaces": "shared"}, control=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_trace_that_grows_too_large_ends_in_any_thread(tmp_path: Path, jobs: int) -> None:
    with pytest.raises(CutraceError, match="4000 bytes"):
        record(tmp_path, jobs, gather, max_trace_size=4000)
    assert list(tmp_path.iterdir()) == []


def test_sums_of_integers_come_out_whole(tmp_path: Path, capsys: Said) -> None:
    given = np.random.default_rng(1).integers(0, 999, N).astype(np.int32)
    rounds = 9000

    def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
        sums, most = gpu.device_array(3, np.int32), gpu.device_array(1, np.uint64)
        tops = gpu.to_device(np.full(2, -1, np.int32))
        module, values = gpu.compile(SOURCE), gpu.to_device(given)
        module.get_function("tops")[N // 64, 64](tops, values)
        module.get_function("tally")[N // 64, 64](sums, values, rounds)
        module.get_function("large")[N // 64, 64](most)
        return [array.copy_to_host() for array in (sums, most, tops)]

    assert_same(tmp_path, launch, 2)
    _, (sums, most, tops) = record(tmp_path, 3, launch)
    assert sums.tolist() == [N * rounds // 3] * 3
    assert most.tolist() == [N << 40]
    assert tops.tolist() == [given[::2].max(), given[1::2].max()]
    assert capsys.readouterr().err == ""


def test_a_sum_that_another_block_reads_is_read_in_one_thread(tmp_path: Path, capsys: Said) -> None:
    def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
        a, b = gpu.device_array(2, np.int32), gpu.device_array(N, np.int32)
        gpu.compile(SOURCE).get_function("peek")[N // 64, 64](a, b)
        return [a.copy_to_host(), b.copy_to_host()]

    assert_same(tmp_path, launch, 2)
    assert parallel_waves.CLASH in capsys.readouterr().err


def test_batches_epochs_and_rounds_end_at_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    for module in (compiled_kernel, machine_rows):
        monkeypatch.setattr(module, "ROWS", 5)
    monkeypatch.setattr(compiled_kernel, "RUNS", 20)
    monkeypatch.setattr(pattern, "EPOCH", 30)
    monkeypatch.setattr(parallel_waves, "ROUND_BYTES", 1)
    assert_same(tmp_path, gather, 3)
    assert capsys.readouterr().err == ""


def run_chain(first: int) -> Run:
    """Each block from the `first` on adds 1 to what the one before it wrote."""

    def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
        a = gpu.to_device(np.full(N, -9, np.int32))
        gpu.compile(SOURCE).get_function("chain")[N // 64, 64](a, first)
        return [a.copy_to_host()]

    return launch


@pytest.mark.parametrize("first", [1, 13])
def test_blocks_that_read_what_others_wrote_run_again_in_one_thread(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setattr(parallel_waves, "ROUND_BYTES", 1)  # 13: some rounds are written by then
    assert_same(tmp_path, run_chain(first), 2)
    said = capsys.readouterr().err
    assert said == f"cutrace: kernel `chain` runs in one thread: {parallel_waves.CLASH}\n"
    start = first - 1  # block first - 1 wrote its own numbers, block b adds b - start to them
    expected = np.arange(64) + 64 * start + 15 - start
    np.testing.assert_array_equal(record(tmp_path, 2, run_chain(first))[1][0][-64:], expected)


def test_a_kernel_whose_blocks_clash_is_tried_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    tried = []
    put_aside = parallel_waves.Abreast._put_aside

    def counting(self: parallel_waves.Abreast) -> Any:
        tried.append(self)
        return put_aside(self)

    def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
        return [*run_chain(1)(gpu), *scale(gpu), *run_chain(1)(gpu)]

    monkeypatch.setattr(parallel_waves.Abreast, "_put_aside", counting)
    assert_same(tmp_path, launch, 2)
    assert len(tried) == 2  # the first chain, and the other kernel
    assert capsys.readouterr().err.count("cutrace: ") == 1


def test_the_last_of_several_blocks_to_write_a_word_has_written_it(
    tmp_path: Path, capsys: Said
) -> None:
    def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
        a, b = gpu.device_array(64, np.int32), gpu.device_array(N, np.int32)
        gpu.compile(SOURCE).get_function("last")[N // 64, 64](a, b)
        np.testing.assert_array_equal(a.copy_to_host(), np.full(64, N // 64 - 1))
        return [a.copy_to_host(), b.copy_to_host()]

    assert_same(tmp_path, launch, 2)
    assert parallel_waves.CLASH in capsys.readouterr().err


def test_a_fault_in_one_thread_reads_as_in_one_alone(tmp_path: Path, capsys: Said) -> None:
    told = []
    for jobs in (1, 2):

        def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
            a = gpu.device_array(N - 100, np.int32, name="a")
            gpu.compile(SOURCE).get_function("over")[N // 64, 64](a, 1)
            return []

        with pytest.raises(KernelFault, match=r"`over` writes 4 bytes outside") as fault:
            record(tmp_path, jobs, launch)
        told.append(str(fault.value))
    assert told[0] == told[1]
    assert capsys.readouterr().err == ""
    assert list(tmp_path.iterdir()) == []


def test_rows_that_are_too_many_to_hold_are_written_by_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setattr(parallel_waves, "HELD_BYTES", 1000)
    assert_same(tmp_path, scale, 2)
    assert "the rows of a wave of its blocks take more than 500 bytes" in capsys.readouterr().err


def test_what_goes_wrong_in_a_thread_is_named_and_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    def end(self: held_rows.HeldRows) -> None:
        raise SystemError("odd")

    monkeypatch.setattr(held_rows.HeldRows, "end", end)
    assert_same(tmp_path, scale, 2)
    assert "runs in one thread: SystemError in one of several: odd" in capsys.readouterr().err


def lanes(kernel: str, *sizes: int, dtype: Any = np.int32, **options: Any) -> Run:
    """Launch N lanes of a kernel over arrays of these sizes."""

    def launch(gpu: cutrace.Session) -> list[NDArray[Any]]:
        arrays = [gpu.device_array(size, dtype) for size in sizes]
        gpu.compile(SOURCE).get_function(kernel)[N // 64, 64](*arrays)
        return [array.copy_to_host() for array in arrays]

    return launch


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        (
            lanes("sum", 1, dtype=np.float32),
            "adds floats, and their sum depends on the order of blocks",
        ),
        (lanes("swap", 1), "leaves what depends on the order of blocks"),
        (lanes("mixed", 1), r"and `atom.global.add.u32` may change one word by turns"),
        (lanes("ticket", N, 1), "reads what other blocks have added to"),
        (lanes("fence", N), "orders what other blocks see"),
    ],
)
def test_a_kernel_whose_blocks_need_their_order_runs_in_one_thread(
    launch: Run, why: str, tmp_path: Path, capsys: Said
) -> None:
    assert_same(tmp_path, launch, 2)
    said = capsys.readouterr().err
    assert re.fullmatch(
        rf"cutrace: kernel `\w+` runs in one thread: source.cu:\d+: `\S+` {why}\n", said
    )


def test_a_launch_that_cannot_be_shared_out_says_why_once(tmp_path: Path, capsys: Said) -> None:
    whole = "cutrace: kernel `scale` runs in one thread: "
    with cutrace.Session(tmp_path / "a.cutrace", jobs=2) as gpu:
        kernel = gpu.compile(SOURCE).get_function("scale")
        a = gpu.device_array(N, np.int32)
        for _ in range(2):
            kernel[N // 64, 64](a, N)
    short = "only compiled code runs in several, and it is too short to be worth compiling"
    assert capsys.readouterr().err == f"{whole}{short}\n"
    with cutrace.Session(tmp_path / "a.cutrace", jobs=2, engine="array") as gpu:
        gpu.compile(SOURCE).get_function("scale")[N // 64, 64](gpu.device_array(N, np.int32), N)
    assert "the array engine was asked for" in capsys.readouterr().err
    with cutrace.Session(tmp_path / "a.cutrace", jobs=2, engine="compiled") as gpu:
        kernel = gpu.compile(SOURCE).get_function("scale")
        kernel[1, 64](gpu.device_array(N, np.int32), N)
        gpu.device_array(128 * N, np.int8)
        kernel[N // 64, 64](gpu.device_array(N, np.int32), N)
    # of memory, two arrays of 4 N bytes and one of 128 N, each with a gap of 256 behind it
    aside = 136 * N + 3 * 256
    assert capsys.readouterr().err.splitlines() == [
        f"{whole}all its blocks are one wave",
        f"{whole}to put {aside} bytes of memory aside would take longer than several could save",
    ]


def test_more_threads_than_cores_are_not_started_and_none_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    started = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, count: int, name: str) -> None:
            started.append(count)
            super().__init__(count, name)

    monkeypatch.setattr(parallel_waves, "ThreadPoolExecutor", Pool)
    record(tmp_path, 9, scale)
    assert started == [4]
    said = "cutrace: 9 jobs were asked for; this machine has 4 cores\n"
    assert capsys.readouterr().err == said
    with pytest.raises(CutraceError, match="jobs is 0; expected 1 or more"):
        cutrace.Session(jobs=0)


def test_record_and_analyze_take_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"// cutrace: scale<<<{N // 64}, 64>>>(a:i32[{N}]=arange, {N})\n", SOURCE]
    Path("scale.cu").write_text("".join(lines))
    traces = []
    for jobs in ("1", "2"):
        options = ["--engine", "compiled", "--jobs", jobs, "-o", f"{jobs}.cutrace"]
        assert run(["record", "scale.cu", *options]) == 0
        traces.append(files_of(Path(f"{jobs}.cutrace")))
    assert traces[0] == traces[1]
    assert capsys.readouterr().err == ""
    assert run(["record", "scale.cu", "--jobs", "0"]) == 2
    assert "jobs is 0; expected 1 or more" in capsys.readouterr().err
    assert run(["analyze", "scale.cu", "--jobs", "2", "-d", "h100"]) == 0
    assert "kernel `scale` runs in one thread: only compiled" in capsys.readouterr().err
