"""The first screen: the limit, the costliest lines, and what to ask next, in a few lines."""

from pathlib import Path

import numpy as np
import pytest

import cutrace
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


def test_a_launch_is_told_in_eight_lines_at_most(trace: Path, capsys: Captured) -> None:
    lines = shown(capsys, trace, "-d", "8800gtx", "--launch", "0")
    assert 4 <= len([line for line in lines if line]) <= 8
    # a word in a segment of 32 bytes of its own for each thread, and a word of each that is loaded
    assert lines[1].startswith("limited by DRAM: at least 6.83 us for 590 kB; next: ")
    assert lines[2].startswith("89 % of the bytes moved: t.cu:5  out[32 * ")  # 32 bytes of 36
    assert lines[3].startswith("11 % of the bytes moved: t.cu:4  float v = in[")
    # of the 36 bytes 28 are saved, if neighbouring lanes store neighbouring words
    assert any(line.startswith("advice: t.cu:5: let neighbouring lanes") for line in lines)
    assert "gains up to 5.31 us of 6.83 us on 8800gtx" in " ".join(lines)
    assert lines[-1] == f"next: cutrace analyze {trace} --launch 0 -d 8800gtx --by line"


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
    assert warp[1].startswith("limited by ")
    empty = shown(capsys, trace, "-d", "h200", "--launch", "2")
    assert empty[1].startswith("limited by issue slots: ")
    assert any("no thread did anything" in line or "nothing" in line for line in empty)


@pytest.mark.parametrize(
    ("launch", "words", "told"),
    [
        ("0", ["--set", "chip.clock_mhz=0"], "limited by DRAM: "),
        ("2", ["--set", "chip.clock_mhz=0"], "no limit known: nothing reaches DRAM, and the "),
        ("0", ["--no-caches"], "no limit known: caches were not counted"),
    ],
)
def test_a_device_of_which_little_is_known_says_so(
    trace: Path, capsys: Captured, launch: str, words: list[str], told: str
) -> None:
    lines = shown(capsys, trace, "-d", "h200", "--launch", launch, *words)
    assert lines[1].startswith(told)


def test_a_device_without_bandwidth_is_refused(trace: Path, capsys: Captured) -> None:
    assert run(["analyze", str(trace), "-d", "h200", "--set", "chip.memory_gb_per_s=0"]) == 2
    assert "at 0 GB/s, 1980 MHz: expected numbers above zero" in capsys.readouterr().err


def test_a_sample_and_a_refusal_say_why_there_is_no_limit(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "sample.cutrace"
    _record(path, WORDS // 1024, 1024, sample=4)
    lines = shown(capsys, path, "-d", "h200,8800gtx")
    assert lines[1].startswith(
        "h200: no limit known: of a sample of blocks no bound is certain; 95 times"
    )
    assert lines[3] == "8800gtx: cannot launch: 512 threads a block at most"


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
    old, new = (shown(capsys, trace, "-d", device, "--launch", "0") for device in ("v100", "h200"))
    assert old[1].endswith("; no estimate")
    assert not any("about" in line for line in old)
    assert not any("no estimate" in line for line in new)
    assert any(line.startswith("about ") for line in new)
