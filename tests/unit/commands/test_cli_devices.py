"""Devices at the command line: many by a pattern, and files of one's own in every verb."""

import shlex
from pathlib import Path

import pytest

import cutrace
from cutrace.commands._main import run
from cutrace.models.replay.device.catalog import device_names

KERNEL = "__global__ void turn(int *out) { out[threadIdx.x ^ 1] = threadIdx.x; }\n"
HALF = 'name = "Half an H100"\nbase = "h100"\n\n[chip]\nsms = 66\n'


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A trace of one warp, in a folder with a device file."""
    monkeypatch.chdir(tmp_path)
    Path("turn.cu").write_text(f"// cutrace: turn<<<1, 32>>>(out:i32[32])\n{KERNEL}")
    Path("half.toml").write_text(HALF)
    assert run(["record", "turn.cu", "-o", "turn.cutrace"]) == 0
    return "turn.cutrace"


def test_a_pattern_replays_on_all_that_fit_it_from_one_reading(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    options = ["--counters", "global_store_transactions", "--format", "csv"]
    assert run(["analyze", trace, "-d", "sm_1?,./half.toml", *options]) == 0
    rows = capsys.readouterr().out.splitlines()
    found = {row.split(",")[-5]: row.split(",")[-1] for row in rows if "global_store" in row}
    # pairs in turn: 1.0 and 1.1 serve each of 32 lanes, 1.2 and 1.3 a segment for each half-warp
    assert found == {"sm_10": "32", "sm_11": "32", "sm_12": "2", "sm_13": "2", "half": "4"}


def test_all_devices_at_once_are_as_many_as_there_are(trace: str) -> None:
    profile = cutrace.analyze(trace, device="all")
    assert sorted(profile.devices) == device_names()
    order = [launch.capability for launch in profile.launches]
    assert order == sorted(order)


@pytest.mark.usefixtures("trace")
@pytest.mark.parametrize(
    "words",
    [
        ["analyze", "turn.cutrace", "--advice"],
        ["why", "turn.cutrace"],
        ["compare", "a=turn.cutrace", "b=turn.cutrace"],
        ["occupancy", "turn.cutrace"],
        ["export", "turn.cutrace", "--to", "ncu-raw"],
        ["report", "turn.cutrace", "-o", "turn.html"],
    ],
)
def test_a_device_file_by_path_is_taken_by_every_verb_that_replays(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "-d", "./half.toml"]) == 0
    assert run([*words, "-d", "./half.toml", "--set", "chip.sms=65"]) == 2
    assert "--set: [chip]: 65 SMs in clusters of 2" in capsys.readouterr().err


def test_an_error_in_a_file_of_ones_own_names_the_file(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("half.toml").write_text(HALF.replace("sms", "smms"))
    assert run(["analyze", trace, "-d", "./half.toml"]) == 2
    told = capsys.readouterr().err
    assert "cutrace: half.toml: [chip]: unknown key `smms`; nearest: sms" in told


def test_the_hint_of_a_device_with_a_blank_in_its_name_can_be_typed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["devices", "RTX 4090"]) == 0
    hint = capsys.readouterr().out.splitlines()[-1]
    assert hint.startswith('next: cutrace devices "RTX 4090" --toml')
    words = shlex.split(hint.removeprefix("next: cutrace ").removesuffix(" for the sources"))
    assert run(words) == 0
    assert capsys.readouterr().out.endswith('next: cutrace devices "RTX 4090"\n')
