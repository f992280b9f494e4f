"""Bounds: an amount that was counted, divided by what the device does in a nanosecond."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from profiles import render

import cutrace
from cutrace.analyzer import report
from cutrace.analyzer.comparison.comparison import compare_profiles, compare_rows, find_verdict
from cutrace.analyzer.comparison.comparison_report import comparison_document
from cutrace.analyzer.counting.bounds import Bound
from cutrace.analyzer.counting.evaluate import Raw
from cutrace.analyzer.counting.vocabulary import find_counters, heading
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profile import analyze
from cutrace.analyzer.report.view import View
from cutrace.analyzer.sheet import sheets
from cutrace.commands._main import run
from cutrace.models.replay.device.device import load_device, load_devices
from cutrace.models.replay.device.measured import WITHIN

WORDS = 1 << 16
BYTES = WORDS * 4
SOURCE = """
extern "C" __global__ void copy(float *out, const float *in)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
}
extern "C" __global__ void column(float *out)
{
    __shared__ float tile[32][32];
    tile[threadIdx.x][threadIdx.y] = 1;
    __syncthreads();
    out[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void nothing() {}
"""
MEETING = """
__constant__ int table[32] = {1, 2, 3};
extern "C" __global__ void count(int *bins, const int *data)
{
    atomicAdd(&bins[data[threadIdx.x] / 8], 1);
}
extern "C" __global__ void look_up(int *out, const int *which)
{
    out[threadIdx.x] = table[which[threadIdx.x]];
}
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bounds") / "t.cutrace"
    with cutrace.Session(path) as gpu:
        module = gpu.compile(SOURCE)
        out, source = (gpu.to_device(np.ones(WORDS, np.float32), name=n) for n in ("out", "in"))
        module.get_function("copy")[WORDS // 256, 256](out, source)
        module.get_function("column")[1, (32, 32)](out)
        module.get_function("nothing")[1, 32]()
    return path


def on(trace: Path, device: str, number: int, **options: object) -> LaunchProfile:
    return analyze(trace, device, **options).launches[number]  # type: ignore[arg-type]


def times(profile: LaunchProfile) -> dict[str, float]:
    return {bound.resource: bound.ns for bound in profile.bounds}


def test_memory_takes_its_bytes_divided_by_its_bandwidth(trace: Path) -> None:
    h200, old = on(trace, "h200", 0), on(trace, "8800gtx", 0)
    assert times(h200)["DRAM"] == pytest.approx(BYTES / 4800)  # what is stored stays in the L2
    assert times(old)["DRAM"] == pytest.approx(2 * BYTES / 86.4)
    assert times(h200)["L2"] == pytest.approx(2 * BYTES / (64 * 132 * 1.98))
    assert times(h200)["L1 data"] == pytest.approx(2 * BYTES / (128 * 132 * 1.98))
    assert old.limited_by == "DRAM"
    assert old.counters["bound_time"] == pytest.approx(6068.148)


def test_passes_over_the_banks_of_one_block_are_those_of_one_sm(trace: Path) -> None:
    h200, fermi = on(trace, "h200", 1), on(trace, "gtx580", 1)
    passes = 32 * 32 * 2  # 32 warps, each lane in one bank, a store and a load
    assert times(h200)["shared memory"] == pytest.approx(passes / 1.98)
    assert times(fermi)["shared memory"] == pytest.approx(passes / (0.5 * 1.544))
    assert h200.limited_by == "shared memory"
    assert h200.verdict.startswith(
        "limited by shared memory: at least 1.03 us for 2,048 wavefronts; "
    )


def test_a_bound_is_the_longest_and_the_others_follow(trace: Path) -> None:
    for number in range(3):
        profile = on(trace, "a100", number)
        every = [bound.ns for bound in profile.bounds]
        assert every == sorted(every, reverse=True)
        assert profile.counters["bound_time"] == pytest.approx(every[0], abs=0.001)


def test_a_kernel_that_does_nothing_still_has_instructions(trace: Path) -> None:
    assert set(times(on(trace, "h200", 2))) == {"issue slots"}


def test_without_a_clock_only_memory_is_known(trace: Path) -> None:
    assert set(times(on(trace, "h200", 0, set={"chip.clock_mhz": 0}))) == {"DRAM"}
    assert on(trace, "h200", 2, set={"chip.clock_mhz": 0}).counters["bound_time"] is None


def test_without_caches_nobody_knows_what_reaches_memory(trace: Path) -> None:
    profile = on(trace, "h200", 0, caches=False)
    assert (profile.bounds, profile.counters["bound_time"]) == ((), None)


def test_a_launch_that_is_refused_or_not_whole_has_no_bound(tmp_path: Path) -> None:
    path = tmp_path / "sample.cutrace"
    with cutrace.Session(path, sample_blocks=4) as gpu:
        out, source = (gpu.to_device(np.ones(WORDS, np.float32), name=n) for n in ("out", "in"))
        gpu.compile(SOURCE).get_function("copy")[WORDS // 1024, 1024](out, source)
    for device in ("h200", "8800gtx"):  # 512 threads a block at most
        profile = on(path, device, 0)
        assert (profile.bounds, profile.verdict, profile.limited_by) == ((), "", "")
        assert profile.counters["bound_time"] is None


def test_every_device_with_a_clock_has_rates() -> None:
    for device in load_devices(["all"]):
        rates = device.rates
        assert min(rates.issue, rates.single, rates.shared, rates.texture) > 0, device.key
        assert bool(rates.l1_bytes) == any(stage.name == "l1" for stage in device.stages) or (
            device.capability >= (3, 0)
        )


def test_rates_are_what_the_makers_tables_give_for_whole_chips() -> None:
    # TFLOPS of boards' specifications: 2 operations x lanes x SMs x clock
    told = {
        ("v100", "double"): 7.07,  # at 1.38 GHz, the clock of 900 GB/s
        ("a100", "double"): 9.7,
        ("h100", "double"): 33.5,
        ("p100", "single"): 9.5,
        ("rtx4090", "single"): 82.6,
        ("k40", "double"): 1.68,
        ("gtx980", "single"): 4.98,
    }
    for (name, rate), tflops in told.items():
        device = load_device(name)
        lanes = getattr(device.rates, rate) * device.chip.sms
        assert 2 * lanes * device.chip.clock_mhz / 1e6 == pytest.approx(tflops, rel=0.01), name


@pytest.mark.parametrize(
    ("rate", "refusal"),
    [
        ("-1", "issue = -1; expected"),
        ("inf", "`issue` is inf; at most 281474976710656"),  # 2 to the 48
        ('"fast"', "issue = 'fast'; expected"),
    ],
)
def test_a_rate_that_no_chip_has_is_refused(rate: str, refusal: str) -> None:
    with pytest.raises(cutrace.CutraceError, match=refusal):
        load_device("h100", {"rates.issue": rate})


def test_the_limit_is_said_first_and_machines_read_it(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", str(trace), "-d", "v100,h200"]) == 0
    lines = capsys.readouterr().out.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("column<<<"))
    row = next(line for line in lines[head:] if line.startswith("v100 "))
    assert row.split("  ")[-1].strip()
    assert "(shared memory)" in row
    (device,) = json.loads(render(analyze(trace, "h200"), "json"))["launches"][1]["devices"]
    assert device["limited_by"] == "shared memory"
    assert device["bounds"][0]["amount"] == 2048


def test_launches_together_take_what_each_takes_one_after_another(
    trace: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "alone.cutrace"
    with cutrace.Session(alone) as gpu:
        gpu.compile(SOURCE).get_function("nothing")[1, 32]()
    profiles = {"all": analyze(trace, "h200"), "one": analyze(alone, "h200")}
    (table,) = compare_profiles(profiles, counters=["bound_time"]).tables
    every = [launch.counters["bound_time"] for launch in profiles["all"].launches]
    assert table.rows[0].cells[0].value == pytest.approx(sum(map(float, every)))  # type: ignore[arg-type]
    assert table.limits == ("", "")


def test_a_comparison_says_what_limits_each_variant(trace: Path) -> None:
    profiles = {"old": analyze(trace, "8800gtx"), "new": analyze(trace, "8800gtx")}
    comparison = compare_profiles(profiles)
    text = report.render(comparison_document(comparison, View()), "table")
    assert text.count("     no faster than 6.07 us (DRAM, 524 kB); no estimate: no latencies") == 2


def test_the_line_that_costs_most_is_that_of_what_limits(trace: Path) -> None:
    (sheet,) = (s for s in sheets(analyze(trace, "h200").launches, View()) if s.number == 1)
    (top,) = sheet.costliest
    assert top is not None
    assert (top.what, top.share) == ("wavefronts of shared memory", 0.5)  # the store and the load
    assert top.text == "tile[threadIdx.x][threadIdx.y] = 1;"


def test_atomics_at_one_address_take_turns_and_constants_are_replayed(tmp_path: Path) -> None:
    path, warps, lanes = tmp_path / "meeting.cutrace", 8, 32
    with cutrace.Session(path) as gpu:
        module = gpu.compile(MEETING)
        bins, data = (gpu.to_device(np.arange(256, dtype=np.int32) % 32) for _ in range(2))
        module.get_function("count")[4, 256](bins, data)
        module.get_function("look_up")[1, 256](bins, data)
    turns = 4 * warps * lanes // 4  # each lane's own, 8 of every warp at each of four bins
    least = pytest.approx(turns / (0.7 * 1.98))  # 0.7 a cycle: measured/sm_90.csv, rounded up
    assert times(on(path, "h200", 0))["atomics at one address"] == least
    fermi = times(on(path, "gtx580", 0))["atomics at one address"]
    assert fermi == pytest.approx(9 * turns / 1.544, rel=0.001)
    assert "atomics at one address" not in times(on(path, "gtx280", 0))  # nothing is published
    replays = warps * (lanes - 1)
    assert times(on(path, "h200", 1))["constant cache"] == pytest.approx(replays / 1.98)


def test_a_comparison_follows_the_estimates_and_else_says_how_the_bound_moves(
    trace: Path,
) -> None:
    launches = analyze(trace, "h200").launches
    slow, fast = launches[1], launches[0]
    slow_ns, fast_ns = 40000.0, 10000.0
    # the bounds order them the other way round: estimates decide
    slow = replace(slow, raw=_estimated(slow, slow_ns), bounds=(Bound("L2", 5.0, 9, "bytes"),))
    fast = replace(fast, raw=_estimated(fast, fast_ns), bounds=(Bound("L2", 9.0, 9, "bytes"),))
    found = find_verdict([slow, fast], 0)
    assert found is not None
    # 1.15 * sqrt(4) is more than the error of two estimates, 1.25 / 0.75: from 4 * 3/5 to 4 * 5/3
    assert found.tell(["old", "new"], "old") == (
        "new is about 4 times as fast as old (2.4 to 6.67: right for 6 of 7 pairs on chips)"
    )
    alike = replace(fast, raw=_estimated(fast, 38000.0))
    found = find_verdict([slow, alike], 0)
    assert found is not None
    assert found.tell(["old", "new"], "old").startswith("no difference beyond the error: new ")
    bounded = [replace(each, raw=_estimated(each, None), estimate=None) for each in (fast, slow)]
    found = find_verdict(bounded, 0)
    assert found is not None
    assert found.tell(["old", "new"], "old") == (
        "the lower bound falls from 9 ns for old (L2) to 5 ns for new (L2); no estimate"
    )
    assert find_verdict([bounded[0], replace(bounded[1], bounds=())], 0) is None


def _estimated(launch: LaunchProfile, ns: float | None) -> Raw:
    facts = {**launch.raw.facts, "estimated_ps": None if ns is None else round(1000 * ns)}
    return replace(launch.raw, facts=facts)


def test_no_time_within_the_error_of_the_best_is_marked() -> None:
    (time,) = find_counters(["estimated_time"])

    def marks(*ns: float, within: tuple[float, float] = WITHIN) -> list[bool]:
        values = [{heading(time): each} for each in ns]
        (row,) = compare_rows([time], values, 0, within=within)
        return [cell.is_best for cell in row.cells]

    assert marks(100.0, 99.7) == [False, False]
    assert marks(100.0, 30.0) == [False, True]
    # 1.15 ** 2 is 1.3225: 30 and 33 are alike
    assert marks(100.0, 30.0, 33.0) == [False, True, True]
    # a device whose estimates are less exact: 2.83 times from end to end, 1.33 ** 2 is 1.77
    assert marks(100.0, 70.0) == [False, True]
    assert marks(100.0, 70.0, within=(0.6, 1.7)) == [False, False]


LOGIC = """
extern "C" __global__ void mix(int *out, int a, int b, int c)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int x = t, y = t * 3, z = t ^ 5;
#pragma unroll 8
    for (int j = 0; j < 256; ++j) {
        x = x ^ y ^ a;
        y = (y & z) ^ x;
        z = z + x + b;
        x = (x | c) ^ z;
    }
    out[t] = x + y + z;
}
"""


@pytest.mark.parametrize("device", ["h200", "rtx4090"])
def test_issue_slots_are_those_of_the_machine_code(device: str, tmp_path: Path) -> None:
    """A round is 8 instructions of PTX, and 4 of the machine: three LOP3 and an IADD3."""
    with cutrace.Session(tmp_path / "m.cutrace") as gpu:
        out = gpu.device_array(132 * 256, np.int32)
        gpu.compile(LOGIC).get_function("mix")[132, 256](out, 1, 2, 3)
    profile = on(tmp_path / "m.cutrace", device, 0)
    amount = next(bound.amount for bound in profile.bounds if bound.resource == "issue slots")
    rounds = 132 * 8 * 256
    assert 0.95 * 4 * rounds <= amount <= 1.1 * 4 * rounds
    old = on(tmp_path / "m.cutrace", "gtx580", 0)  # it has no LOP3
    assert next(b.amount for b in old.bounds if b.resource == "issue slots") > 8 * rounds
    if profile.estimate:
        assert profile.bounds[0].ns < profile.estimate.ns
