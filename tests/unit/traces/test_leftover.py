"""What a killed process leaves goes with the next run; nothing of a living one, or of another."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hand_trace import hand_trace

import cutrace
from cutrace.cli import run
from cutrace.traces.folder import leftover
from cutrace.traces.reader import read_trace
from cutrace.traces.writer import TraceWriter

pytestmark = pytest.mark.skipif(not leftover.LOCKS, reason="files are not locked here")

KERNEL = "// cutrace: k<<<1, 32>>>(a:i32[32])\n__global__ void k(int *a) { a[threadIdx.x] = 1; }\n"
OPEN = """
import sys, time
import cutrace

with cutrace.Session(sys.argv[1]), cutrace.Session() as other:
    print(other.trace, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """The current folder, and the system's for a moment: both new."""
    here, scratch = tmp_path / "here", tmp_path / "scratch"
    here.mkdir()
    scratch.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("TMPDIR", str(scratch))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return here, scratch


@contextmanager
def recording(target: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process with two open sessions: one beside `target`, one for a moment."""
    with subprocess.Popen(
        [sys.executable, "-c", OPEN, str(target)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        try:
            yield child
        finally:
            child.kill()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(
    places: tuple[Path, Path],
) -> None:
    here, scratch = places
    with recording(here / "live.cutrace"), recording(here / "dead.cutrace") as dead:
        assert (len(names(here)), len(names(scratch))) == (2, 2)
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        assert run(["devices", "h100"]) == 0
        (left,) = names(here)
        assert left.startswith(".live.cutrace.")
        assert len(names(scratch)) == 1


def test_the_next_trace_beside_it_is_enough(places: tuple[Path, Path], tmp_path: Path) -> None:
    here, scratch = places
    with recording(here / "dead.cutrace") as dead:
        dead.send_signal(signal.SIGKILL)
    os.chdir(tmp_path)
    with cutrace.Session(here / "new.cutrace"):
        pass
    assert names(here) == ["new.cutrace"]
    with cutrace.Session() as gpu:
        assert names(scratch) == [gpu.trace.parent.name]


@pytest.mark.parametrize("verb", ["record", "analyze"])
def test_a_killed_command_leaves_nothing_once_another_ran(
    verb: str, places: tuple[Path, Path]
) -> None:
    here, scratch = places
    slow = KERNEL.replace("a[threadIdx.x] = 1;", "for (;;) atomicAdd(a, 1);")
    Path("slow.cu").write_text(slow)
    with subprocess.Popen(
        [sys.executable, "-m", "cutrace", verb, "slow.cu", "--max-instructions", str(2**31)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as child:
        while not [*here.glob(".*.partial"), *scratch.glob("cutrace-*/.*.partial")]:
            assert child.poll() is None
        child.kill()
    assert run(["devices", "h100"]) == 0
    assert (names(here), names(scratch)) == (["slow.cu"], [])


@pytest.mark.parametrize("moment", ["os.open", "os.rename"])
def test_one_killed_before_it_had_its_lock_leaves_nothing(
    moment: str, places: tuple[Path, Path]
) -> None:
    here, scratch = places
    for kind in ("Session('dead.cutrace')", "Session()"):
        killed = f"""
import os
import cutrace
from cutrace.traces.folder import leftover

first = {moment}
def kill(path, *arguments):
    if str(path).endswith(leftover.DRAFT):
        os.kill(os.getpid(), 9)
    return first(path, *arguments)
{moment} = kill
cutrace.{kind}.__enter__()
"""
        child = subprocess.run([sys.executable, "-c", killed], check=False)
        assert child.returncode == -signal.SIGKILL
    assert (len(names(here)), len(names(scratch))) == (1, 1)
    assert run(["devices", "h100"]) == 0
    assert (names(here), names(scratch)) == ([], [])


def test_a_folder_in_the_making_stays(places: tuple[Path, Path]) -> None:
    _, scratch = places
    young = scratch / "cutrace-abcdefgh"
    with leftover._shared(scratch):
        young.mkdir()
        assert run(["devices", "h100"]) == 0
        assert young.is_dir()
    _another_process()
    assert run(["devices", "h100"]) == 0
    assert not young.exists()


def _another_process() -> None:
    """From here on as in a process that has not looked yet."""
    leftover._sweep_scratch.cache_clear()


def test_a_process_does_not_look_for_leftovers_each_time(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftover, "OFTEN", 1e9)
    leftover.claim_scratch().release()
    left = places[1] / "cutrace-abcdefgh"
    left.mkdir()
    leftover.claim_scratch().release()
    assert left.is_dir()
    _another_process()
    leftover.claim_scratch().release()
    assert not left.exists()


def test_what_is_not_ours_stays(places: tuple[Path, Path]) -> None:
    here, scratch = places
    for folder in (
        *(scratch / "cutrace-mine", scratch / "other-12", here / ".x.cutrace.partial"),
        *(here / ".x.cutrace.0123abcd.partial", here / "y.cutrace.0123abcd.partial"),
    ):
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
    (scratch / "cutrace-file").write_text("mine")
    (scratch / "other-12" / leftover.LOCK).write_text("")
    (scratch / "cutrace-link").symlink_to(scratch / "other-12")
    before = [*here.rglob("*"), *scratch.rglob("*")]
    assert run(["devices", "h100"]) == 0
    assert [*here.rglob("*"), *scratch.rglob("*")] == before


def test_a_folder_of_another_user_stays(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, scratch = places
    with recording(places[0] / "dead.cutrace") as dead:
        dead.send_signal(signal.SIGKILL)
    theirs = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: theirs)
    assert run(["devices", "h100"]) == 0
    assert len(names(scratch)) == 1


@pytest.mark.parametrize("parts", [("old",), ("old", "new")])
def test_an_exchange_that_was_broken_off_leaves_a_whole_trace(
    places: tuple[Path, Path], parts: tuple[str, ...]
) -> None:
    """The old trace had been moved away, and the new one had not got its name yet."""
    here, _ = places
    workshop = here / ".x.cutrace.0123abcd.partial"
    workshop.mkdir()
    (workshop / leftover.LOCK).write_text("")
    for part in parts:
        hand_trace(workshop / part, []).path.joinpath("manifest.json").touch()
    with TraceWriter(here / "other.cutrace"):
        pass
    assert names(here) == ["other.cutrace", "x.cutrace"]
    assert len(read_trace(here / "x.cutrace").launches) == 1
