"""The stream of requests is what the coalescer makes of the accesses, SM by SM, in order."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from hand_trace import Access, hand_trace
from warps import warp

import cutrace
from cutrace.commands._main import run

SCALE = """
__global__ void scale(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i * 4] + in[i * 4 + 1];
}
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("requests")
    (folder / "scale.cu").write_text(SCALE)
    with cutrace.Session(folder / "a.cutrace") as gpu:
        kernel = gpu.compile(folder / "scale.cu").get_function("scale")
        out, source = gpu.device_array(32768, "f4", "out"), gpu.device_array(131072, "f4", "in")
        source.fill(0)
        kernel[512, 64](out, source)
    return folder / "a.cutrace"


def requests(trace: Path, path: Path, device: str) -> pl.DataFrame:
    assert run(["export", str(trace), "--to", "requests", "-o", str(path), "-d", device]) == 0
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)


@pytest.mark.parametrize("device", ["h100", "gtx480", "8800gtx"])
def test_there_is_a_row_for_each_transaction(trace: Path, tmp_path: Path, device: str) -> None:
    rows = requests(trace, tmp_path / "r.parquet", device)
    counters = cutrace.analyze(trace, device=device, scope="all").launches[0].counters
    found = Counter(rows["op"].to_list())
    assert found["load"] == counters["global_load_transactions"]
    assert found["store"] == counters["global_store_transactions"]
    assert rows["bytes"].sum() == counters["global_bytes_transferred"]


def test_an_lru_of_ones_own_over_the_stream_hits_as_the_model_does(
    trace: Path, tmp_path: Path
) -> None:
    rows = requests(trace, tmp_path / "r.parquet", "h100")
    loads = rows.filter(pl.col("op") == "load")
    # 32 lanes at a stride of 16 bytes touch 16 sectors; the second load touches the same again,
    # and L1 (some 200 KB, of which each SM sees 4 blocks of 2 warps) forgets none of them
    missed = 0
    for _, of_sm in loads.group_by("sm"):
        held: set[int] = set()
        for address in of_sm.sort("order")["address"].to_list():
            missed += address not in held
            held.add(address)
    assert (len(loads), missed) == (512 * 2 * 2 * 16, 512 * 2 * 16)
    counters = cutrace.analyze(trace, device="h100").launches[0].counters
    assert counters["l1_hit_rate"] == 0.5
    assert counters["l2_reads"] == missed


def test_requests_of_an_sm_are_numbered_in_the_order_of_its_warps(tmp_path: Path) -> None:
    accesses = [Access(warp(stride=4)), Access(warp(stride=4)), Access(warp(base=4096, stride=0))]
    trace = hand_trace(tmp_path / "a.cutrace", accesses).path
    rows = requests(trace, tmp_path / "r.csv", "h100")
    first = rows["address"][0]
    assert rows["order"].to_list() == [*range(9)]
    four = [first, first + 32, first + 64, first + 96]
    assert rows["address"].to_list()[:8] == [*four, *four]
    assert rows["sm"].unique().to_list() == [0]


def test_requests_are_those_of_one_device(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", str(trace), "--to", "requests", "-d", "h100,gtx480"]) == 2
    assert "those of one device: name one" in capsys.readouterr().err
    assert (
        run(["export", str(trace), "--to", "requests", "-o", str(tmp_path / "no" / "r.csv")]) == 2
    )


def test_blocks_on_one_place_of_an_sm_follow_one_another(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.json"
    options = ["--set", "limits.blocks_per_sm=2"]
    assert run(["export", str(trace), "--to", "perfetto", "-o", str(out), *options]) == 0
    events = json.loads(out.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == 512
    assert {event["args"]["accesses"] for event in slices} == {2 * 3}  # 2 warps, 2 loads, a store
    threads = {event["tid"] for event in slices}
    assert len(threads) == 2 * 132  # every SM of an h100 holds two
    for thread in threads:
        mine = sorted((e["ts"], e["ts"] + e["dur"]) for e in slices if e["tid"] == thread)
        assert all(end <= start for (_, end), (start, _) in pairwise(mine))
    names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert "SM 131, place 1" in names
