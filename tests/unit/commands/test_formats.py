"""`--format` of the verbs whose answer is a frame, and `cutrace advise`."""

import csv
import io
import json
from pathlib import Path

import pytest

import cutrace
from cutrace.commands._main import run

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
    "counters": {"counter": "sector_efficiency", "vocabulary": "cutrace"},
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


def test_a_part_of_names_lists_counters_in_every_format(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for word in ("load_bytes_requested", "load_bytes_asked"):
        rows = json.loads(said(["counters", word, "--format", "json"], capsys))["rows"]
        assert [row["counter"] for row in rows] == [
            "global_load_bytes_requested",
            "local_load_bytes_requested",
        ]
        assert said(["counters", word], capsys).count("load_bytes_requested") == 2


@pytest.mark.parametrize("verb", WORDS)
def test_a_format_that_is_not_there_is_refused(
    verb: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert run([*WORDS[verb], "--format", "yaml"]) == 2
    assert "there are csv, html, json, md, table" in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["analyze", "scale.cutrace", "--by", "line"], ("launches", "devices", "counters")),
        (["compare", "a=scale.cutrace", "b=scale.cutrace"], ("variants", "values")),
        (["advise", "scale.cutrace"], ("launches", "findings")),
        (["check", "scale.cutrace", "--budget", "budget.toml"], ("limits",)),
    ],
)
def test_what_json_has_is_documented(
    words: list[str],
    parts: tuple[str, ...],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    Path("budget.toml").write_text('[[budget]]\nkernel = "scale"\nshared_conflicts = 0\n')
    told = json.loads(said([*words, "-d", "h100", "--format", "json"], capsys))
    page = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if f"| `{told['format']}` |" in line)
    (launch, *_) = told.get("launches", [{}])
    found = {*told} - {"format"} | {*launch}
    for part in parts:
        (first, *_) = told.get(part, []) or launch.get(part, [])
        found |= {*first} if isinstance(first, dict) else {part}
    assert [key for key in sorted(found) if f"`{key}`" not in row] == []
