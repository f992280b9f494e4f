"""Thread blocks on several threads: the trace, the memory and the faults of one thread."""

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from engines import files_of
from numpy.typing import NDArray

import cutrace
from cutrace.base.cores import cores
from cutrace.base.errors import CutraceError, KernelFault
from cutrace.base.interrupt import interrupt
from cutrace.tracer.simt import parallel, run
from cutrace.tracer.simt.kernel import run_options
from cutrace.tracer.simt.kernel.launch import REDUCTION
from cutrace.tracer.simt.parallel import ExchangeMarks

GRID, BLOCK = 96, 64
LOGGED = 1700
"""Bytes of rows of a wave of small_waves, at most."""
N = GRID * BLOCK


@pytest.fixture(autouse=True)
def small_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a small launch have many waves, and compile every kernel."""
    monkeypatch.setattr(run, "WAVE_LANES", 8 * BLOCK)
    monkeypatch.setattr(run, "WAVE_STEPS", 1)
    monkeypatch.setattr(parallel, "START_SECONDS", -1)
    monkeypatch.setattr(parallel, "THREAD_SECONDS", 1e-9)
    monkeypatch.setattr("cutrace.tracer.simt.tier._is_worth_compiling", lambda code: True)


class Written:
    """The launches that ran on threads: how many waves were written, and how many there were."""

    def __init__(self) -> None:
        self.waves: list[tuple[int, int]] = []

    @property
    def all_free(self) -> bool:
        """Whether each launch ran on threads to its end."""
        return bool(self.waves) and all(written == whole for written, whole in self.waves)


@pytest.fixture
def written() -> Iterator[Written]:
    seen = Written()

    def note(code: Any, waves: Sequence[Any], *others: Any) -> int:
        parallel._EXCHANGES.clear()
        many = run_on_threads(code, waves, *others)
        seen.waves.append((many, len(waves)))
        return many

    run_on_threads = parallel.run_on_threads
    with patch.object(run, "run_on_threads", note):
        yield seen


def assert_same_for_all_jobs(folder: Path, source: str, *arrays: NDArray[Any]) -> None:
    """Record a kernel on 1, 2 and 4 threads; compare each file, and the arrays."""
    traces, results = [], []
    for jobs in (1, 2, 4):
        trace = folder / f"{jobs}.cutrace"
        with cutrace.Session(trace, jobs=jobs) as gpu:
            kernel = gpu.compile(source).get_function("k")
            ours = [gpu.to_device(values, f"a{n}") for n, values in enumerate(arrays)]
            kernel[GRID, BLOCK](*ours)
            results.append([array.copy_to_host() for array in ours])
        traces.append(files_of(trace))
    for other in (1, 2):
        for one, two in zip(results[0], results[other], strict=True):
            np.testing.assert_array_equal(one, two)
        assert traces[0].keys() == traces[other].keys()
        assert [name for name in traces[0] if traces[0][name] != traces[other][name]] == []


def run_once(trace: Path, source: str, jobs: int | None) -> None:
    """Record a kernel with two arrays of zeros."""
    with cutrace.Session(trace, jobs=jobs) as gpu:
        arrays = [gpu.to_device(np.zeros(N, np.int32), name) for name in "ab"]
        gpu.compile(source).get_function("k")[GRID, BLOCK](*arrays)


HEAD = """
extern "C" __global__ void k(int *a, int *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
"""

FREE = {
    "map": "a[i] = 3 * b[i];",
    "in place": "a[i] = a[i] * a[i] + i;",
    "gather": "a[i] = b[(i * 7919) % n] + b[(i * 104729) % n];",
    "permutation": "a[(i * 5) % n] = b[i];",
    "loops of many lengths": """
        int s = 0; for (int j = 0; j < i % 97; ++j) s += b[(i + j) % n];
        a[i] = s;""",
    "shared memory": """
        __shared__ int s[64]; s[threadIdx.x] = b[i]; __syncthreads();
        a[i] = s[63 - threadIdx.x];""",
    "shared atomics": """
        __shared__ int bins[8]; if (threadIdx.x < 8) bins[threadIdx.x] = 0; __syncthreads();
        a[i] = atomicAdd(&bins[b[i] & 7], 1);""",
    "bytes of its own": "((char *)a)[4 * i + 3] = (char)b[i]; ((char *)a)[4 * i] = 1;",
    "clock": "a[i] = (int)clock() + b[i];",
    "vote and shuffle": "a[i] = __shfl_xor_sync(~0u, b[i], 5) + __ballot_sync(~0u, b[i] & 1);",
    "sums": "atomicAdd(&a[b[i] & 63], 3); atomicMax(&a[64 + (b[i] & 7)], b[i]);",
    "sums of words of 64 bits": """
        atomicXor((unsigned long long *)a + (b[i] & 63), b[i] * 77777777777ull);
        atomicMin((unsigned *)a + n - 1 - (b[i] & 7), 9u);""",
    "warps that exit before a barrier": """
        if (threadIdx.x >= 32 && blockIdx.x % 3 == 0) return;
        __syncthreads(); a[i] = b[i] + 1;""",
    "lanes that exit": "if (i % 7 == 2) return; a[i] = b[i]; if (i % 5 == 2) return; b[i] = 3;",
    "no store": "if (b[i] == -7) a[i] = 1;",
}


@pytest.mark.parametrize("body", FREE.values(), ids=FREE)
def test_blocks_that_share_nothing_run_free(tmp_path: Path, written: Written, body: str) -> None:
    values = np.arange(N, dtype=np.int32)
    assert_same_for_all_jobs(tmp_path, f"{HEAD}{body}}}", np.zeros(N, np.int32), values)
    assert written.all_free
    assert len(written.waves) == 2


@pytest.mark.parametrize(("usable", "launches"), [(1, 0), (2, 1)])
def test_a_launch_has_the_cores_of_the_process_unless_fewer_are_asked_for(
    tmp_path: Path, written: Written, usable: int, launches: int
) -> None:
    source = f"{HEAD}{FREE['map']}}}"
    with patch.object(run_options, "cores", lambda: usable):
        run_once(tmp_path / "all.cutrace", source, jobs=None)
        assert len(written.waves) == launches
        run_once(tmp_path / "one.cutrace", source, jobs=1)
    assert len(written.waves) == launches


EXCHANGE = {
    "neighbour in the next block": "a[i] = a[(i + 64) % n] + 1;",
    "neighbour in the block before": "a[i] = a[(i + n - 64) % n] + 1;",
    "one word": "a[0] = i;",
    "a word of the last block": "if (b[0] == 0) a[i] = a[n - 1] + 1;",
    "pointer chasing": "int at = i; for (int j = 0; j < 9; ++j) at = a[at] % n; a[i] = at;",
    "returned values": "a[i] = atomicAdd(&b[0], 1);",
    "a sum that is read": "atomicAdd(&a[0], 1); b[i] = a[0];",
    "a sum of what others store": "atomicAdd(&a[(i + 64) % n], 5); a[i] = 7;",
    "float sums": "atomicAdd((float *)a, 0.1f * b[i]);",
    "exchange": "a[i] = atomicExch(&b[1], i);",
    "last block": """
        __shared__ int last; a[i] = b[i]; __threadfence(); __syncthreads();
        if (threadIdx.x == 0) last = atomicAdd(&b[0], 1);
        __syncthreads();
        if (last == gridDim.x - 1) for (int j = threadIdx.x; j < n; j += 64) a[j] += 1;""",
    "look back": """
        volatile int *flag = b;
        if (threadIdx.x == 0) {
            while (blockIdx.x && flag[blockIdx.x - 1] != (int)blockIdx.x - 1 + n);
            a[blockIdx.x] = blockIdx.x ? a[blockIdx.x - 1] + 1 : 1;
            __threadfence();
            flag[blockIdx.x] = blockIdx.x + n;
        }""",
    "barrier of the grid": """
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence(); atomicAdd(&b[n - 1], 1);
            while (atomicAdd(&b[n - 1], 0) < (int)gridDim.x + n - 1);
        }
        __syncthreads();
        a[i] = b[(i + 64) % n];""",
    "another array later": "if (blockIdx.x < 12) a[i] = 1; else b[i] = a[i - 64];",
}


@pytest.mark.parametrize("body", EXCHANGE.values(), ids=EXCHANGE)
def test_blocks_that_exchange_data_run_in_order(
    tmp_path: Path, written: Written, body: str
) -> None:
    values = np.arange(N, dtype=np.int32)
    assert_same_for_all_jobs(tmp_path, f"{HEAD}{body}}}", values[::-1].copy(), values)
    assert not any(many == whole for many, whole in written.waves)


def test_lines_of_printf_come_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = HEAD + 'if (threadIdx.x == 0) printf("%d ", (int)blockIdx.x); }'
    assert_same_for_all_jobs(tmp_path, source, *np.zeros((2, N), np.int32))
    assert capsys.readouterr().out == 3 * "".join(f"{block} " for block in range(GRID))


def test_a_kernel_that_allocates_memory_runs_in_order(tmp_path: Path) -> None:
    source = HEAD + "int *p = (int *)malloc(8); *p = i; a[i] = (int)(size_t)p + *p; free(p); }"
    assert_same_for_all_jobs(tmp_path, source, *np.zeros((2, N), np.int32))


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_the_fault_is_that_of_the_lowest_block(tmp_path: Path, jobs: int) -> None:
    source = HEAD + "if (blockIdx.x % 32 == 31) a[b[i] + (1 << 28)] = 1; a[i] = 2; }"
    with pytest.raises(KernelFault, match=r"block \(31, 0, 0\)"):
        run_once(tmp_path / "t.cutrace", source, jobs)


@pytest.mark.parametrize("jobs", [1, 2, 4])
def test_a_failed_assertion_names_the_block_of_its_wave(tmp_path: Path, jobs: int) -> None:
    """Python runs it in the midst of a chain, which has gone on to the fourth wave."""
    source = HEAD + 'if (i == 31 * 64 + 5) __assertfail("x", "f", 1, "g", 1); a[i] = b[i]; }'
    with pytest.raises(KernelFault, match=r"in thread \(5, 0, 0\) of block \(31, 0, 0\)"):
        run_once(tmp_path / "t.cutrace", source, jobs)


def test_rows_beyond_the_limit_are_made_in_order(
    tmp_path: Path, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "MOST_LOGGED", 1 << 12)
    values = np.arange(N, dtype=np.int32)
    assert_same_for_all_jobs(tmp_path, f"{HEAD}{FREE['gather']}}}", values, values)
    assert not written.all_free


def test_threads_wait_for_rows_to_be_written_before_the_limit(
    tmp_path: Path, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "AMPLE_ROWS", 1)  # chains of one wave
    monkeypatch.setattr(parallel, "AMPLE_LOGGED", 1)
    monkeypatch.setattr(parallel, "MOST_LOGGED", 4 * LOGGED)
    write = parallel.RowLog.write

    def write_late(log: parallel.RowLog, *others: Any) -> None:
        assert 0 < log.bytes <= LOGGED
        time.sleep(0.02)
        write(log, *others)

    monkeypatch.setattr(parallel.RowLog, "write", write_late)
    values = np.arange(N, dtype=np.int32)
    assert_same_for_all_jobs(tmp_path, f"{HEAD}{FREE['gather']}}}", values, values)
    assert written.all_free


@pytest.mark.parametrize(("rows", "runs"), [(8, 1 << 18), (70, 1 << 18), (1 << 17, 30), (40, 90)])
def test_full_buffers_are_written_in_the_middle_of_a_chain(
    tmp_path: Path, written: Written, monkeypatch: pytest.MonkeyPatch, rows: int, runs: int
) -> None:
    for name in ("rows.access_rows.ROWS", "codegen.compiled_blocks.ROWS"):
        monkeypatch.setattr(f"cutrace.tracer.simt.{name}", rows)
    monkeypatch.setattr("cutrace.tracer.simt.codegen.compiled_blocks.FEW_ROWS", rows)
    monkeypatch.setattr("cutrace.tracer.simt.wave.RUNS", runs)
    values = np.arange(N, dtype=np.int32)
    source = f"{HEAD}{FREE['loops of many lengths']}}}"
    assert_same_for_all_jobs(tmp_path, source, np.zeros(N, np.int32), values)
    assert written.all_free


def test_rows_of_later_waves_have_the_room_that_an_access_has_made(
    tmp_path: Path, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first generic access of each thread makes its buffers larger, in the midst of a chain."""
    monkeypatch.setattr("cutrace.tracer.simt.codegen.compiled_blocks.FEW_ROWS", 1 << 17)
    body = "int own[4]; int *p = i % 3 ? own + (i & 3) : a + i; *p = b[i]; b[i] = *p;"
    assert_same_for_all_jobs(tmp_path, f"{HEAD}{body}}}", *np.zeros((2, N), np.int32))
    assert written.all_free


@pytest.mark.parametrize("epoch", [40, 200])
def test_patterns_that_a_launch_forgets_get_the_same_names(
    tmp_path: Path, written: Written, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    monkeypatch.setattr("cutrace.tracer.simt.rows.pattern.EPOCH", epoch)
    monkeypatch.setattr("cutrace.tracer.simt.rows.access_rows.ROWS", 8)
    body = "int s = 0; for (int j = 0; j < 6; ++j) s += b[(i * (i % 7 + j)) % n]; a[i] = s;"
    values = np.arange(N, dtype=np.int32)
    assert_same_for_all_jobs(tmp_path, f"{HEAD}{body}}}", np.zeros(N, np.int32), values)
    assert written.all_free


def test_an_interrupt_ends_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(parallel.RowLog, "write", interrupt)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run_once(tmp_path / "t.cutrace", f"{HEAD}{FREE['map']}}}", jobs=4)
    assert threading.active_count() <= before + 1  # one of them writes files


def test_a_chain_looks_for_ctrl_c_as_often_as_one_wave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[None] = []
    monkeypatch.setattr("cutrace.tracer.simt.wave.check_interrupt", lambda: looks.append(None))
    monkeypatch.setattr("cutrace.tracer.simt.wave.RUNS", 400)
    source = HEAD + "for (int j = 0; j < 24; ++j) { if (b[i] == j) a[i] = j; __syncthreads(); } }"
    run_once(tmp_path / "t.cutrace", source, jobs=1)
    # 12 waves of 16 warps, whose 24 barriers end as many blocks: 400 blocks until the next look
    assert len(looks) >= 12 * 16 * 24 // 400


@pytest.mark.parametrize("jobs", [1, 4])
def test_an_alarm_ends_a_launch_that_lasts(tmp_path: Path, jobs: int) -> None:
    """Like Ctrl-C: a handler leaves its exception, which the launch raises."""

    def end(*_: object) -> None:
        interrupt(TimeoutError())

    source = HEAD + "for (int j = 0; j < 1 << 30; ++j) a[i] += b[i] * j ^ a[i]; }"
    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, 3)
        with pytest.raises(TimeoutError):
            run_once(tmp_path / "t.cutrace", source, jobs)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("jobs", [0, 1 << 20])
def test_a_number_of_threads_out_of_range_is_refused(tmp_path: Path, jobs: int) -> None:
    with pytest.raises(CutraceError, match="jobs"):
        cutrace.Session(tmp_path / "t.cutrace", jobs=jobs)


@pytest.mark.parametrize(
    ("seconds", "saved", "threads"),
    [
        (0.05, 0, 1),  # too short
        (0.138, 60_000_000, 1),  # 0.1 s for the copy
        (0.138, 6_000_000, 3),  # the root of 0.138 / 0.012 is 3.4
        (0.5, 0, 6),
        (4, 0, 16),  # 18, of which there are 16
    ],
)
def test_threads_are_started_as_far_as_they_save_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, saved: int, threads: int
) -> None:
    monkeypatch.undo()
    assert parallel.threads_for(seconds, saved, 16) == threads


# What counts as an exchange


def marked(*accesses: tuple[int, int]) -> ExchangeMarks:
    """The marks of a wave with rows of 32 lanes: the bytes moved per lane, and the lowest address;
    of two arrays at 1024 to 3072 and 4096 to 8192.
    """
    moves = np.array([moved for moved, _ in accesses], np.int32)
    marks = ExchangeMarks(moves, np.array([1024, 4096]), np.array([3072, 8192]))
    lanes = np.arange(32, dtype=np.int32) * (np.abs(moves) % REDUCTION)[:, None]
    count = len(moves)
    marks.add(
        np.full(count, ~np.uint32(0)),
        lanes.astype(np.int32).reshape(-1),
        pc=np.arange(count, dtype=np.uint32),
        space=np.full(count, 1, np.uint8),
        base=np.array([base for _, base in accesses], np.int64),
        pattern=np.arange(count, dtype=np.uint32),
    )
    return marks


@pytest.mark.parametrize(
    ("one", "two", "exchange"),
    [
        ((-4, 1024), (-4, 1152), False),  # 128 bytes each, side by side
        ((-4, 1024), (-4, 1148), True),  # one word of both
        ((-4, 1024), (4, 1148), True),
        ((4, 1024), (4, 1024), False),  # both load
        ((4, 4096), (-16, 4096), True),
        ((-16, 4096), (4, 4604), True),  # the last of 512 bytes
        ((-16, 4096), (4, 4608), False),
        ((-8, 2944), (-8, 4096), False),  # the end of one array, the start of the other
        ((-4, 0), (-4, 0), False),  # in neither
        ((-1, 1024), (-1, 1056), False),
        ((-1, 1024), (-1, 1055), True),
        ((-REDUCTION - 4, 1024), (-REDUCTION - 4, 1024), False),  # sums, in any order
        ((-REDUCTION - 4, 1024), (-4, 1024), True),
        ((-REDUCTION - 4, 1024), (4, 1148), True),
    ],
)
def test_rows_of_two_waves_exchange_data_where_one_stores(
    one: tuple[int, int], two: tuple[int, int], exchange: bool
) -> None:
    for first, second in ((one, two), (two, one)):
        whole = marked()
        assert not marked(first).join(whole)
        assert marked(second).join(whole) == exchange


def test_a_wave_may_load_what_it_stores() -> None:
    assert not marked((-4, 1024), (4, 1024)).join(marked())


# How many cores there are


@pytest.mark.parametrize(
    ("files", "most"),
    [
        ({"cpu.max": "50000 100000\n"}, 1),  # half a core
        ({"cpu.max": "100000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
    ],
)
def test_a_container_limits_the_cores(tmp_path: Path, files: dict[str, str], most: int) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cores(tmp_path) == most


@pytest.mark.parametrize(
    "files", [{}, {"cpu.max": "max 100000\n"}, {"cpu.max": "?"}, {"cpu/cpu.cfs_quota_us": "-1"}]
)
def test_without_a_limit_all_cores_count(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cores(tmp_path) == cores(tmp_path / "nothing")
