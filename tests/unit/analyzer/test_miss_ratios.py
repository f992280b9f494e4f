"""Miss ratios from one pass, beside a replay at each size."""

from pathlib import Path
from time import process_time

import pytest
from hand_trace import Access, hand_trace
from warps import warp

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.models.replay.device.device import Device, load_device
from cutrace.models.replay.replay import replay
from cutrace.traces.reader import Trace

DEVICE = """\
name = "Fully associative L1"
base = "h100"

[stage.l1]
model = "cache"
from = ["coalescer", "sampler"]
bytes = 65536
line = 128
sector = 128
sets = 1
serves = ["global"]

[stage.l2]
model = "cache"
from = ["lrc"]
scope = "gpu"
bytes = 65536
line = 128
sector = 32
fetch = 64
sets = 1
store = "back"
serves = ["global"]
"""
EIGHT = """\
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define K(name, text) __global__ void name(float *o, const float *a) { int i = I; float s = 0; \\
    for (int k = 0; k < 24; k++) s += a[(text) & 2047]; o[i] = s; }
// cutrace: same<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(same, i)
// cutrace: stream<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(stream, i + k * 256)
// cutrace: stride<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(stride, i * 8 + k)
// cutrace: column<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(column, i * 33 + k * 32)
// cutrace: stencil<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(stencil, i + (k % 3) * 64)
// cutrace: gather<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(gather, i * 7919 + k * 104729)
// cutrace: product<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(product, (i >> 4) * 24 + k + (i & 15) * 96)
// cutrace: circle<<<4, 64>>>(o:f32[256], a:f32[2048]=arange)
K(circle, i + (k % 5) * 320)
"""
SIZES = [128 * lines for lines in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)]


def replayed(trace: Trace, device: Device, cache: str) -> list[int]:
    """How many sectors a cache misses in each launch, by a replay."""
    counts = [found.counts for launch in trace.launches for found in replay(launch, [device])]
    reads, hits = (
        [int(one[f"global_load_{cache}_{name}"].sum()) for one in counts]
        for name in ("reads", "read_hits")
    )
    return [read - hit for read, hit in zip(reads, hits, strict=True)]


@pytest.mark.slow
def test_eight_kernels_miss_what_replays_at_twelve_sizes_miss(tmp_path: Path) -> None:
    """In less than an eighth of their processor time, once loops are compiled."""
    device = tmp_path / "full.toml"
    device.write_text(DEVICE)
    (tmp_path / "eight.cu").write_text(EIGHT)
    trace = cutrace.read_trace(cutrace.record(tmp_path / "eight.cu", out=tmp_path / "8.cutrace"))
    for cache in ("l1", "l2"):
        cutrace.miss_ratios(trace, str(device), cache, SIZES)
        began = process_time()
        found = cutrace.miss_ratios(trace, str(device), cache, SIZES).frame()
        between = process_time()
        assert len(found) == 8 * len(SIZES)
        for size in SIZES:
            missed = replayed(trace, load_device(str(device), {f"{cache}.bytes": size}), cache)
            assert all(missed)
            assert found.filter(bytes=size)["misses"].to_list() == missed
        assert process_time() - between > 8 * (between - began)


def test_a_load_of_whole_lines_misses_each_once(tmp_path: Path) -> None:
    """32 lanes a line apart load twice: 32 lines, all used again after 31 others."""
    trace = hand_trace(tmp_path / "t.cutrace", [Access(warp(stride=128, base=0))] * 2)
    found = cutrace.miss_ratios(trace, "h100", "l1", [31 * 128, 32 * 128]).frame()
    assert found["accesses"].to_list() == [64, 64]
    assert found["misses"].to_list() == [64, 32]
    assert found["miss_ratio"].to_list() == [1.0, 0.5]
    assert found["working_set"].to_list() == [32 * 128] * 2


def test_a_cache_that_the_device_lacks_is_named_with_those_that_it_has(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "t.cutrace", [Access(warp(stride=4))])
    with pytest.raises(CutraceError, match=r"no cache 'l3'.*there are l1"):
        cutrace.miss_ratios(trace, "h100", cache="l3")


def test_a_miss_ratio_shows_itself_and_has_frames(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "t.cutrace", [Access(warp(stride=128, base=0))] * 2)
    found = cutrace.miss_ratios(trace, "h100", sets=True)
    assert [one.cache for one in found] == ["l1", "l2"]
    assert repr(found).splitlines()[0] == (
        "h100 l1: loads ask for 64 sectors, 50 % of them for the first time;"
        " 4096 B of room find all of the rest"
    )
    assert found.histogram().filter(cache="l1").select("bytes", "sectors").rows() == [
        (31 * 128, 32)
    ]
    assert found.working_sets().filter(cache="l1").rows() == [
        (0, "k", "h100", "l1", 32 * 128, 32 * 128, 32 * 128, 32 * 128)
    ]
    sets = found.sets().filter(cache="l1")
    assert sets["accesses"].sum() == 64
    assert sets["cold"].sum() == 32
    assert sets["lost"].sum() == 0
    page = found._repr_html_()
    assert "<svg" in page
    assert "50 % at its own" in page


def test_launches_alike_are_shown_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launch = "// cutrace: k<<<1, 32>>>(a:f32[32]=arange)\n"
    kernel = "__global__ void k(float *a) { a[threadIdx.x] += 1; }\n"
    (tmp_path / "k.cu").write_text(2 * launch + kernel)
    assert run(["analyze", str(tmp_path / "k.cu"), "-d", "h100", "--by", "reuse"]) == 0
    assert capsys.readouterr().out.count("k<<<1, 32>>>(a)  (2 launches)") == 1


def test_why_nothing_is_said_is_said(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "t.cutrace", [Access(warp(stride=4))])
    with pytest.raises(CutraceError, match="leaves out the reuse of lines"):
        cutrace.miss_ratios(trace, "h100", caches=False)


def test_by_reuse_and_by_set_are_tables_of_analyze(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = hand_trace(tmp_path / "t.cutrace", [Access(warp(stride=128, base=0))] * 2)
    told = []
    for by in ("reuse", "set", "set --format csv"):
        assert run(["analyze", str(trace.path), "-d", "h100", "--by", *by.split()]) == 0
        told.append(capsys.readouterr().out)
    assert "4 KiB 32 32 50 %" in " ".join(told[0].split())
    assert "0 sectors are lost before they are used again" in told[1]
    assert told[2].startswith("launch,kernel,device,cache,set,accesses,cold,lost\n0,k,h100,l1,0,")
    assert run(["analyze", str(trace.path), "--by", "reuse", "--advice"]) == 2
    assert "--by reuse is a table of its own" in capsys.readouterr().err


def test_sizes_of_no_cache_in_particular_are_refused(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "t.cutrace", [Access(warp(stride=4))])
    with pytest.raises(CutraceError, match="sizes: of which cache"):
        cutrace.miss_ratios(trace, "h100", sizes=[128])


def test_a_sample_says_how_far_it_may_be_off(tmp_path: Path) -> None:
    rows = [Access(warp(stride=128, base=4096 * n), step=n) for n in range(8)] * 2
    trace = hand_trace(tmp_path / "t.cutrace", rows)
    found = cutrace.miss_ratios(trace, "h100", "l1", sampled=4)
    assert found[0].accesses == 2 * 8 * 32
    assert (found.frame()["error"] > 0).all()
    assert "one line in 4 was looked at" in str(found)
