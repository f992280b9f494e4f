"""What a killed process leaves goes with the next run; nothing of a living one, or of another."""

import os
import pkgutil
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hand_trace import hand_trace

import cutrace
from cutrace.base import claim
from cutrace.commands._main import run
from cutrace.traces.reader import read_trace
from cutrace.traces.writer import TraceWriter

pytestmark = pytest.mark.skipif(not claim.LOCKS, reason="files are not locked here")

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
        assert "live.cutrace" in (here / left / claim.MARK).read_text()
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


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize(
    "moment",
    [
        "os.link",
        "pathlib.Path.mkdir",
        "os.rename",
        "cutrace.base.claim._empty",
        "pathlib.Path.rmdir",
    ],
)
@pytest.mark.parametrize("target", ["", "dead.cutrace"])
def test_one_killed_at_any_step_leaves_nothing_once_another_ran(
    target: str, moment: str, is_done: bool, places: tuple[Path, Path]
) -> None:
    """While its folder is made, and while it is removed: before and after each step."""
    step = pkgutil.resolve_name(moment)

    def kill(*arguments: Any, **named: Any) -> None:
        if is_done:
            step(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    if not (child := os.fork()):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(moment, kill)
            claim.Claim(places[0], target).release()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    claim.sweep(places[0])
    assert names(places[0]) == []


def _another_process() -> None:
    """From here on as in a process that has not looked yet."""
    claim._sweep_scratch.cache_clear()


def _killed(place: Path, target: str = "") -> Path:
    """A folder that a killed process left, with something in it."""
    made = claim.Claim(place, target)
    (made.folder / "data").mkdir()
    (made.folder / "data" / "file").write_text("")
    twin = made.folder.with_name("twin")
    shutil.copytree(made.folder, twin)
    made.release()
    twin.rename(made.folder)
    return made.folder


def test_a_process_does_not_look_for_leftovers_each_time(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "OFTEN", 1e9)
    claim.claim_scratch().release()
    left = _killed(places[1])
    claim.claim_scratch().release()
    assert left.is_dir()
    _another_process()
    claim.claim_scratch().release()
    assert not left.exists()


def _foreign(place: Path) -> None:
    """Make what is not ours under our names, and under names like ours, in all kinds of ways."""
    left = _killed(place)
    mark = (left / claim.MARK).read_text()
    shutil.rmtree(left)
    number = iter(range(100))

    def new(begin: str = "cutrace-", end: str = "") -> Path:
        folder = place / f"{begin}{next(number):032x}{end}"
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
        return folder

    def say(folder: Path, text: str) -> None:
        (folder / claim.MARK).write_text(text.replace(left.name, folder.name))

    say(new(), mark.replace(f"user {os.getuid()}", f"user {os.getuid() + 1}"))
    say(new(), mark.replace(os.uname().nodename, "another"))
    say(new(), mark + "and more\n")
    say(new(".cutrace-", ".partial"), f'{mark}Its target is "../x".\n')
    say(new(".cutrace-", ".partial"), f'{mark}Its target is "\\x".\n')
    (new() / claim.MARK).write_text(mark)
    (new() / claim.MARK).write_text("")
    (new() / claim.MARK).mkdir()
    os.mkfifo(new() / claim.MARK)
    named = new()
    (place / "marked").write_text(mark.replace(left.name, named.name))
    (named / claim.MARK).symlink_to(place / "marked")
    twice = new()
    say(twice, mark)
    os.link(twice / claim.MARK, place / "twice")
    full = new()
    (place / f"{full.name}{claim.BESIDE}").write_text(mark.replace(left.name, full.name))
    (place / f"cutrace-{next(number):032x}").write_text(mark)
    (place / f"cutrace-{next(number):032x}").symlink_to(full)
    (place / f"cutrace-{next(number):032x}").mkdir()
    (place / f"cutrace-{next(number):032x}{claim.BESIDE}").write_text("mine")
    os.mkfifo(place / f"cutrace-{next(number):032x}{claim.BESIDE}")
    for name, lock in (("test_env", ".lock"), ("abcdefgh", ".lock"), ("programs", "")):
        (place / f"cutrace-{name}").mkdir()
        if lock:
            (place / f"cutrace-{name}" / lock).write_text("")
            (place / f"cutrace-{name}" / "data").write_text("mine")
    (place / ".x.cutrace.0123abcd.partial").mkdir()


def _everything(place: Path) -> list[tuple[str, int, int, str]]:
    found = []
    for path in sorted(place.rglob("*")):
        status = path.lstat()
        text = path.read_text() if stat.S_ISREG(status.st_mode) else ""
        found.append((str(path), status.st_mode, status.st_mtime_ns, text))
    return found


def test_what_is_not_ours_stays(places: tuple[Path, Path]) -> None:
    """By its name alone nothing is ours; a process that is named, and has ended, is not enough."""
    here, scratch = places
    for place in places:
        _foreign(place)
    before = [_everything(place) for place in places]
    assert min(map(len, before)) > 30
    assert run(["devices", "h100"]) == 0
    _another_process()
    with TraceWriter(here / "a.cutrace"), cutrace.Session():
        pass
    shutil.rmtree(here / "a.cutrace")
    claim.sweep(scratch)
    for place, kept in zip(places, before, strict=True):
        assert {*kept} <= {*_everything(place)}


def test_what_took_the_place_of_a_claim_stays(tmp_path: Path) -> None:
    made = claim.Claim(tmp_path)
    shutil.rmtree(made.folder)
    made.folder.mkdir()
    (made.folder / "notes.txt").write_text("mine")
    made.release()
    assert names(made.folder) == ["notes.txt"]


def test_what_cannot_be_removed_keeps_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = claim.Claim(tmp_path)
    (made.folder / "file").write_text("")
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", lambda *_, **__: None)
        made.release()
    assert names(made.folder) == [claim.MARK, "file"]
    claim.sweep(tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", ["fork", "start"])
def test_a_forked_child_leaves_all_to_its_parent(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it ends: one that was forked plainly, and one of `multiprocessing`."""
    monkeypatch.chdir(tmp_path)
    text = f"""
import multiprocessing, os, sys
import cutrace

def fork(end):
    if (pid := os.fork()) == 0:
        end()
        sys.exit(0)
    os.waitpid(pid, 0)

def start(end):
    process = multiprocessing.get_context("fork").Process(target=end)
    process.start()
    process.join()

ends = (lambda: None, lambda: sys.exit(1), lambda: os._exit(0), lambda: 1 / 0, lambda: os.abort())
with cutrace.Session("a.cutrace") as gpu, cutrace.Session() as other:
    k = gpu.compile("__global__ void k(int *a) {{ *a = 1; }}").get_function("k")
    a = gpu.device_array(1, "i4")
    for end in ends:
        k[1, 1](a)
        {kind}(end)
print(len(cutrace.read_trace("a.cutrace").launches), len(cutrace.read_trace(other.trace).launches))
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.stdout, done.returncode) == ("5 0\n", 0), done.stderr


def test_a_forked_child_that_uses_its_parents_session_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can open one of its own, also where its parent has asked the assembler before."""
    monkeypatch.chdir(tmp_path)
    text = """
import os, sys
import cutrace

SOURCE = "__global__ void k(int *a) { *a = 1; }"
with cutrace.Session("a.cutrace") as gpu:
    k = gpu.compile(SOURCE).get_function("k")
    a = gpu.device_array(1, "i4")
    k[1, 1](a)
    if (pid := os.fork()) == 0:
        for act in (
            lambda: k[1, 1](a), lambda: gpu.device_array(1), lambda: gpu.compile(SOURCE),
            lambda: a.copy_to_device([1]), lambda: gpu.__exit__(None, None, None),
        ):
            try:
                act()
            except cutrace.CutraceError as error:
                assert f"to process {os.getppid()}, of which this one is a fork" in str(error)
            else:
                os._exit(1)
        with cutrace.Session("b.cutrace") as own:
            own.compile(SOURCE).get_function("k")[1, 1](own.device_array(1, "i4"))
        sys.exit(7)
    _, status = os.waitpid(pid, 0)
    k[1, 1](a)
print(status >> 8, [len(cutrace.read_trace(f"{n}.cutrace").launches) for n in "ab"])
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=100, check=False
    )
    assert (done.stdout, done.returncode) == ("7 [2, 1]\n", 0), done.stderr


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
    workshop = _killed(here, "x.cutrace")
    for part in parts:
        hand_trace(workshop / part, []).path.joinpath("manifest.json").touch()
    with TraceWriter(here / "other.cutrace"):
        pass
    assert names(here) == ["other.cutrace", "x.cutrace"]
    assert len(read_trace(here / "x.cutrace").launches) == 1
