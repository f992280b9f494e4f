"""What the documents show is what happens: their commands print that, their programs run.

In a document `cuda NAME` and `toml NAME` blocks are files, `python` blocks run, `console` blocks
hold commands after `$ ` with what they print, and a `diff` brings its own tests. All of a document
happens in one folder.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from cutrace.commands._main import run
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.interface.options import DEFAULT_DEVICE

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(p for folder in (".", "docs", "traces") for p in (ROOT / folder).glob("*.md"))
FENCE = re.compile(r"^```(?P<kind>\w+)[ ]?(?P<name>\S*)\n(?P<text>.*?)^```$", re.M | re.S)


@dataclass(frozen=True)
class Command:
    """A line after `$ ` and the lines that it prints."""

    line: str
    printed: str


def commands(text: str) -> list[Command]:
    """The commands of a console block."""
    parts = re.split(r"^\$ (.*)\n", text, flags=re.M)[1:]
    return [Command(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]


READ_BY = {
    "tests/golden/ptx/": "tests/golden/test_ptx.py",
    "tests/advice/": "tests/unit/advice/test_advice_pairs.py",
    "tests/cases/cases_plain.py": "tests/unit/analyzer/test_counter_twins.py",
}
"""Folders and files of cases, and the test file that reads each."""
ONLY = {"tests/cases/cases_plain.py": "record_everything-h200"}
"""Which of its tests, where their names do not have the name of the file."""


def what_runs(file: str) -> list[str]:
    """What runs a file of tests, or the cases in a file that tests read."""
    for cases, tests in READ_BY.items():
        if file.startswith(cases):
            return [tests, "-k", ONLY.get(file, Path(file).stem)]
    return [file]


def apply_and_test(diff: str, copy: Path) -> None:
    """Apply a diff to a copy of the package, run the tests that it adds or changes, and take it
    back."""
    if not copy.exists():  # compiled modules come along, those being written do not
        leave_out = shutil.ignore_patterns(".*", "build", "*.egg-info", "*.pyc.*")
        shutil.copytree(ROOT, copy, ignore=leave_out)
    subprocess.run(["git", "apply"], input=diff, text=True, check=True, cwd=copy)
    added = re.findall(r"^\+\+\+ b/(tests/.*)$", diff, flags=re.M)
    assert added
    environment = os.environ | {"PYTHONPATH": str(copy.parent)}
    for file in added:
        quick = ("--assert=plain", "-p", "no:cacheprovider")  # rewriting all modules takes seconds
        command = [sys.executable, "-m", "pytest", "-q", *quick, "-c", "pyproject.toml"]
        command += what_runs(file)
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    subprocess.run(["git", "apply", "-R"], input=diff, text=True, check=True, cwd=copy)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_shows_what_happens(
    document: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CUTRACE_DEVICE", raising=False)
    for block in FENCE.finditer(document.read_text(encoding="utf-8")):
        kind, name, text = block.groups()
        if kind in ("cuda", "toml") and name:
            Path(name).write_text(text, encoding="utf-8")
        elif kind == "python":
            exec(compile(text, f"{document.name}: {text.splitlines()[0]}", "exec"), {})
            capsys.readouterr()
        elif kind == "diff":
            apply_and_test(text, tmp_path / "copy" / "cutrace")
        elif kind == "console":
            for command in commands(text):
                program, *arguments = shlex.split(command.line)
                assert program == "cutrace"
                run(arguments)
                said = capsys.readouterr()
                assert (said.out + said.err).rstrip() == command.printed.rstrip(), command.line


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_settings_that_a_sentence_names_are_taken(document: Path) -> None:
    prose = FENCE.sub("", document.read_text(encoding="utf-8"))
    for span in re.findall(r"`(--set [^`]*)`", prose):
        settings = dict(re.findall(r"--set ([a-z0-9_.]+)=(\w+)", span))
        # banks of 8 bytes are Kepler's
        assert load_device("k20" if "banks.bank_bytes" in settings else DEFAULT_DEVICE, settings)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_no_document_installs_cutrace_by_a_name_that_no_index_has(document: Path) -> None:
    assert not re.search(r"(pip|uv|pipx) install cutrace\b", document.read_text(encoding="utf-8"))
