"""Recordings that end in the middle: killed, or out of room. None leaves half a trace."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cutrace.base.errors import CutraceError
from cutrace.traces.reader import read_trace
from cutrace.traces.verify import verify

KILLS = int(os.environ.get("CUTRACE_KILLS", "3"))
RECORD = """
import sys, time
import numpy as np
import cutrace

with cutrace.Session(sys.argv[1]) as warm:
    warm.compile("__global__ void k(int *a) { *a = 1; }\\n")
print("ready", flush=True)
while True:
    with cutrace.Session(sys.argv[1]) as gpu:
        module = gpu.compile(
            "__global__ void k(int *a, const int *w)"
            "{ int i = blockIdx.x * 256 + threadIdx.x; a[w[i]] = i; }\\n"
        )
        a = gpu.device_array(1 << 16, "i4")
        w = gpu.to_device(np.random.default_rng(1).permutation(1 << 16).astype("i4"))
        module.get_function("k")[256, 256](a, w)
        module.get_function("k")[256, 256](a, w)
"""
KERNEL = """// cutrace: k<<<1024, 256>>>(a:i32[262144], w:i32[262144]=random:1)
// cutrace: k<<<512, 256>>>(a, w)
__global__ void k(int *a, const int *w)
{
    int i = blockIdx.x * 256 + threadIdx.x;
    a[w[i] & 262143] = i;
}
"""
COMMAND = [sys.executable, "-m", "cutrace", "record", "k.cu", "-o", "k.cutrace"]
LIMITED = """
import resource, signal, sys
from cutrace.commands._main import run

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
sys.exit(run(["record", "k.cu", "-o", "k.cutrace"]))
"""


@pytest.mark.parametrize("number", range(KILLS))
def test_a_recording_that_is_killed_leaves_a_whole_trace_or_none(
    number: int, tmp_path: Path
) -> None:
    """$CUTRACE_KILLS says how often; traces of one name replace one another all the while."""
    target = tmp_path / "a.cutrace"
    child = subprocess.Popen(
        [sys.executable, "-c", RECORD, str(target)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(random.Random(number).random() * 0.8)
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    try:
        trace = read_trace(target)
    except CutraceError:
        assert not target.exists()
        return
    assert verify(trace) == []
    assert len(trace.launches) in (0, 2)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """A folder with a kernel, where `cutrace record` has run once, and how long that took."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "k.cu").write_text(KERNEL)
    took = []
    for _ in range(2):  # what is compiled once for all is there by the second time
        start = time.monotonic()
        subprocess.run(COMMAND, cwd=folder, check=True, capture_output=True)
        took.append(time.monotonic() - start)
    return folder, took[-1]


@pytest.mark.parametrize("number", range(KILLS))
def test_whatever_opens_after_the_command_was_killed_is_whole(
    number: int, recorded: tuple[Path, float]
) -> None:
    """Killed at any moment from its start to its end; what it had begun is looked at, too."""
    folder, duration = recorded
    child = subprocess.Popen(
        COMMAND, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(random.Random(number).random() * duration)
    child.send_signal(signal.SIGKILL)
    child.wait()
    begun = [*folder.glob(".*.partial")]
    opened = 0
    for trace in (folder / "k.cutrace", *(place / n for place in begun for n in ("new", "old"))):
        try:
            found = read_trace(trace)
        except CutraceError:
            continue
        assert verify(found) == []
        assert len(found.launches) == 2
        opened += 1
    assert opened, "neither the trace of before nor a new one is left"
    print("killed" if child.returncode < 0 else "done", len(begun), "begun")
    for place in begun:
        shutil.rmtree(place)


def test_a_disk_that_is_full_leaves_no_trace_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(
        "// cutrace: k<<<2048, 256>>>(a:i32[524288], w:i32[524288]=random:1)\n"
        "__global__ void k(int *a, const int *w)\n"
        "{ int i = blockIdx.x * 256 + threadIdx.x; a[w[i] & 524287] = i; }\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("cutrace: k.cutrace/0/")
    assert "cannot write it: File too large" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["k.cu"]


def test_a_build_that_is_terminated_leaves_no_temporary_files(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (tmp_path / "app.cu").write_text(f"int main() {{}} // {tmp_path}\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "cutrace", "record", "app.cu", "--"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        limit = time.monotonic() + 60
        while process.poll() is None and not [*scratch.rglob("tmpxft_*")]:
            assert time.monotonic() < limit
            time.sleep(0.02)
        assert process.poll() is None
        process.terminate()  # of this process alone, as a job is cancelled; nvcc runs on
        assert process.wait(30) == -signal.SIGTERM
    finally:
        process.kill()
    time.sleep(1)
    assert [*scratch.iterdir()] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app.cu", "scratch"]
