"""What a verb writes replaces what cutrace wrote, or what its user named; nothing beside it."""

import errno
import json
import os
import stat
import threading
from pathlib import Path

import pytest
from hand_trace import Access, hand_trace
from warps import warp

from cutrace.analyzer.html.page import check_output, write_page
from cutrace.analyzer.sweep.destination import MARK, find_destination
from cutrace.analyzer.text.output import write_report
from cutrace.base.errors import CutraceError
from cutrace.commands._main import run
from cutrace.traces.writer import TraceWriter

PAGE = '<html><meta name="generator" content="cutrace-report-1">'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    hand_trace(tmp_path / "a.cutrace", [Access(warp(stride=4))])
    return tmp_path


def test_files_beside_an_archive_and_a_report_stay(here: Path) -> None:
    names = (".a.cutrace.zip.partial", ".r.html.part", "notes.txt")
    for name in names:
        (here / name).write_text("mine")
    for words in (["export", "a.cutrace", "--to", "zip"], ["report", "a.cutrace", "-o", "r.html"]):
        for _ in range(2):  # the second one replaces the first
            assert run(words) == 0
    assert {path.name for path in here.iterdir()} == {
        *(*names, "a.cutrace", "a.cutrace.zip", "r.html")
    }
    assert all((here / name).read_text() == "mine" for name in names)


@pytest.mark.parametrize("kind", ["text", "pipe", "folder", "other page"])
def test_what_is_no_report_is_not_replaced_by_one(kind: str, here: Path) -> None:
    target = here / "r.html"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "folder":
        target.mkdir()
    else:
        target.write_text("<html>" if kind == "other page" else "mine")
    before = target.lstat()
    assert run(["report", "a.cutrace", "-o", "r.html"]) == 2
    with pytest.raises(CutraceError):
        check_output(target)
    after = target.lstat()  # which was read
    for name in ("st_ino", "st_mode", "st_nlink", "st_size", "st_mtime_ns", "st_ctime_ns"):
        assert getattr(after, name) == getattr(before, name), name


def test_a_link_stays_and_its_file_is_written(here: Path) -> None:
    (here / "real.txt").write_text("old")
    (here / "real.txt").chmod(0o600)
    (here / "link.txt").symlink_to("real.txt")
    write_report(here / "link.txt", "new")
    assert (here / "link.txt").is_symlink()
    assert (here / "real.txt").read_text() == "new"
    assert stat.S_IMODE((here / "real.txt").stat().st_mode) == 0o600


def test_a_pipe_is_written_to_and_stays(here: Path) -> None:
    os.mkfifo(here / "pipe")
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append((here / "pipe").read_text()))
    reader.start()
    write_report(here / "pipe", "new")
    reader.join()
    assert got == ["new"]
    assert stat.S_ISFIFO((here / "pipe").lstat().st_mode)


def test_a_full_disk_leaves_the_file_that_was_there(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "r.txt").write_text("old")
    (here / "r.html").write_text(PAGE)

    def refuse(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = {path.name for path in here.iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", refuse)
        for write, name in ((write_report, "r.txt"), (write_page, "r.html")):
            with pytest.raises(CutraceError, match=f"{name}: cannot write it: No space left"):
                write(here / name, "new")
    assert ((here / "r.txt").read_text(), (here / "r.html").read_text()) == ("old", PAGE)
    assert {path.name for path in here.iterdir()} == before


@pytest.mark.parametrize("kind", ["empty", "files", "file", "link", "marked"])
def test_a_folder_in_the_way_of_a_sweeps_jobs_stays(kind: str, here: Path) -> None:
    parts = here / "t.csv.parts"
    if kind == "file":
        parts.write_text("mine")
    elif kind == "link":
        (here / "other").mkdir()
        parts.symlink_to("other")
    else:
        parts.mkdir()
        if kind != "empty":
            (parts / "notes.parquet").write_text("mine")
        if kind == "marked":
            (parts / MARK).write_text("mine")
    before = [(path, path.lstat().st_ino) for path in sorted(here.rglob("*"))]
    with pytest.raises(CutraceError, match=r"t\.csv\.parts: it is no sweep's"):
        find_destination(here / "t.csv").begin()
    assert [(path, path.lstat().st_ino) for path in sorted(here.rglob("*"))] == before


def test_what_is_put_among_a_sweeps_jobs_stays(here: Path) -> None:
    pl = pytest.importorskip("polars")
    out = find_destination(here / "t.csv")
    assert out.begin() == set()
    out.keep("0" * 24, pl.DataFrame({"a": [1]}))
    (here / "t.csv.parts" / "notes.txt").write_text("mine")
    out.close()
    assert out.begin() == {"0" * 24}
    out.write(pl.DataFrame({"a": [1]}))
    assert [path.name for path in (here / "t.csv.parts").iterdir()] == ["notes.txt"]


def test_a_project_at_an_address_is_not_replaced_by_a_trace(here: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.rm("/", recursive=True)
    manifest = (here / "a.cutrace/manifest.json").read_bytes()
    files = {
        "deep/b.cutrace/manifest.json": manifest,
        "more/manifest.json": manifest,
        "more/0/notes.arrow": b"mine",
        "other/manifest.json": b'{"format_version": 2, "header": {}}',
        "c.cutrace.zip": b"mine",
        "found.parts/notes.parquet": b"mine",
    }
    for name, data in files.items():
        store.pipe(f"/bucket/{name}", data)
    for name in ("deep", "more", "other", "c.cutrace.zip"):
        with pytest.raises(CutraceError, match="something other than a trace has this name"):
            TraceWriter(f"memory://bucket/{name}").close()
    with pytest.raises(CutraceError, match=r"found\.parts: it is no sweep's"):
        find_destination(Path("memory://bucket/found")).begin()
    assert {name: store.cat(f"/bucket/{name}") for name in files} == files


def test_a_folder_with_another_programs_manifest_is_no_trace(here: Path) -> None:
    pack = here / "pack"
    pack.mkdir()
    (pack / "manifest.json").write_text(json.dumps({"format_version": 2, "header": {}}))
    piped = here / "piped"
    piped.mkdir()
    os.mkfifo(piped / "manifest.json")
    for target in (pack, piped):
        with pytest.raises(CutraceError, match="a folder that is not a trace has this name"):
            TraceWriter(target)
        assert [path.name for path in target.iterdir()] == ["manifest.json"]
