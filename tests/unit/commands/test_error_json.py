"""Errors and faults as one JSON object, for every verb with `--format json`."""

import json
from pathlib import Path

import pytest
from typer.main import get_command

from cutrace.base.errors import CutraceError, describe_error, place_of
from cutrace.commands._application import assemble
from cutrace.commands._main import run

LAUNCH = "// cutrace: k<<<1, 32>>>(x:f32[32])\n"
SOURCES = {
    "bad.cu": f"__global__ void k(float* x) {{ x[threadIdx.x] = y; }}\n{LAUNCH}",
    "outside.cu": f"__global__ void k(float* x) {{\n  x[threadIdx.x + 1] = 1;\n}}\n{LAUNCH}",
    "never.cu": "__global__ void k(float* x) { x[threadIdx.x] = 1; }\n",
    "uninitialized.cu": f"__global__ void k(float* x) {{\n  x[threadIdx.x] += 1;\n}}\n{LAUNCH}",
    "endless.cu": "__global__ void k(volatile int* x) {\n  while (x[0] == 0) ;\n}\n"
    "// cutrace: k<<<1, 32>>>(x:i32[32])\n",
}
FAILING = {
    "advise": "advise missing.cutrace",
    "analyze": "analyze missing.cutrace",
    "check": "check missing.cutrace --races",
    "compare": "compare missing.cutrace other.cutrace",
    "counters": "counters no_such_counter",
    "devices": "devices no_such_device",
    "info": "info missing.cutrace",
    "judge": "judge missing.cu other.cu",
    "occupancy": "occupancy missing.cutrace",
    "sweep": "sweep missing.toml",
    "why": "why missing.cutrace",
}
"""A command line that fails, by verb."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def failed(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, dict[str, object]]:
    """Run a command line that fails; return its status and the one object on stdout."""
    status = run([*line.split(), "--format", "json"])
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["format"] == "cutrace-error-1"
    assert shown.err.startswith("cutrace: ")
    assert document["error"]["message"] in shown.err
    return status, document["error"]


def verbs_with_json() -> list[str]:
    commands = get_command(assemble()).commands  # type: ignore[attr-defined]
    return sorted(
        name
        for name, command in commands.items()
        for option in command.params
        if "--format" in option.opts and "json" in (option.metavar or "")
    )


def test_every_verb_with_json_is_here() -> None:
    assert verbs_with_json() == sorted(FAILING)


@pytest.mark.parametrize("line", FAILING.values(), ids=FAILING)
def test_a_failing_verb_prints_its_error_as_json(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, error = failed(capsys, line)
    assert (status, error["kind"], error["line"]) == (2, "request", None)


@pytest.mark.parametrize(
    ("line", "status", "kind", "cause", "at"),
    [
        ("analyze bad.cu", 2, "build", None, 1),
        ("analyze outside.cu", 1, "fault", "outside", 2),
        ("analyze never.cu", 2, "launch", None, None),
        ("why uninitialized.cu --check-uninitialized", 1, "fault", "uninitialized", 2),
        ("advise endless.cu", 1, "fault", "waiting", 2),
    ],
)
def test_an_error_names_what_failed_and_where(
    line: str,
    status: int,
    kind: str,
    cause: str | None,
    at: int | None,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended, error = failed(capsys, line)
    assert (ended, error["kind"], error["cause"], error["line"]) == (status, kind, cause, at)
    assert error["file"] == (line.split()[1] if at else None)


def test_a_fault_names_kernel_thread_and_block(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, error = failed(capsys, "analyze outside.cu")
    assert error["kernel"] == "k"
    assert (error["thread"], error["block"]) == ([31, 0, 0], [0, 0, 0])


def test_an_unknown_option_is_an_error_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    status, error = failed(capsys, "analyze --no-such-option")
    assert (status, error["kind"]) == (2, "request")


def test_a_failed_check_prints_its_report_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "outside.cu", "--memory", "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "cutrace-check-1"
    assert [check["holds"] for check in document["checks"]] == [False]


def test_without_json_nothing_is_on_stdout(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["analyze", "bad.cu"]) == 2
    assert capsys.readouterr().out == ""


def test_errors_that_are_not_ours_have_kinds_too() -> None:
    assert describe_error(MemoryError())["kind"] == "system"
    assert describe_error(FileNotFoundError(2, "no such file", "a"))["kind"] == "system"
    assert describe_error(KeyError("x"))["kind"] == "internal"
    assert describe_error(CutraceError("x"))["kind"] == "request"


def test_a_message_without_a_file_has_no_place() -> None:
    assert place_of("no device 'h10'; nearest: h100") is None
    assert place_of("in 3:4, at 5:6") is None
