"""A sample of blocks: what is run, how counters are scaled, and where they are said to lie."""

import json
from pathlib import Path

import numpy as np
import pytest
from profiles import render

import cutrace
from cutrace.analyzer.comparison.comparison import compare_profiles, sum_launches
from cutrace.analyzer.counting import interval
from cutrace.analyzer.counting.interval import Interval
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profile import analyze
from cutrace.analyzer.report.view import View
from cutrace.base.errors import CutraceError
from cutrace.models.replay.schedule.place import divide_sample
from cutrace.tracer.session.function import ConfiguredFunction
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import Sample
from cutrace.traces.verify import verify

ROWS = """
__global__ void rows(int *out, const int *begin, int n)
{
    int row = blockIdx.x;
    for (int i = begin[row] + threadIdx.x; i < begin[row + 1]; i += 32)
        out[i] = i;
}
"""
ADD = """
__global__ void add(int *out, const int *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] + 1;
}
"""
TICKET = """
__global__ void ticket(int *out, int *next)
{
    __shared__ int number;
    if (threadIdx.x == 0)
        number = atomicAdd(next, 1);
    __syncthreads();
    out[number * 32 + threadIdx.x] = number;
}
"""


def sample_rows(path: Path, loops: np.ndarray, **options: object) -> LaunchProfile:
    """Blocks of a warp, of which block i stores `loops[i]` times 32 ints, on an H200."""
    begin = 32 * np.concatenate([[0], np.cumsum(loops)]).astype(np.int32)
    with cutrace.Session(path, **options) as gpu:  # type: ignore[arg-type]
        out, where = gpu.device_array(int(begin[-1]), np.int32), gpu.to_device(begin)
        gpu.compile(ROWS).get_function("rows")[len(loops), 32](out, where, len(loops))
    assert verify(read_trace(path)) == []
    (launch,) = analyze(path, device="h200").launches
    return launch


def sample_add(path: Path, n: int = 100_000, **options: object) -> LaunchProfile:
    """Add 1 to `n` ints in blocks of 128 threads, the last perhaps not full."""
    with cutrace.Session(path, **options) as gpu:  # type: ignore[arg-type]
        out = gpu.device_array(n, np.int32, name="out")
        source = gpu.to_device(np.arange(n, dtype=np.int32), name="in")
        gpu.compile(ADD).get_function("add")[-(-n // 128), 128](out, source, n)
        computed = out.copy_to_host()
    (launch,) = analyze(path, device="h200").launches
    run = np.concatenate([np.arange(128) + 128 * b for b in launch.launch.kept.sample.blocks])
    run = run[run < n]
    np.testing.assert_array_equal(computed[run], run + 1)
    assert np.count_nonzero(computed) == len(run)  # no other block was run
    return launch


def test_like_blocks_are_scaled_up_exactly_with_the_odd_one_at_the_end(tmp_path: Path) -> None:
    launch = sample_add(tmp_path / "a.cutrace", sample_blocks="1%")
    # 782 blocks, the last with 32 of its 128 threads; 1 % and the two ends
    assert len(launch.launch.kept.sample.blocks) == 8 + 2
    assert launch.counters["global_store_requests"] == 100_000 // 32
    assert launch.counters["global_store_bytes_requested"] == 400_000
    assert launch.intervals["global_store_bytes_requested"] == Interval(400_000, 400_000)
    assert launch.counters["threads_launched"] == 782 * 128
    assert launch.intervals["threads_launched"] is None  # known without a sample


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a.cutrace", "b.cutrace", "c.cutrace")]
    for folder, seed in zip(folders, (4, 4, 5), strict=True):
        sample_add(folder, 20_000, sample_blocks=5, sample_seed=seed)
    first, same, other = (
        {str(p.relative_to(f)): p.read_bytes() for p in f.rglob("*") if p.is_file()}
        for f in folders
    )
    assert first == same
    assert first["0/accesses.arrow"] != other["0/accesses.arrow"]


def test_estimates_are_sums_of_weighted_blocks(tmp_path: Path) -> None:
    loops = np.arange(1, 101) % 7 + 1
    launch = sample_rows(tmp_path / "a.cutrace", loops, sample_blocks=10)
    sample = launch.launch.kept.sample
    expected = sum(w * loops[block] for block, w in zip(sample.blocks, sample.weights, strict=True))
    assert launch.counters["global_store_requests"] == expected
    assert launch.lines["global_store_requests"].sum() == expected
    low, high = launch.intervals["global_store_requests"] or (0, 0)
    assert low < expected < high


def test_the_interval_is_students_with_an_allowance_for_what_was_not_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops = np.arange(1, 103) % 5 + 1
    launch = sample_rows(tmp_path / "a.cutrace", loops, sample_blocks=4)
    sample = launch.launch.kept.sample
    inside = [b for b in sample.blocks if b not in sample.ends]
    counts = loops[inside]
    assert len({*counts.tolist()}) > 1
    ends = int(loops[0] + loops[101])
    value = ends + 25 * int(counts.sum())  # 100 blocks inside, 25 for each of the 4
    each = 100 * counts  # what each alone would make of the inside
    unseen = 1 - 4 / 100
    half = 3.18244631 * each.std(ddof=1) * np.sqrt(unseen / 4)  # Student, 3 degrees of freedom
    above = interval.TAIL * unseen * (each.max() - np.median(each)) / 4
    below = interval.TAIL * unseen * (np.median(each) - each.min()) / 4
    found = launch.intervals["global_store_requests"]
    assert found == Interval(
        max(int(np.ceil(value - half - below)), 0), int(np.floor(value + half + above))
    )


def test_intervals_of_skewed_rows_cover_the_truth(tmp_path: Path) -> None:
    """Of 20 samples at most 3 may miss: with 95 of 100 expected, more would come once in 60."""
    loops = np.minimum(300, np.random.default_rng(3).pareto(1.3, 400) + 1).astype(np.int64)
    inside = 0
    for seed in range(20):
        launch = sample_rows(tmp_path / "a.cutrace", loops, sample_blocks=12, sample_seed=seed)
        low, high = launch.intervals["global_store_requests"] or (0, 0)
        inside += low <= loops.sum() <= high
    assert inside >= 17


def test_blocks_that_read_a_counter_are_all_run_and_some_traced(tmp_path: Path) -> None:
    with cutrace.Session(tmp_path / "a.cutrace", sample_blocks=4) as gpu:
        out = gpu.device_array(64 * 32, np.int32)
        count = gpu.to_device(np.zeros(1, np.int32))
        gpu.compile(TICKET).get_function("ticket")[64, 32](out, count)
        assert count.copy_to_host()[0] == 64
    (launch,) = analyze(tmp_path / "a.cutrace", device="h200").launches
    kept = launch.launch.kept
    assert kept.sample.all_ran == (
        "source.cu:6: `atom.global.add.u32` reads what other blocks have added to"
    )
    assert len(kept.sample.blocks) == 4 + 2
    assert launch.counters["global_store_requests"] == 64
    assert any("all blocks were run" in remark for remark in launch.remarks)


def test_a_reduction_nobody_reads_leaves_blocks_independent(tmp_path: Path) -> None:
    source = "__global__ void count(int *n) { atomicAdd(n, 1); }\n"
    with cutrace.Session(tmp_path / "a.cutrace", sample_blocks=4) as gpu:
        count = gpu.to_device(np.zeros(1, np.int32))
        gpu.compile(source).get_function("count")[64, 32](count)
        assert count.copy_to_host()[0] == (4 + 2) * 32
    assert read_trace(tmp_path / "a.cutrace").launches[0].launch.kept.sample.all_ran == ""


def test_a_launch_beyond_the_limit_may_be_sampled(tmp_path: Path) -> None:
    with pytest.raises(CutraceError, match=r"25600 threads, over the limit of 2000: .*--sample"):
        sample_add(tmp_path / "a.cutrace", 25_600, max_threads=2000)
    launch = sample_add(tmp_path / "a.cutrace", 25_600, max_threads=2000, sample_blocks=4)
    assert launch.counters["global_load_requests"] == 25_600 // 32


def test_every_format_shows_the_interval(tmp_path: Path) -> None:
    loops = np.arange(1, 101) % 7 + 1
    sample_rows(tmp_path / "a.cutrace", loops, sample_blocks=10)
    profile = analyze(tmp_path / "a.cutrace", device="h200")
    value = profile.launches[0].counters["global_store_requests"]
    low, high = profile.launches[0].intervals["global_store_requests"] or (0, 0)
    shown = type(profile)(
        profile.launches, profile.manifest, View(counters=("global_store_requests",))
    )
    assert f"global_store_requests  {value} [{low}, {high}]" in render(shown, "table")
    assert f"| {value} [{low}, {high}] |" in render(shown, "md")
    header, row = render(shown, "csv").splitlines()
    assert header.endswith(",value,low,high")
    assert row.endswith(f",{value},{low},{high}")
    (counter,) = json.loads(render(shown, "json"))["launches"][0]["counters"]
    assert counter["low"] == {"h200": low}
    assert counter["high"] == {"h200": high}


def test_every_line_has_an_interval(tmp_path: Path) -> None:
    loops = np.arange(1, 101) % 7 + 1
    launch = sample_rows(tmp_path / "a.cutrace", loops, sample_blocks=10)
    low, high = launch.interval_tables("line") or (None, None)
    assert low is not None
    assert high is not None
    assert low.columns == launch.lines.columns
    stores = launch.lines["global_store_requests"].to_list()
    ends = zip(
        low["global_store_requests"].to_list(),
        stores,
        high["global_store_requests"].to_list(),
        strict=True,
    )
    assert all(a <= value <= b for a, value, b in ends)


def test_a_whole_trace_has_no_intervals(tmp_path: Path) -> None:
    with cutrace.Session(tmp_path / "a.cutrace") as gpu:
        gpu.compile("__global__ void k(int *n) { *n = 1; }\n").get_function("k")[4, 32](
            gpu.device_array(1, np.int32)
        )
    profile = analyze(tmp_path / "a.cutrace", device="h200")
    assert profile.launches[0].intervals == {}
    assert profile.launches[0].interval_tables("line") is None
    assert render(profile, "csv").splitlines()[0].endswith(",value")


def test_groups_are_spread_over_the_grid_and_ends_are_by_themselves() -> None:
    sample = Sample(tuple(range(0, 500, 10)), (10,) * 50, ends=(0, 490))
    divided = divide_sample(sample)
    assert divided is not None
    assert divided.group[[0, 49]].tolist() == [0, 0]
    assert np.bincount(divided.group)[1:].tolist() == [3] * 8 + [2] * 12  # 48 in 20 groups


def test_a_sample_compared_with_the_whole_says_that_it_is_one(tmp_path: Path) -> None:
    loops = np.arange(1, 101) % 7 + 1
    sample_rows(tmp_path / "whole.cutrace", loops)
    sample_rows(tmp_path / "part.cutrace", loops, sample_blocks=10)
    profiles = {
        name: analyze(tmp_path / f"{name}.cutrace", device="h200") for name in ("whole", "part")
    }
    comparison = compare_profiles(profiles, counters=("global_store_requests", "l2_reads"))
    assert any(note.startswith("part: estimated from 12 of 100") for note in comparison.notes)
    rows = {row.name: row.cells for table in comparison.tables for row in table.rows}
    assert rows["global_store_requests"][0].value == loops.sum()
    assert rows["l2_reads"][0].value is not None
    assert rows["l2_reads"][1].value is None


def test_what_one_launch_leaves_out_is_unknown_of_the_sum(tmp_path: Path) -> None:
    source = "__global__ void k(int *a) { a[blockIdx.x * 32 + threadIdx.x] = 1; }\n"
    with cutrace.Session(tmp_path / "a.cutrace", only={"launches": "0"}) as gpu:
        kernel = gpu.compile(source).get_function("k")
        for grid in (4, 8):
            kernel[grid, 32](gpu.device_array(32 * grid, np.int32))
    total = sum_launches(analyze(tmp_path / "a.cutrace", device="h200").launches)
    assert total.counters["global_store_requests"] is None
    assert total.counters["blocks_launched"] == 12


def test_a_launch_that_reads_what_a_sample_wrote_says_so(tmp_path: Path) -> None:
    n = 100 * 32
    with cutrace.Session(tmp_path / "a.cutrace", sample_blocks=4) as gpu:
        kernel = gpu.compile(ADD).get_function("add")
        a, b, c = (gpu.device_array(n, np.int32, name=name) for name in "abc")
        kernel[100, 32](b, a, n)
        kernel[100, 32](c, b, n)  # reads what 6 of 100 blocks wrote
        b.copy_to_device(np.arange(n, dtype=np.int32))
        c.fill(0)
        kernel[100, 32](c, b, n)
    launches = read_trace(tmp_path / "a.cutrace").launches
    assert [x.launch.partly_written for x in launches] == [(), ("b",), ()]
    profile = analyze(tmp_path / "a.cutrace", device="h200")
    said = [any("only a sample of blocks wrote" in r for r in p.remarks) for p in profile.launches]
    assert said == [False, True, False]


def add_within(path: Path, blocks: int, within: str, **options: object) -> np.ndarray:
    """Add 1 to each int of an array in place, 64 to a block."""
    source = "__global__ void k(int *a) { a[blockIdx.x * blockDim.x + threadIdx.x] += 1; }"
    with cutrace.Session(path, within=within, **options) as gpu:  # type: ignore[arg-type]
        array = gpu.to_device(np.zeros(64 * blocks, np.int32), "a")
        gpu.compile(source).get_function("k")[blocks, 64](array)
        return array.copy_to_host()


@pytest.mark.parametrize(("within", "count"), [("1s", 100), ("0.25", 25), ("3 s", 300)])
def test_as_many_blocks_are_drawn_as_run_within_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, within: str, count: int
) -> None:
    monkeypatch.setattr(ConfiguredFunction, "time_blocks", lambda *_: 0.01)
    added = add_within(tmp_path / "t.cutrace", 1000, within)
    sample = read_trace(tmp_path / "t.cutrace").launches[0].launch.kept.sample
    assert abs(len(sample.blocks) - count) <= 2  # and the ends of the grid
    assert sum(sample.weights) == 1000
    assert np.flatnonzero(added[::64]).tolist() == list(sample.blocks)


def test_a_launch_that_ends_within_the_time_is_whole(tmp_path: Path) -> None:
    added = add_within(tmp_path / "t.cutrace", 200, "1000s")
    assert (added == 1).all()  # the blocks whose time was taken have left nothing
    assert not read_trace(tmp_path / "t.cutrace").launches[0].launch.kept.sample.blocks


def test_a_launch_of_few_blocks_is_whole(tmp_path: Path) -> None:
    assert (add_within(tmp_path / "t.cutrace", 3, "1s") == 1).all()


@pytest.mark.parametrize("within", ["0", "soon", "-1s", "5m"])
def test_a_time_that_is_none_is_refused(tmp_path: Path, within: str) -> None:
    with pytest.raises(CutraceError, match="expected seconds"):
        add_within(tmp_path / "t.cutrace", 3, within)


def test_a_sample_has_one_size(tmp_path: Path) -> None:
    with pytest.raises(CutraceError, match="give one"):
        add_within(tmp_path / "t.cutrace", 3, "5s", sample_blocks="1%")
