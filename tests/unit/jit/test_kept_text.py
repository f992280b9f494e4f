"""A kept text is found again for the same sources only, and machine code for the same processor."""

import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path

import pytest

from cutrace.jit import codegen_cache, machine_code

CALLER = """
from kept_called import Box, inner
from kept_number import FIRST

def outer(box: Box) -> int:
    return inner(box) + FIRST
"""
CALLED = """
class Box:
    x: int

def inner(box):
    return box.x
"""
FILES = {
    **{"kept_caller.py": CALLER, "kept_called.py": CALLED, "kept_number.py": "FIRST = 1\n"},
    "translator/translate.py": "ADD = 'add'\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules that count as the package's own, and a cache that is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(codegen_cache, "_PACKAGE", "kept_")
    monkeypatch.setattr(codegen_cache, "_FOLDER", tmp_path / "translator")
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text.replace("\\\n", "\n"))
    yield tmp_path
    _forget()


def _forget() -> None:
    """Let the next look at the modules be that of a new process."""
    for name in [name for name in sys.modules if name.startswith("kept_")]:
        del sys.modules[name]
    codegen_cache.source_of.cache_clear()
    codegen_cache._read.cache_clear()
    codegen_cache._translator.cache_clear()
    invalidate_caches()


def is_made(*more: str) -> bool:
    """Whether the text of `outer` is made, and not loaded."""
    _forget()
    made = []

    def make() -> str:
        made.append(1)
        return "text"

    outer = import_module("kept_caller").outer
    assert codegen_cache.cached_text([outer], *more, make=make) == "text"
    return bool(made)


def test_a_text_is_made_once(folder: Path) -> None:
    assert is_made()
    assert not is_made()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("kept_caller.py", "inner(box) + FIRST", "inner(box) - FIRST"),
        ("kept_called.py", "return box.x", "return box.x + 1"),
        ("kept_called.py", "x: int", "x: int; y: int"),
        ("kept_number.py", "FIRST = 1", "FIRST = 22"),
        ("translator/translate.py", "add", "subtract"),
    ],
)
def test_it_is_made_again_when_what_it_came_from_changes(
    folder: Path, file: str, old: str, new: str
) -> None:
    assert is_made()
    path = folder / file
    path.write_text(path.read_text().replace(old, new))
    assert is_made()
    assert not is_made()


def test_it_is_made_again_for_other_arguments_and_another_python(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_made("int")
    assert is_made("float")
    monkeypatch.setattr(sys, "version", "4.0")
    assert is_made("int")
    assert not is_made("int")


ONE = "define i64 @one() {\n  ret i64 1\n}\n"


def test_machine_code_is_kept_for_its_processor_and_version_of_llvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled: list[str] = []
    compile_ = machine_code._compile

    def watched(text: str, vectors: bool, effort: int) -> bytes:
        compiled.append(text)
        return compile_(text, vectors, effort)

    monkeypatch.setattr(machine_code, "_compile", watched)
    processor = machine_code._processor()
    for known in (processor, processor, f"{processor}.1"):
        monkeypatch.setattr(machine_code, "_processor", lambda known=known: known)
        monkeypatch.setattr(machine_code, "_LOADED", set())
        machine_code.compile_assembly(ONE)
    assert len(compiled) == 2
