"""Traces elsewhere, read through fsspec; its memory is the store."""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hand_trace import Access, hand_trace, launch, write_rows
from warps import warp

from cutrace.base.claim import Claim
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.traces import remote
from cutrace.traces.address import url_of
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.remote import fetch
from cutrace.traces.writer import TraceWriter

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(autouse=True)
def nothing_fetched() -> None:
    """As at the start of a process."""
    fetch.cache_clear()


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """A trace of two launches' worth of loads, of which a copy is in the store."""
    made = hand_trace(tmp_path / "a.cutrace", [Access(warp(stride=4 * n)) for n in range(1, 3)])
    store = fsspec.filesystem("memory")
    store.rm("/", recursive=True)
    store.put(str(made.path), "/bucket/a.cutrace", recursive=True)
    return made


@pytest.mark.parametrize("url", ["memory://bucket/a.cutrace", Path("memory://bucket/a.cutrace")])
def test_a_trace_elsewhere_is_read_as_one_here(url: str | Path, trace: Trace) -> None:
    """Also where a path was made of its address, as on the command line."""
    found = read_trace(url)
    assert found.manifest == trace.manifest
    assert found.launches[0].accesses().equals(trace.launches[0].accesses())
    assert read_trace(url).path == found.path


def test_a_file_is_one_however_it_is_addressed(trace: Trace) -> None:
    for url in (f"file://{trace.path}", Path(f"file://{trace.path}")):
        assert read_trace(url).manifest == trace.manifest


def test_launches_that_share_their_tables_are_found_at_a_file(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "b.cutrace") as made:
        for _ in range(2):
            with made.launch(launch()) as rows:
                write_rows(rows, [Access(warp(stride=4))])
    first, second = read_trace(f"file://{tmp_path}/b.cutrace").launches
    assert first.place == second.place
    assert first.accesses().equals(second.accesses())


def test_a_file_that_does_not_arrive_as_a_whole_is_told(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store has more bytes than are sent."""
    store = fsspec.filesystem("memory")
    size = type(store).size

    def more(self: Any, path: str) -> int:
        return int(size(self, path)) + 7 * path.endswith("accesses.arrow")

    monkeypatch.setattr(type(store), "size", more)
    message = r"memory://bucket/a\.cutrace: cut off in the middle: \d+ of \d+ bytes of accesses\.a"
    with pytest.raises(CutraceError, match=message):
        read_trace("memory://bucket/a.cutrace")


def test_a_connection_that_ends_in_the_middle_is_told(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each store raises what its own library does, aiohttp's ClientPayloadError for one."""

    class PayloadError(Exception):
        pass

    def ends(*_: object, **__: object) -> None:
        raise PayloadError("received 400 of 800 bytes")

    monkeypatch.setattr(type(fsspec.filesystem("memory")), "open", ends)
    message = r"memory://bucket/a\.cutrace: cannot read it: received 400 of 800 bytes"
    with pytest.raises(CutraceError, match=message):
        read_trace("memory://bucket/a.cutrace")


@pytest.mark.parametrize("name", ["b.cutrace", "b.cutrace.zip"])
def test_a_trace_is_written_to_an_address_and_replaces_the_one_there(
    name: str, trace: Trace
) -> None:
    url = f"memory://bucket/{name}"
    for stride in (4, 8):
        hand_trace(Path(url), [Access(warp(stride=stride))])
        addresses = read_trace(url).launches[0].accesses()["addresses"].to_pylist()[0]
        assert addresses[1] - addresses[0] == stride


def test_a_trace_replaces_nothing_else_at_its_address(trace: Trace) -> None:
    store = fsspec.filesystem("memory")
    store.pipe("/bucket/b.cutrace/notes.txt", b"mine")
    with pytest.raises(CutraceError, match="something other than a trace has this name"):
        hand_trace(Path("memory://bucket/b.cutrace"), [Access(warp(stride=4))])
    assert store.cat("/bucket/b.cutrace/notes.txt") == b"mine"
    with pytest.raises(CutraceError, match=r"nowhere://a\.cutrace: cannot write it: .*nowhere"):
        hand_trace(Path("nowhere://a.cutrace"), [Access(warp(stride=4))])


def test_a_trace_that_was_cut_off_when_it_was_sent_is_told_with_its_address(trace: Trace) -> None:
    store = fsspec.filesystem("memory")
    name = "/bucket/a.cutrace/0/accesses.arrow"
    store.pipe(name, store.cat(name)[:-10])
    with pytest.raises(CutraceError, match=r"memory://bucket/a\.cutrace: .*truncated"):
        read_trace("memory://bucket/a.cutrace")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "memory://bucket/b.cutrace",
            "memory://bucket/b.cutrace: not a trace: nothing is there, or nobody",
        ),
        ("nowhere://bucket/a.cutrace", "nowhere://bucket/a.cutrace: cannot read it: .*nowhere"),
    ],
)
def test_what_is_not_there_is_told(url: str, message: str, trace: Trace) -> None:
    with pytest.raises(CutraceError, match=message):
        read_trace(url)


def test_without_fsspec_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(CutraceError, match=r"pip install 'cutrace\[remote\]'"):
        read_trace("memory://bucket/a.cutrace")


@pytest.mark.parametrize("path", ["a.cutrace", "/tmp/a.cutrace", "c:/a.cutrace", "a/b:c.cutrace"])
def test_paths_of_this_machine_are_no_addresses(path: str) -> None:
    assert url_of(path) == ""


@pytest.mark.parametrize(
    "words",
    [
        ["info", "memory://bucket/a.cutrace"],
        ["analyze", "memory://bucket/a.cutrace", "--launch", "9"],
        ["analyze", "memory://bucket/a.cutrace", "--align", "zz=128"],
        ["analyze", "memory://bucket/a.cutrace", "--max-trace-size", "3K"],
        ["occupancy", "memory://bucket/a.cutrace", "--threads", "3"],
        ["serve", "memory://bucket/a.cutrace"],
        ["record", "memory://bucket/a.cutrace/k.cu"],
    ],
)
def test_an_address_is_told_as_it_was_given(
    words: list[str], trace: Trace, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not with one slash, as a path has it, and not as where its copy lies."""
    run(words)
    told = "".join(capsys.readouterr())
    assert "memory://bucket/a.cutrace" in told
    assert "memory:/bucket" not in told
    assert "cutrace-" not in told


def test_no_more_is_fetched_than_the_store_states(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = type(fsspec.filesystem("memory"))
    monkeypatch.setattr(store, "size", lambda *_: 100)
    with pytest.raises(CutraceError, match=r"more than the 100 bytes of manifest\.json"):
        read_trace("memory://bucket/a.cutrace")


@pytest.mark.parametrize("after", range(1, 4))
def test_a_trace_that_is_replaced_while_it_is_fetched_is_told(
    after: int, trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many of its files by another of the same sizes, whose addresses are others."""
    other = hand_trace(tmp_path / "b.cutrace", [Access(warp(stride=8 * n)) for n in range(1, 3)])
    store, copied = fsspec.filesystem("memory"), list[str]()
    copy = remote._copy

    def copy_some(*arguments: Any) -> int:
        copied.append(arguments[1])
        if len(copied) == after + 1:
            store.rm("/bucket/a.cutrace", recursive=True)
            store.put(str(other.path), "/bucket/a.cutrace", recursive=True)
        return copy(*arguments)

    monkeypatch.setattr(remote, "_copy", copy_some)
    with pytest.raises(CutraceError, match=r"a\.cutrace: (replaced while|more than)"):
        read_trace("memory://bucket/a.cutrace")
    assert read_trace("memory://bucket/a.cutrace").manifest == other.manifest


def test_where_no_size_is_stated_there_is_a_limit(
    trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all files together; a larger one can be asked for."""
    monkeypatch.setattr(type(fsspec.filesystem("memory")), "size", lambda *_: None)
    total = sum(path.stat().st_size for path in trace.path.rglob("*") if path.is_file())
    monkeypatch.setattr(remote, "UNSTATED_BYTES", total - 1)
    with pytest.raises(CutraceError, match=r"the store does not state .* by \$CUTRACE_MAX_FETCH"):
        read_trace("memory://bucket/a.cutrace")
    monkeypatch.setenv("CUTRACE_MAX_FETCH", f"{total}")
    assert read_trace("memory://bucket/a.cutrace").manifest == trace.manifest


def test_what_is_stated_is_looked_at_before_anything_is_fetched(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUTRACE_MAX_FETCH", "1K")
    with pytest.raises(CutraceError, match=r"a\.cutrace: \d+ bytes; \$CUTRACE_MAX_FETCH is 1K$"):
        read_trace("memory://bucket/a.cutrace")
    monkeypatch.setenv("CUTRACE_MAX_FETCH", "much")
    with pytest.raises(CutraceError, match=r"\$CUTRACE_MAX_FETCH is 'much': expected bytes"):
        read_trace("memory://bucket/a.cutrace")
    monkeypatch.delenv("CUTRACE_MAX_FETCH")
    monkeypatch.setattr(type(fsspec.filesystem("memory")), "size", lambda *_: 1 << 60)
    with pytest.raises(CutraceError, match=r"\d{19} bytes, and .* has room for \d+$"):
        read_trace("memory://bucket/a.cutrace")


ENDLESS = """
import io, os, sys
import fsspec
from fsspec.implementations.memory import MemoryFileSystem
from cutrace.commands._main import main

class Endless(io.RawIOBase):
    count = 0

    def read(self, size=-1):
        self.count += 1
        if self.count == 3:
            print("begun", flush=True)
        if self.count > 3:
            __import__("time").sleep(100)
        return bytes(1000)

MemoryFileSystem.isfile = lambda *_: True
MemoryFileSystem.size = lambda *_: None
MemoryFileSystem.open = lambda *_: Endless()
sys.argv = ["cutrace", "info", "memory://bucket/a.cutrace.zip"]
main()
"""


@pytest.mark.parametrize(("end", "left"), [(signal.SIGTERM, 0), (signal.SIGKILL, 1)])
def test_a_fetch_that_is_ended_leaves_nothing(
    end: signal.Signals, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After SIGKILL nothing once another ran."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        assert len([*tmp_path.iterdir()]) == 1
        child.send_signal(end)
    assert child.returncode == -end
    assert len([*tmp_path.iterdir()]) == left
    assert run(["devices", "h100"]) == 0
    assert [*tmp_path.iterdir()] == []


def test_a_name_that_leads_out_of_the_folder_is_not_taken(tmp_path: Path) -> None:
    claim = Claim(tmp_path)
    for url in ("memory://bucket/..", "memory://bucket/a/..", "memory://"):
        assert remote.place_in(claim, url).parent.resolve() == claim.folder
        assert remote.place_in(claim, url).resolve() != claim.folder
    claim.release()
