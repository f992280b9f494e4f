"""The tour: one small kernel through every stage of cutrace, in the order of the folders."""

from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.commands._main import run

SHIFT = """
__global__ void shift(float *out, const float *in, int offset)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i + offset];
}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """tracer: CUDA C++ goes in, every thread runs, a trace comes out. One warp, off by a word."""
    path = tmp_path / "shift.cutrace"
    values = np.arange(33, dtype=np.float32)
    with cutrace.Session(path) as gpu:
        kernel = gpu.compile(SHIFT).get_function("shift")
        source = gpu.to_device(values, name="in")
        result = gpu.device_array(32, np.float32, name="out")
        kernel[1, 32](result, source, 1)
        np.testing.assert_array_equal(result.copy_to_host(), values[1:])
    return path


def test_traces_hold_each_access_of_a_warp_with_its_32_addresses(trace: Path) -> None:
    launch = cutrace.read_trace(trace).launches[0]
    load, store = launch.accesses().to_pylist()
    start = load["addresses"][0]
    assert load["addresses"] == [start + 4 * lane for lane in range(32)]
    assert [launch.launch.arrays[0].name, start] == ["in", launch.launch.arrays[0].offset + 4]
    assert load["active"] == store["active"] == 0xFFFFFFFF


def test_models_make_transactions_of_them_as_each_device_would(trace: Path) -> None:
    profile = cutrace.analyze(trace, device=["8800gtx", "gtx580", "h200"])
    counted = {p.device: p.counters["global_load_transactions"] for p in profile.launches}
    # two half-warps of 16 lanes, shifted: 32 transactions; bytes 4 to 131: 2 lines, 5 sectors
    assert counted == {"8800gtx": 32, "gtx580": 2, "h200": 5}


def test_the_analyzer_names_counters_as_nvidia_did_and_finds_the_line(trace: Path) -> None:
    (launch,) = cutrace.analyze(trace, device="8800gtx").launches
    assert launch.counters["gld_incoherent"] == 32
    assert launch.counters["gst_coherent"] == 8  # two stores of 64 bytes, 4 each
    (costly,) = launch.lines.filter(launch.lines["gld_incoherent"] > 0)["text"]
    assert costly == "    out[i] = in[i + offset];"


def test_the_command_line_prints_it(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counters = "gld_incoherent,gst_coherent"
    status = run(["analyze", str(trace), "-d", "8800gtx", "--counters", counters])
    printed = capsys.readouterr().out.split()
    assert status == 0
    assert printed[printed.index("gld_incoherent") + 1] == "32"
    assert printed[printed.index("gst_coherent") + 1] == "8"


def test_a_slip_is_one_message_with_the_nearest_names(
    trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", str(trace), "-d", "8800gts"]) == 2
    assert "8800gtx" in capsys.readouterr().err
