"""Gain: the longest bound before a change, less the longest after it."""

from pathlib import Path

import pytest

from cutrace.analyzer.advice.advise import advise, gain_text
from cutrace.analyzer.profile import analyze
from cutrace.tracer.session.source.record import record
from cutrace.traces.reader import read_trace

REVERSE = """// cutrace: reverse<<<64, 256>>>(out:i32[16384], in:i32[16384]=arange)
__global__ void reverse(int *out, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[gridDim.x * blockDim.x - 1 - i] = in[i];
}
"""
GRAY = """// cutrace: gray<<<256, 256>>>(out:u8[65536], in:u8[262144]=random:3)
__global__ void gray(unsigned char *out, const unsigned char *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = (77 * in[4 * i] + 150 * in[4 * i + 1] + 29 * in[4 * i + 2]) >> 8;
}
"""
PRODUCT = Path(__file__).parents[2] / "advice" / "product_by_rows.cu"
WORDS = 16384


def test_what_lies_beyond_the_ideal_is_gained_where_it_limits(tmp_path: Path) -> None:
    (tmp_path / "reverse.cu").write_text(REVERSE)
    trace = read_trace(record(tmp_path / "reverse.cu", [], tmp_path / "t.cutrace"))
    ((launch, (finding,)),) = advise(trace, analyze(trace, "8800gtx"))
    # 32 bytes for each word that is stored, in place of its 4; the loads stay: of 36 bytes a thread
    # 28 are saved, at 86.4 GB/s
    assert launch.limited_by == "DRAM"
    assert finding.gain == pytest.approx(28 * WORDS / 86.4)
    assert gain_text(finding, launch) == "the lower bound falls from 6.83 us to 1.52 us"


def test_loads_that_repeat_are_gained_down_to_one(tmp_path: Path) -> None:
    trace = read_trace(record(PRODUCT, [], tmp_path / "t.cutrace"))
    (launch, found), _ = advise(trace, analyze(trace, "gtx580"))
    (finding,) = found
    # The loop over 64 is unrolled by 16: each load of b runs 4 times in each of 8 warps, for the
    # 16 columns of the block
    assert finding.rule == "reuse"
    assert finding.evidence == "one block asks 512 times for 64 addresses"
    assert 0 < finding.gain < launch.bounds[0].ns * 7 / 8


def test_what_does_not_limit_gains_nothing(tmp_path: Path) -> None:
    (tmp_path / "reverse.cu").write_text(REVERSE.replace("= in[i];", "= in[i] ? 1 : 0;"))
    trace = read_trace(record(tmp_path / "reverse.cu", [], tmp_path / "t.cutrace"))
    told = advise(trace, analyze(trace, "8800gtx", set={"chip.clock_mhz": 1, "rates.issue": 0.01}))
    ((launch, findings),) = told
    finding = next(each for each in findings if each.rule == "uncoalesced")
    assert launch.limited_by == "issue slots"
    assert (finding.gain, gain_text(finding, launch)) == (0, "")


def test_the_naive_product_gets_advice_on_every_device_that_caches(tmp_path: Path) -> None:
    source = Path(__file__).parents[3] / "traces/gallery/matrix_product/product_plain.cu"
    trace = read_trace(record(source, [], tmp_path / "t.cutrace"))
    for launch, found in advise(trace, analyze(trace, ["gtx580", "v100", "h100", "h200"])):
        assert "reuse" in {finding.rule for finding in found}, launch.device


def test_no_more_of_memory_is_gained_than_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "gray.cu").write_text(GRAY)
    trace = read_trace(record(tmp_path / "gray.cu", [], tmp_path / "t.cutrace"))
    ((launch, (finding,)),) = advise(trace, analyze(trace, "h100"))
    # of four bytes of a point three are read: a quarter of 262,144 bytes at 3,352 GB/s
    assert (launch.limited_by, finding.rule) == ("DRAM", "uncoalesced")
    assert finding.gain == pytest.approx(65536 / 3352)


def test_atomics_on_one_address_gain_the_turns_of_a_warps_lanes(tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "advice" / "float_total.cu"
    trace = read_trace(record(source, [], tmp_path / "t.cutrace"))
    launch, (finding, *_) = advise(trace, analyze(trace, "h100"))[0]
    assert (launch.limited_by, finding.rule) == ("atomics at one address", "contention")
    assert launch.bounds[0].ns - finding.gain == pytest.approx(
        max(launch.bounds[0].ns / 32, launch.bounds[1].ns)
    )


SCALE = """// cutrace: scale<<<(32, 128), (32, 8)>>>(out:f32[1048576], in:f32[1048576]=arange, 1024)
__global__ void scale(float *out, const float *in, int n)
{
    int row = blockIdx.x * 32 + threadIdx.x, column = blockIdx.y * 8 + threadIdx.y;
    out[row * n + column] = 2 * in[row * n + column];
}
"""


def test_a_gain_is_not_larger_than_what_the_changed_kernel_gains(tmp_path: Path) -> None:
    """Exchanged indices load and store each byte of memory once, as L2 does without them."""
    bounds = []
    for name, text in {
        "slow": SCALE,
        "fast": SCALE.replace("row * n + column", "column * n + row"),
    }.items():
        (tmp_path / f"{name}.cu").write_text(text)
        trace = read_trace(record(tmp_path / f"{name}.cu", [], tmp_path / f"{name}.cutrace"))
        ((launch, found),) = advise(trace, analyze(trace, "t4"))
        bounds.append(launch.bounds[0].ns)
        if name == "slow":
            (finding,) = found
            assert (launch.limited_by, finding.rule) == ("DRAM", "uncoalesced")
            gain = finding.gain
    assert gain <= max(0.0, bounds[0] - bounds[1]) + 0.01 * bounds[0]
