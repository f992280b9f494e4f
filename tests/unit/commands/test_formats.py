"""`--format` of the verbs whose answer is a frame, and `cutrace advise`."""

import csv
import io
import json
from pathlib import Path

import pytest

import cutrace
from cutrace.cli import run

SOURCE = """// cutrace: scale<<<(2, 1), 64>>>(out:f32[2048], in:f32[2048]=arange)

__global__ void scale(float *out, const float *in)
{
    int i = 16 * (blockIdx.x * blockDim.x + threadIdx.x);
    out[i] = 2 * in[i];
}
"""
WORDS: dict[str, list[str]] = {
    "why": ["why", "scale.cutrace", "scale.cu:6", "-d", "h100"],
    "devices": ["devices", "sm_9*"],
    "counters": ["counters", "sector_efficiency"],
    "occupancy": ["occupancy", "scale.cutrace", "-d", "h100"],
    "info": ["info", "scale.cutrace"],
}
SAYS: dict[str, dict[str, object]] = {
    "why": {"place": "scale.cu:6", "cost": 32, "ideal": 4},
    "devices": {"device": "sm_90", "capability": "9.0"},
    "counters": {"counter": "bus_utilization", "vocabulary": "plain"},
    "occupancy": {"blocks": 32, "warps": 64, "occupancy": 1.0},
    "info": {"kernel": "scale", "grid": [2, 1, 1], "threads": 64},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("formats")
    (folder / "scale.cu").write_text(SOURCE)
    return cutrace.record(folder / "scale.cu", out=folder / "scale.cutrace").parent


def said(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(words) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("verb", WORDS)
def test_a_verb_prints_its_frame_as_json_and_as_csv(
    verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    told = json.loads(said([*WORDS[verb], "--format", "json"], capsys))
    assert told["format"] == f"cutrace-{verb}-1"
    (row,) = told["rows"]
    assert {key: row[key] for key in SAYS[verb]} == SAYS[verb]
    (cells,) = csv.DictReader(io.StringIO(said([*WORDS[verb], "--format", "csv"], capsys)))
    assert [*cells] == [*row]
    for key, value in SAYS[verb].items():
        assert cells[key] == (" ".join(map(str, value)) if isinstance(value, list) else str(value))


@pytest.mark.parametrize("verb", WORDS)
def test_a_format_that_is_not_there_is_refused(
    verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert run([*WORDS[verb], "--format", "yaml"]) == 2
    assert "expected table, json, csv" in capsys.readouterr().err


def test_advise_is_a_verb_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert said(["advise", "scale.cutrace"], capsys) == said(
        ["analyze", "scale.cutrace", "--advice"], capsys
    )
    (launch,) = json.loads(said(["advise", "scale.cutrace", "--format", "json"], capsys))[
        "launches"
    ]
    assert launch["findings"][0]["rule"] == "uncoalesced"
