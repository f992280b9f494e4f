"""The first screen: the limit, the costliest lines, and what to ask next, in a few lines."""

import json
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.analyzer.summary import Caches, Summary
from cutrace.analyzer.summary_text import _caches_text
from cutrace.commands._main import run

Captured = pytest.CaptureFixture[str]
WORDS = 1 << 14
SOURCE = """
extern "C" __global__ void twice(float *out, const float *in)
{
    float v = in[blockIdx.x * blockDim.x + threadIdx.x];
    out[32 * (blockIdx.x * blockDim.x + threadIdx.x)] = v;
}
extern "C" __global__ void nothing() {}
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A launch of 512 warps, one of one warp, two of nothing."""
    path = tmp_path_factory.mktemp("brief") / "t.cutrace"
    _record(path, WORDS // 256, 256)
    return path


def _record(path: Path, blocks: int, threads: int, sample: int | None = None) -> None:
    (path.parent / "t.cu").write_text(SOURCE)
    with cutrace.Session(path, sample_blocks=sample) as gpu:
        module = gpu.compile(path.parent / "t.cu")
        source = gpu.to_device(np.ones(WORDS, np.float32), name="in")
        out = gpu.device_array(32 * WORDS, np.float32, name="out")
        module.get_function("twice")[blocks, threads](out, source)
        if sample is None:
            module.get_function("twice")[1, 32](out, source)
            for _ in range(2):
                module.get_function("nothing")[1, 32]()


def shown(capsys: Captured, *words: object) -> list[str]:
    assert run(["analyze", *map(str, words)]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_launch_is_told_in_13_lines_at_most(trace: Path, capsys: Captured) -> None:
    lines = shown(capsys, trace, "-d", "8800gtx", "--launch", "0")
    assert 4 <= len([line for line in lines if line]) <= 13
    # a word in a segment of 32 bytes of its own for each thread, and a word of each that is loaded
    assert lines[1].startswith("time      no faster than 6.83 us (DRAM, 590 kB); no estimate: ")
    text = " ".join(" ".join(lines).split())
    assert "hot line t.cu:5 out[32 * (blockIdx.x" in text  # 32 bytes of 36
    assert "(89 % of the bytes moved) t.cu:4 float v = in[" in text
    # of the 36 bytes 28 are saved, if neighbouring lanes store neighbouring words
    assert "finding t.cu:5: an uncoalesced store: " in text
    assert "fix let neighbouring lanes take neighbouring words" in text
    assert "the lower bound falls from 6.83 us to 1.52 us" in text
    assert lines[-1] == f"next: cutrace why {trace} --launch 0 -d 8800gtx t.cu:5"
    assert run(lines[-1].removeprefix("next: cutrace ").split()) == 0


def test_an_estimated_launch_has_time_units_accesses_caches_and_grid(
    trace: Path, capsys: Captured
) -> None:
    lines = shown(capsys, trace, "-d", "h100", "--launch", "0")
    facts = {line[:10].strip(): line[10:] for line in lines[1:] if line[:1].strip()}
    assert facts["time"].startswith("about ")
    assert " at 1,580 MHz; no faster than " in facts["time"]
    assert facts["busy"].startswith("SM ")
    # of a request to load 4 sectors, of one to store 32: 18 on average, where 4 would do;
    # of 1152 bytes a warp moves it uses 256
    assert (
        facts["global"] == "18 sectors per request, 4 would do: 22.2 % of the bytes moved are used"
    )
    assert facts["occupancy"].endswith("; 64 blocks on 132 SMs: 68 SMs idle")
    assert facts["fix"].startswith("let neighbouring lanes")


def test_the_largest_finding_is_shown_where_no_bound_moves(trace: Path, capsys: Captured) -> None:
    strided = trace.parent / "scale.cu"
    strided.write_text(
        "// cutrace: k<<<8, 256>>>(out:f32[65536], in:f32[65536]=arange)\n"
        "__global__ void k(float *out, const float *in)\n"
        "{ int i = threadIdx.x * 256 + blockIdx.x * 32;\n"
        "  for (int j = 0; j < 32; j++) out[i + j] = 2 * in[i + j]; }\n"
    )
    for device in ("rtx4090", "rtx3060", "t4", "a100", "gtx1080"):
        lines = shown(capsys, strided, "-d", device)
        assert any(line.startswith("finding   scale.cu:4: an uncoalesced") for line in lines), (
            device
        )
        assert any(line.startswith("fix       let neighbouring lanes") for line in lines), device
        assert ("; no estimate" in lines[1]) == (device == "gtx1080")


def test_json_has_the_facts_of_the_first_screen(trace: Path, capsys: Captured) -> None:
    printed = "\n".join(shown(capsys, trace, "-d", "h100", "--launch", "0", "--format", "json"))
    document = json.loads(printed)
    (on,) = document["launches"][0]["devices"]
    assert on["access"]["transactions"] / on["access"]["requests"] == 18
    assert on["access"]["unit"] == "sectors"
    assert on["residency"]["blocks"] == 64
    low, high = on["estimate"]["interval_ns"]
    assert (low, high) == (0.8 * on["estimate"]["ns"], pytest.approx(on["estimate"]["ns"] / 0.75))
    fix = document["fix"]
    assert (fix["rule"], fix["place"], fix["device"]) == ("uncoalesced", "t.cu:5", "h100")
    assert fix["estimate_ns"] < on["estimate"]["ns"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_narrow_terminals_have_room(
    trace: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for devices in ("h100", "h100,t4"):
        lines = shown(capsys, trace, "-d", devices, "--launch", "0")
        assert max(len(line) for line in lines if "cutrace" not in line) <= width


def test_all_shows_every_counter(trace: Path, capsys: Captured) -> None:
    few = shown(capsys, trace, "-d", "h200", "--launch", "0")
    every = shown(capsys, trace, "-d", "h200", "--launch", "0", "--all")
    assert not any(line.startswith("l1_reads") for line in few)
    assert any(line.startswith("l1_reads") for line in every)


def test_launches_that_are_the_same_are_told_once(trace: Path, capsys: Captured) -> None:
    lines = shown(capsys, trace, "-d", "h200")
    assert [line for line in lines if "<<<" in line] == [
        "twice<<<64, 256>>>(out, in)",
        "twice<<<1, 32>>>(out, in)",
        "nothing<<<1, 32>>>()  (2 launches)",
    ]


def test_an_empty_kernel_and_one_warp_have_a_limit(trace: Path, capsys: Captured) -> None:
    warp = shown(capsys, trace, "-d", "h200", "--launch", "1")
    assert warp[1].startswith("time      about ")
    empty = shown(capsys, trace, "-d", "h200", "--launch", "2")
    assert " no faster than " in empty[1]
    assert "(issue slots, 1 warp" in " ".join(empty[1:3]).replace("          ", "")
    assert any("no thread did anything" in line or "nothing" in line for line in empty)


@pytest.mark.parametrize(
    ("launch", "words", "told"),
    [
        ("0", ["--set", "chip.clock_mhz=0"], "no faster than "),
        ("2", ["--set", "chip.clock_mhz=0"], "no limit known: nothing reaches DRAM, and the "),
        ("0", ["--no-caches"], "no limit known: caches were not counted"),
    ],
)
def test_a_device_of_which_little_is_known_says_so(
    trace: Path, capsys: Captured, launch: str, words: list[str], told: str
) -> None:
    lines = shown(capsys, trace, "-d", "h200", "--launch", launch, *words)
    assert lines[0] == "device: h200, with chip.clock_mhz=0" if words[0] == "--set" else lines[0]
    time = next(line for line in lines if line.startswith("time"))
    assert time.removeprefix("time      ").startswith(told)


def test_a_device_without_bandwidth_is_refused(trace: Path, capsys: Captured) -> None:
    assert run(["analyze", str(trace), "-d", "h200", "--set", "chip.memory_gb_per_s=0"]) == 2
    assert "at 0 GB/s, 1980 MHz: expected numbers above zero" in capsys.readouterr().err


def test_a_sample_and_a_refusal_say_why_there_is_no_limit(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "sample.cutrace"
    _record(path, WORDS // 1024, 1024, sample=4)
    lines = shown(capsys, path, "-d", "h200,8800gtx")
    assert lines[1] == "8800gtx: cannot launch: 512 threads a block at most"
    assert "of the bytes moved on h200)" in " ".join(" ".join(lines).split())
    one = shown(capsys, path, "-d", "h200")
    assert one[1].startswith("time      about ")
    assert "if caches held all that it loads" in one[1]
    old = shown(capsys, path, "-d", "gtx1080")
    assert old[1].startswith(
        "time      no limit known: of a sample of blocks no bound is certain; 95"
    )


def test_bounds_of_a_sample_lie_on_both_sides_of_those_of_the_whole(tmp_path: Path) -> None:
    source = """
extern "C" __global__ void uneven(int *out)
{
    int sum = 0;
    for (int i = 0; i < (blockIdx.x * 7 + 3) % 64; i++) sum += __ldcg(out + i);
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""
    found = []
    for sample in (None, 32):
        path = tmp_path / f"{sample}.cutrace"
        with cutrace.Session(path, sample_blocks=sample) as gpu:
            out = gpu.device_array(32 * 128, np.int32, name="out")
            gpu.compile(source).get_function("uneven")[128, 32](out)
        (launch,) = cutrace.analyze(path, "h200").launches
        found.append(launch)
    whole, sampled = found
    own = {bound.resource: bound.ns for bound in whole.bounds}
    assert (whole.bounds_between, sampled.bounds) == ((), ())
    assert {low.resource for low, _ in sampled.bounds_between} >= {"issue slots", "L1 data"}
    for low, high in sampled.bounds_between:
        assert low.ns <= own[low.resource] <= high.ns
        assert high.ns > low.ns
    assert sampled.estimate is None
    assert sampled.estimate_between is not None
    assert whole.estimate is not None
    least, most = sampled.estimate_between
    assert least.ns < whole.estimate.ns < most.ns
    assert any(part.what == "DRAM" for part in most.parts)
    assert not any(part.what == "DRAM" for part in least.parts)


def test_of_a_sample_with_atomics_no_time_is_told(tmp_path: Path) -> None:
    """What atomics meet no sample says."""
    path = tmp_path / "atomics.cutrace"
    with cutrace.Session(path, sample_blocks=32) as gpu:
        source = 'extern "C" __global__ void k(int *out) { atomicAdd(out, 1); }'
        gpu.compile(source).get_function("k")[128, 32](gpu.device_array(1, np.int32))
    (launch,) = cutrace.analyze(path, "h200").launches
    assert launch.bounds_between
    assert launch.estimate_between is None


def test_a_device_without_measured_latencies_has_no_estimate_and_says_so(
    trace: Path, capsys: Captured
) -> None:
    devices = "8800gtx", "h200"
    old, new = (shown(capsys, trace, "-d", device, "--launch", "0") for device in devices)
    assert "; no estimate: no latencies below capability 7.0" in " ".join(old[1:3])
    assert not any("about" in line for line in old)
    assert not any("no estimate" in line for line in new)
    assert new[1].startswith("time      about ")


def test_bytes_used_are_of_loads_and_stores_where_there_are_atomics(
    tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "k.cu").write_text(
        "// cutrace: k<<<4, 32>>>(bins:u32[1024]=zeros, in:u32[128]=arange)\n"
        "__global__ void k(unsigned *bins, const unsigned *in)\n"
        "{ atomicMax(&bins[32 * threadIdx.x], in[32 * blockIdx.x + threadIdx.x]); }\n"
    )
    text = " ".join(" ".join(shown(capsys, tmp_path / "k.cu", "-d", "h100")).split())
    # a load of 4 sectors and an atomic of 32, for 128 bytes each; the load uses all of its bytes
    assert (
        "global 18 sectors per request, 4 would do: 100 % of the bytes that loads and stores"
        " move are used"
    ) in text
    assert " 1 sectors" not in text


PRIVATE = """
// cutrace: hist<<<64, 256>>>(bins:u32[256]=zeros, data:u32[262144]=random:7, 262144)
__global__ void hist(unsigned *bins, const unsigned *data, int n)
{
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[data[i] & 255], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
"""
PUBLIC = """
// cutrace: hist<<<64, 256>>>(bins:u32[256]=zeros, data:u32[262144]=random:7, 262144)
__global__ void hist(unsigned *bins, const unsigned *data, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[data[i] & 255], 1);
}
"""


@pytest.mark.parametrize("device", ["h100", "t4", "rtx4090", "b200"])
def test_the_gain_of_counting_in_shared_memory_is_that_of_the_kernel_that_does(
    device: str, tmp_path: Path, capsys: Captured
) -> None:
    (tmp_path / "public.cu").write_text(PUBLIC)
    (tmp_path / "private.cu").write_text(PRIVATE)
    assert run(["advise", str(tmp_path / "public.cu"), "-d", device, "--format", "json"]) == 0
    finding = json.loads(capsys.readouterr().out)["launches"][0]["findings"][0]
    trace = cutrace.record(tmp_path / "private.cu", out=tmp_path / "t.cutrace")
    (launch,) = cutrace.analyze(trace, device=device).launches
    assert finding["rule"] == "contention"
    assert launch.estimate
    assert finding["estimate_ns"] == pytest.approx(launch.estimate.ns, rel=0.25)


def test_bytes_read_from_memory_and_written_to_it_are_told_apart() -> None:
    facts = Summary(None, None, Caches(0.5, None, 96, 64), None, {}, {})
    assert _caches_text(facts) == "L1 hits 50 %; 32 bytes read from DRAM, 64 bytes written to DRAM"


def test_a_hot_line_of_all_devices_names_none(trace: Path, capsys: Captured) -> None:
    lines = shown(capsys, trace, "-d", "h100,h200", "--launch", "0")
    (hot,) = (line for line in lines if line.startswith("hot line"))
    assert hot.endswith("of the bytes moved)")
