"""The pytest plugin, in test runs of its own."""

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]

TURN = """\
__global__ void turn(float *out, const float *in, int width, int height)
{
    __shared__ float tile[32][32 + PAD];
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
"""
TESTS = """\
import numpy as np
import pytest


@pytest.fixture
def plain(cutrace_session):
    return turn(cutrace_session, 0)


def turn(gpu, pad):
    kernel = gpu.compile("turn.cu", options=[f"-DPAD={pad}"]).get_function("turn")
    matrix = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    out = gpu.device_array((128, 64), np.float32, name="out")
    kernel[(4, 2), (32, 32)](out, gpu.to_device(matrix), 128, 64)
    assert (out.copy_to_host() == matrix.T).all()
    return gpu


def test_padded(cutrace_session):
    gpu = turn(cutrace_session, 1)
    gpu.assert_budget("turn", {"shared_conflicts": 0, "sector_efficiency": ">= 1"}, device="h200")
    gpu.assert_budget("turn", {"shared_conflicts": 0}, ["gtx580", "h200"])


def test_plain(plain):
    plain.assert_budget("turn", {"shared_conflicts": 0}, device="h200")


def test_parts(plain):
    plain.assert_budget("turn", {"shared_conflicts": 0}, "h200", line="turn.cu:6")
    plain.assert_budget("turn", {"shared_conflicts": 0}, "h200", array="out")
    plain.assert_budget("turn", {"shared_conflicts": 0}, "h200", pad={"tile": 1})
    plain.assert_budget("turn", {"shared_conflicts": 0}, "h200", array="tile")


def test_profile(plain):
    (launch,) = plain.profile("h200").launches
    assert launch.counters["shared_conflicts"] == 7936
    (launch,) = plain.profile("gtx580", pad={"tile": 1}).launches
    assert launch.counters["shared_conflicts"] == 0


def test_ended(plain):
    plain.profile("h200")
    turn(plain, 0)


def test_file(plain):
    plain.assert_budget_file("budget.toml")


def test_slip(plain):
    plain.assert_budget("trun", {"shared_conflicts": 0}, "h200")
"""
FORKS = """\
import multiprocessing
import os
import sys

import numpy as np
import pytest


def wait(queue):
    while queue.get() is not None:
        pass


@pytest.mark.parametrize("how", ["leaves", "works", "is killed"] * 2)
def test_fork(cutrace_session, how):
    gpu = cutrace_session
    kernel = gpu.compile("turn.cu", options=["-DPAD=1"]).get_function("turn")
    matrix = gpu.to_device(np.zeros((64, 128), np.float32))
    out = gpu.device_array((128, 64), np.float32)
    kernel[(4, 2), (32, 32)](out, matrix, 128, 64)
    forked = multiprocessing.get_context("fork")
    queue = forked.SimpleQueue()
    worker = forked.Process(target=wait, args=(queue,))
    worker.start()
    if how == "leaves" and not os.fork():
        os._exit(0)
    if how == "is killed":
        worker.kill()
    kernel[(4, 2), (32, 32)](out, matrix, 128, 64)
    queue.put(None)
    worker.join()
    kernel[(4, 2), (32, 32)](out, matrix, 128, 64)
    assert len(gpu.profile("gtx580").launches) == 3
"""
BUDGET = """\
devices = ["h200"]
[[budget]]
kernel = "turn"
shared_conflicts = 7935
"""


def test_tests_are_held_to_numbers(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    installed = any(e.name == "cutrace" for e in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "cutrace.pytest_plugin"]
    pytester.makefile(".cu", turn=TURN)
    pytester.makefile(".toml", budget=BUDGET)
    pytester.makepyfile(TESTS)
    done = pytester.runpytest_subprocess(*plugin)
    done.assert_outcomes(passed=2, failed=5)
    assert 7936 == 8 * 32 * 31  # 8 blocks of 32 warps, each column 32 passes, one needed
    done.stdout.fnmatch_lines(
        [
            "_* test_plain _*",
            "E *turn.cu:10  out[[]y [*] height + x[]] = tile[[]threadIdx.x[]][[]threadIdx.y[]];",
            "E *shared_conflicts of turn on h200: 7936, budget: not more than 0",
            "E *lanes 0 to 31 conflict in bank 0: 32 wavefronts, 1 needed",
            "_* test_parts _*",
            "E *shared_conflicts of turn in array tile on h200: 7936, *",
            "_* test_ended _*",
            "E *CutraceError: *session*",
            "_* test_file _*",
            "E *7936, budget: not more than 7935",
            "_* test_slip _*",
            "E *no such kernel; nearest: turn*",
        ]
    )
    done.stdout.no_fnmatch_line("*checked_session.py:*AssertionError*")


def test_workers_of_xdist_record_while_their_own_children_end(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    installed = any(e.name == "cutrace" for e in entry_points(group="pytest11"))
    plugin = [] if installed else ["-p", "cutrace.pytest_plugin"]
    pytester.makefile(".cu", turn=TURN)
    pytester.makepyfile(FORKS)
    done = pytester.runpytest_subprocess(*plugin, "-n", "2", timeout=300)
    done.assert_outcomes(passed=6)


def test_the_plugin_imports_nothing_heavy() -> None:
    heavy = {"numpy", "polars", "pyarrow", "numba", "llvmlite", "networkx", "typer", "tomlkit"}
    code = (
        "import sys, pytest; before = set(sys.modules); import cutrace.pytest_plugin;"
        " print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    added = done.stdout.split()
    assert not heavy & {name.partition(".")[0] for name in added}
    assert [name for name in added if name.startswith("cutrace")] == [
        "cutrace",
        "cutrace.base",
        "cutrace.base.version",
        "cutrace.pytest_plugin",
    ]
