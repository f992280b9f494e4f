"""Counting a program while it runs: the same integers as from its trace."""

import json
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.analyzer.live import listen
from cutrace.analyzer.profile import Profile, analyze
from cutrace.cli import run
from cutrace.errors import CutraceError
from cutrace.models.replay.options import ReplayOptions
from cutrace.tracer.host.recorder import recording_into
from cutrace.traces.table import spill

SOURCE = """
__constant__ int table[32];

__global__ void many(float *out, const float *in, const int *where, int n)
{
    __shared__ float s[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = table[threadIdx.x % 32];
    for (int k = 0; k < where[i] % 7; ++k)
        sum += in[where[(i + k) % n]];
    s[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x % 3 == 0)
        sum = s[63 - threadIdx.x] * 2;
    atomicAdd(out, sum);
    out[i + 1] = sum;
}
"""
DEVICES = ("8800gtx", "k20", "h200")


def launch_twice(path: Path | None) -> None:
    """Two launches with gathers, divergence, barriers, constants and atomics."""
    rng = np.random.default_rng(5)
    with cutrace.Session(path) as gpu:
        module = gpu.compile(SOURCE)
        module.get_global("table").copy_to_device(np.arange(32, dtype=np.int32))
        out = gpu.device_array(64 * 40 + 1, np.float32, name="out")
        values = gpu.to_device(rng.random(64 * 40, np.float32), name="in")
        where = gpu.to_device(rng.integers(0, 64 * 40, 64 * 40).astype(np.int32), name="where")
        for grid in (40, 3):
            module.get_function("many")[grid, 64](out, values, where, 64 * 40)


def compare(live: Profile, traced: Profile) -> set[str]:
    """Check that every value that is there live is that of the trace; return those that are not."""
    missing = set()
    assert len(live.launches) == len(traced.launches)
    for ours, theirs in zip(live.launches, traced.launches, strict=True):
        assert (ours.number, ours.device, ours.launch) == (
            theirs.number,
            theirs.device,
            theirs.launch,
        )
        for name, value in theirs.counters.items():
            if ours.counters[name] is None and value is not None:
                missing.add(name)
            else:
                assert ours.counters[name] == value, name
        known = [name for name in theirs.lines.columns if name not in missing]
        assert ours.lines.select(known).equals(theirs.lines.select(known))
        kept = [n for n in known if n in theirs.arrays.columns and "touched" not in n]
        ours_by_array = ours.arrays.select("array", "global_load_transactions")
        assert ours_by_array.equals(theirs.arrays.select("array", "global_load_transactions"))
        assert kept
    return missing


def test_all_but_caches_are_counted_as_from_a_trace(tmp_path: Path) -> None:
    launch_twice(tmp_path / "a.cutrace")
    listener = listen(ReplayOptions(DEVICES))
    with recording_into(listener.trace):
        launch_twice(None)
    missing = compare(listener.profile(), analyze(tmp_path / "a.cutrace", device=DEVICES))
    assert missing
    caches = ["l1", "l2", "dram", "cache", "lts", "tex", "hit", "miss", "sectors"]
    caches += ["gld", "gst", "bound", "estimated", "gpu__time_duration", "sm__throughput"]
    assert all(any(word in name.lower() for word in caches) for name in missing), missing
    assert "global_load_transactions" not in missing


def test_patterns_that_are_no_longer_in_memory_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "HELD_BYTES", 1000)
    launch_twice(tmp_path / "a.cutrace")
    listener = listen(ReplayOptions("h200"))
    with recording_into(listener.trace):
        launch_twice(None)
    compare(listener.profile(), analyze(tmp_path / "a.cutrace", device="h200"))


def test_spilled_patterns_are_found_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "HELD_BYTES", 4 * 132)
    store = spill.PatternSpill()
    for number in range(10):
        mask = np.array([number + 1], np.uint32)
        assert store.add(mask, np.full((1, 32), -number, np.int32)) == number
    active, offsets = store.take(np.array([9, 0, 5, 0]))
    assert active.tolist() == [10, 1, 6, 1]
    assert offsets[:, 31].tolist() == [-9, 0, -5, 0]


def test_samples_and_restrictions_hold_without_a_trace(tmp_path: Path) -> None:
    def launch(path: Path | None) -> None:
        with cutrace.Session(path, sample_blocks=8, only={"spaces": "global"}) as gpu:
            module = gpu.compile(
                "__global__ void k(int *a) { a[blockIdx.x * 32 + threadIdx.x] = 1; }\n"
            )
            module.get_function("k")[100, 32](gpu.device_array(3200, np.int32))

    launch(tmp_path / "a.cutrace")
    listener = listen(ReplayOptions("h200"))
    with recording_into(listener.trace):
        launch(None)
    (ours,), (theirs,) = (
        listener.profile().launches,
        analyze(tmp_path / "a.cutrace", device="h200").launches,
    )
    assert ours.counters == theirs.counters
    assert ours.intervals == theirs.intervals
    assert ours.counters["global_store_requests"] == 100
    assert ours.counters["shared_load_requests"] is None


def test_the_command_writes_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.cu").write_text(
        "// cutrace: k<<<4, 32>>>(a:i32[128])\n"
        "__global__ void k(int *a) { a[blockIdx.x * 32 + threadIdx.x] = 1; }\n"
    )
    assert run(["analyze", "k.cu", "--no-trace", "-d", "h200", "--format", "json"]) == 0
    (launch,) = json.loads(capsys.readouterr().out)["launches"]
    values = {entry["counter"]: entry["values"]["h200"] for entry in launch["counters"]}
    assert values["global_store_requests"] == 4
    assert any("without a trace" in note for note in launch["notes"])
    assert [path.name for path in tmp_path.iterdir()] == ["k.cu"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["k.cu", "--advice"], "--advice reads the trace again"),
        (["k.cutrace"], "needs a source to run, not a trace"),
        (["k.cu", "--pad", "a=1"], "pad reads the trace again"),
    ],
)
def test_what_needs_a_trace_says_so(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", *words, "--no-trace"]) == 2
    assert message in capsys.readouterr().err


def test_a_fault_leaves_the_listener_without_results() -> None:
    def launch() -> None:
        with recording_into(listener.trace), cutrace.Session() as gpu:
            module = gpu.compile("__global__ void k(int *a) { a[1 << 20] = 1; }\n")
            module.get_function("k")[1, 32](gpu.device_array(32, np.int32))

    listener = listen(ReplayOptions("h200"))
    with pytest.raises(CutraceError, match="writes"):
        launch()
