"""Numbers that no option can mean: a message, whatever they are."""

from pathlib import Path

import pytest
from hand_trace import Access, hand_trace
from warps import warp

from cutrace.commands._main import run

LARGE = (str(1 << 64), str((1 << 63) - 1), "1" + "0" * 40, "9" * 5000, "9" * 400 + "K")
ODD = ("-1", "0", "nan", "inf", "1e400", "²", "", "0x10", "99999999999T")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hand_trace(tmp_path_factory.mktemp("t") / "a.cutrace", [Access(warp(stride=4))]).path


def message(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command line that cannot be answered says."""
    assert run(arguments) == 2
    said = capsys.readouterr().err
    assert "internal error" not in said
    return said


@pytest.mark.parametrize("number", [*LARGE, *ODD])
@pytest.mark.parametrize("words", ["--align=data={}", "--pad=data={}", "--align=data=128+{}"])
def test_changes_of_arrays(
    trace: Path, number: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if words.endswith("+{}") and number == "0":
        return
    option = words[2:].partition("=")[0]
    arguments = ["analyze", str(trace), "-d", "h100", words.format(number)]
    assert option in message(arguments, capsys)


@pytest.mark.parametrize("number", LARGE)
@pytest.mark.parametrize("option", ["--registers", "--profiled-blocks", "--jobs", "--threshold"])
def test_options_of_a_replay(
    trace: Path, number: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = message(["analyze", str(trace), "-d", "h100", f"{option}={number}"], capsys)
    assert option.strip("-").replace("-", "_") in said.replace("-", "_")


@pytest.mark.parametrize("number", [*LARGE, "nan", "inf", "99999999999T"])
@pytest.mark.parametrize(
    "key", ["l2.bytes", "banks.banks", "chip.sms", "l1.bytes", "chip.clock_mhz"]
)
def test_values_of_a_device(
    trace: Path, number: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = message(["analyze", str(trace), "-d", "h100", f"--set={key}={number}"], capsys)
    assert key.partition(".")[2] in said or "too many digits" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["info", "{}", "--launch=9{}"],
        ["why", "{}", "k.cu:9{}"],
        ["why", "{}", "--access=0.0.0.9{}.0"],
        ["analyze", "{}", "--launch=9{}"],
    ],
)
def test_numbers_of_launches_lines_and_accesses(
    trace: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = arguments
    message([first, second.format(trace), third.format("9" * 5000)], capsys)
