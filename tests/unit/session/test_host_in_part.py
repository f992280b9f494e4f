"""What is recorded of a program is restricted; what it computes is not."""

from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.traces.reader import LaunchTrace, Trace
from cutrace.traces.verify import verify

SOURCE = """
__global__ void copy(int *out, const int *in)
{
    __shared__ int s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    s[threadIdx.x] = in[i];
    __syncthreads();
    out[i] = s[63 - threadIdx.x];
}

__global__ void halve(int *out, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i % 3 == 0)
        out[i] = in[i] / 2;
}
"""
BLOCKS = 6
WARPS = 2


def record(path: Path, **options: object) -> Trace:
    """Launch `copy` and `halve` on 6 blocks of 64 threads, and check what they compute."""
    values = np.arange(64 * BLOCKS, dtype=np.int32)
    with cutrace.Session(path / "a.cutrace", **options) as gpu:  # type: ignore[arg-type]
        module = gpu.compile(SOURCE)
        source = gpu.to_device(values, name="in")
        out = gpu.device_array(values.size, np.int32, name="out")
        module.get_function("copy")[BLOCKS, 64](out, source)
        copied = out.copy_to_host()
        module.get_function("halve")[BLOCKS, 64](out, source)
        halved = out.copy_to_host()
    reversed_ = values.reshape(BLOCKS, 64)[:, ::-1].ravel()
    np.testing.assert_array_equal(copied, reversed_)
    np.testing.assert_array_equal(halved, np.where(values % 3, reversed_, values // 2))
    trace = cutrace.read_trace(path / "a.cutrace")
    assert verify(trace) == []
    return trace


def places(launch: LaunchTrace) -> set[tuple[int, int]]:
    """The blocks and warps that have accesses."""
    rows = launch.accesses().select(["block", "warp"]).to_pylist()
    return {(row["block"], row["warp"]) for row in rows}


def counters(path: Path, **options: object) -> dict[str, int | float | None]:
    """The counters of `copy` on an H200."""
    trace = record(path, **options)
    return dict(cutrace.analyze(trace, device="h200").launches[0].counters)


def test_a_launch_that_is_left_out_is_run_and_has_no_rows(tmp_path: Path) -> None:
    copy, halve = record(tmp_path, only={"kernels": "halve"}).launches
    assert [copy.count(name) for name in ("control", "paths", "accesses", "patterns")] == [0] * 4
    assert halve.count("control") == BLOCKS * WARPS
    again = record(tmp_path, only={"launches": "1"}).launches
    assert [launch.count("accesses") for launch in again] == [0, halve.count("accesses")]


def test_its_counters_are_empty_but_for_what_the_launch_says(tmp_path: Path) -> None:
    found = counters(tmp_path, only={"launches": 1})
    assert found["blocks_launched"] == BLOCKS
    assert found["occupancy"] is not None
    for name in ("global_load_requests", "shared_wavefronts", "instructions", "flops", "l2_reads"):
        assert found[name] is None


def test_blocks_and_warps_are_restricted(tmp_path: Path) -> None:
    copy, halve = record(tmp_path, only={"blocks": "1-2,4", "warps": "1"}).launches
    assert places(copy) == {(1, 1), (2, 1), (4, 1)} == places(halve)
    assert copy.count("control") == 3


def test_counters_of_some_blocks_count_these_alone(tmp_path: Path) -> None:
    found = counters(tmp_path, only={"blocks": "0-1"})
    assert found["global_load_requests"] == 2 * WARPS
    assert found["barriers"] == 2 * WARPS
    assert found["l2_reads"] is None  # what a cache holds follows from all blocks


def test_counters_of_the_first_profiler_are_empty_for_some_blocks(tmp_path: Path) -> None:
    record(tmp_path, only={"blocks": "1-2"})
    (copy, _) = cutrace.analyze(tmp_path / "a.cutrace", device="8800gtx").launches
    assert copy.counters["gld_coherent"] is None
    (copy, _) = cutrace.analyze(tmp_path / "a.cutrace", device="8800gtx", scope="all").launches
    assert copy.counters["gld_coherent"] is not None


def test_accesses_of_other_lines_are_left_out_and_their_counters_empty(tmp_path: Path) -> None:
    record(tmp_path, only={"lines": "source.cu:6"})
    copy, _ = cutrace.analyze(tmp_path / "a.cutrace", device="h200").launches
    lines = {row["line"]: row for row in copy.lines.iter_rows(named=True)}
    assert lines[6]["global_load_requests"] == BLOCKS * WARPS
    assert lines[6]["shared_store_requests"] == BLOCKS * WARPS
    assert lines[8]["shared_load_requests"] is None
    assert lines[8]["instructions"] > 0  # the control flow of all lines is there
    assert copy.counters["global_load_requests"] == BLOCKS * WARPS  # no other line loads
    assert copy.counters["global_store_requests"] is None  # line 8 stores


def test_accesses_to_other_spaces_are_left_out(tmp_path: Path) -> None:
    found = counters(tmp_path, only={"spaces": ["shared"]})
    assert found["shared_load_requests"] == BLOCKS * WARPS
    assert found["global_load_requests"] is None
    assert found["instructions"] is not None


def test_without_control_what_ran_is_unknown(tmp_path: Path) -> None:
    found = counters(tmp_path, control=False)
    assert found["global_load_requests"] == BLOCKS * WARPS
    for name in ("instructions", "branches", "barriers", "flops"):
        assert found[name] is None
    assert record(tmp_path, control=False).launches[1].count("lanes_on") == 0


def test_what_is_left_out_takes_no_room(tmp_path: Path) -> None:
    """Of random accesses each has a pattern of its own: those of other blocks are not written."""
    source = """__global__ void gather(int *out, const int *index, const int *in) {
        int i = blockIdx.x * 64 + threadIdx.x; out[i] = in[index[i]]; }"""
    index = np.random.default_rng(1).integers(0, 1000, 64 * BLOCKS).astype(np.int32)
    with cutrace.Session(tmp_path / "a.cutrace", only={"blocks": 3}) as gpu:
        arrays = [gpu.device_array(64 * BLOCKS, np.int32), gpu.to_device(index)]
        arrays.append(gpu.to_device(np.arange(1000, dtype=np.int32)))
        gpu.compile(source).get_function("gather")[BLOCKS, 64](*arrays)
        np.testing.assert_array_equal(arrays[0].copy_to_host(), index)
    trace = cutrace.read_trace(tmp_path / "a.cutrace")
    # two warps gather, each with its pattern; out and index are read in order, with one
    assert trace.launches[0].count("patterns") == 3
    addresses = trace.launches[0].accesses().to_pylist()
    gathered = [row["addresses"] for row in addresses if row["pc"] == addresses[2]["pc"]]
    base = trace.launches[0].launch.arrays[2].offset
    assert [a - base for a in chain(*gathered)] == (4 * index[64 * 3 : 64 * 4]).tolist()
    assert verify(trace) == []


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ({"kernels": "copi"}, "only kernels copi: no such kernel was launched; nearest: copy"),
        ({"lines": "99"}, "only lines 99: no kernel that was launched has code there"),
        ({"launches": "0-7,9"}, r"only launches 9: there were 2, counted from 0"),
    ],
)
def test_what_never_comes_is_an_error_and_leaves_no_trace(
    only: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(CutraceError, match=message):
        record(tmp_path, only=only)
    assert list(tmp_path.iterdir()) == []


def test_info_and_analyze_say_what_was_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = "// cutrace: copy<<<6, 64>>>(out:i32[384], in:i32[384]=arange)\n" + SOURCE
    Path("k.cu").write_text(source)
    assert run(["record", "k.cu", "--only-blocks", "0-3,5", "--no-control"]) == 0
    assert run(["info", "k.cutrace"]) == 0
    assert run(["analyze", "k.cutrace", "-d", "h200"]) == 0
    said = capsys.readouterr().out
    assert said.count("recorded and counted: blocks 0-3, 5 of 6 alone") == 2
    assert said.count("not recorded: which instructions the warps ran") == 2
    assert run(["check", "k.cutrace", "--races"]) == 0
    assert "races not checked: the launch was recorded in part" in capsys.readouterr().out


def test_options_of_what_is_recorded_come_back_in_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = "// cutrace: copy<<<6, 64>>>(out:i32[384], in:i32[384]=arange)\n" + SOURCE
    Path("k.cu").write_text(source)
    assert run(["analyze", "k.cu", "-d", "h200", "--only-spaces", "shared", "--no-control"]) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert "k.cu --only-spaces shared --no-control -d h200 --by line" in last


def test_a_trace_that_grows_too_large_ends_with_what_was_recorded(tmp_path: Path) -> None:
    source = """__global__ void gather(int *out, const int *index) {
        int i = blockIdx.x * 256 + threadIdx.x; out[index[i]] = i; }"""
    index = np.random.default_rng(1).permutation(1 << 20).astype(np.int32)

    def scatter() -> None:
        with cutrace.Session(tmp_path / "a.cutrace", max_trace_size="1M") as gpu:
            out, where = gpu.device_array(1 << 20, np.int32), gpu.to_device(index)
            gpu.compile(source).get_function("gather")[4096, 256](out, where)

    with pytest.raises(CutraceError) as raised:
        scatter()
    text = str(raised.value)
    assert "no trace is written, for it would be larger than the 1048576 bytes" in text
    assert "in launch 0 (_Z6gatherPiPKi), when block" in text
    assert "--sample-blocks" in text
    assert list(tmp_path.iterdir()) == []


def test_a_trace_that_just_fits_is_written(tmp_path: Path) -> None:
    trace = record(tmp_path)
    files = [path.stat() for path in trace.path.rglob("*") if path.is_file()]
    size = sum({found.st_ino: found.st_size for found in files}.values())  # what is linked, once
    record(tmp_path, max_trace_size=size + 8)
    with pytest.raises(CutraceError, match="would be larger than"):
        record(tmp_path, max_trace_size=size - 1000)
