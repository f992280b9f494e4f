"""Sources that are saved while nvcc compiles them."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from cutrace.base.errors import CutraceError
from cutrace.tracer.program import build
from cutrace.tracer.program.startup import nvcc_host

COMMAND = ["nvcc", "app.cu"]


@pytest.fixture
def saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is saved as the header in the midst of each run of a compiler, which copies it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "app.h").write_text("first")
    texts = list[str]()

    def run(command: Sequence[str]) -> None:
        made, depends = (Path(command[command.index(each) + 1]) for each in ("-o", "-MF"))
        made.write_text(Path("app.h").read_text())
        depends.write_text("app : app.h\n")
        if texts:
            new = Path("app.h.new")
            new.write_text(texts.pop(0))
            new.replace("app.h")

    monkeypatch.setattr(build, "_run", run)
    return texts


def built() -> str:
    toolkit = SimpleNamespace(version="13.0", root=Path("/toolkit"))
    builder = build.Builder(toolkit, "g++", Path(), Path())  # type: ignore[arg-type]
    return build._built(builder, COMMAND, "app").read_text()


def test_a_program_is_of_the_sources_that_were_there_when_it_was_built(saves: list[str]) -> None:
    saves += ["second", "third"]
    assert built() == "third"
    assert built() == "third"
    saves += ["fifth"]
    Path("app.h").write_text("fourth")
    assert built() == "fifth"
    for text in ("third", "fourth", "second", "first"):
        Path("app.h").write_text(text)
        assert built() == text


def test_sources_that_never_rest_are_said(saves: list[str]) -> None:
    saves += [f"text {number}" for number in range(9)]
    with pytest.raises(CutraceError, match="app: its sources change whenever nvcc compiles them"):
        built()


def test_nothing_is_kept_of_a_source_of_pycuda_whose_header_changes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUTRACE_SOURCES", str(tmp_path / "kept"))
    monkeypatch.setenv("CUTRACE_PYTHON", "python")
    header = tmp_path / "app.h"
    header.write_text("first")
    saves = ["second"]

    def run(command: Sequence[str], **_: object) -> SimpleNamespace:
        made, depends = (Path(command[command.index(each) + 1]) for each in ("-o", "-MF"))
        made.write_text(header.read_text())
        depends.write_text(f"kernel.ptx : {header}\n")
        if saves:
            header.write_text(saves.pop())
        return SimpleNamespace(returncode=0, stdout="", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    assert nvcc_host.make_ptx("k", []).ptx == b"first"
    assert nvcc_host.make_ptx("k", []).ptx == b"second"
