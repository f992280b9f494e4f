"""Verbs go on, and say the same, whatever has become of what was kept between runs."""

import shutil
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest

from cutrace.base import cache
from cutrace.commands._main import run
from cutrace.tracer.session import resources

ADD = """\
// cutrace: add<<<1024, 256>>>(out:i32[262144]=arange)
__global__ void add(int *out) { out[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
"""
VERBS = (
    ["record", "add.cu"],
    ["analyze", "add.cutrace"],
    ["why", "add.cutrace"],
    ["report", "add.cutrace", "-o", "report.html"],
)
Captured = pytest.CaptureFixture[str]


def cut(file: Path) -> None:
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x10
    file.write_bytes(data)


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.fixture
def ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> Iterator[Callable[[], tuple[list[str], list[str]]]]:
    """Runs all verbs, each as if in a process of its own; what they print, and tell on stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "add.cu").write_text(ADD)

    def ask_all() -> tuple[list[str], list[str]]:
        printed, told = [], []
        for words in VERBS:
            monkeypatch.setattr(cache, "_REPORTED", set())
            assert run(words) == 0
            wrote = capsys.readouterr()
            printed.append(wrote.out)
            told.append(wrote.err)
            if resources.assembler.cache_info().currsize:  # which keeps things when it is done
                resources.assembler().shutdown()
                resources.assembler.cache_clear()
        return [*printed, (tmp_path / "report.html").read_text()], told

    yield ask_all
    shutil.rmtree(tmp_path / "cache", ignore_errors=True)


def test_files_that_are_broken_are_told_once_and_change_no_answer(
    ask: Callable[[], tuple[list[str], list[str]]], tmp_path: Path
) -> None:
    whole, told = ask()
    assert told == [""] * len(VERBS)
    kept = sorted(file for file in (tmp_path / "cache").rglob("*") if file.is_file())
    assert len(kept) > 3
    for file, harm in zip(kept, cycle((cut, flip, empty)), strict=False):
        harm(file)
    answers, told = ask()
    assert answers == whole
    assert any("broken; its content is made again" in line for line in told)
    assert all(line.count("\n") <= 1 for line in told)
    assert ask() == (whole, [""] * len(VERBS))
    for file in (file for file in (tmp_path / "cache").rglob("*") if file.is_file()):
        file.unlink()
        file.mkdir()
    answers, told = ask()
    assert answers == whole
    assert all(line.count("\n") <= 1 for line in told)
    assert any("nothing can be kept between runs: Is a directory" in line for line in told)


def test_a_folder_of_no_use_is_told_once_and_changes_no_answer(
    ask: Callable[[], tuple[list[str], list[str]]], tmp_path: Path
) -> None:
    whole, _ = ask()
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("a file in its place")
    answers, told = ask()
    assert answers == whole
    assert all(line.count("\n") <= 1 for line in told)
    assert sum("nothing can be kept between runs" in line for line in told) >= 2
