"""The JSON Schemas of all formats, against what every verb prints."""

import json
import os
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from cutrace.commands._application import assemble
from cutrace.commands._main import run
from cutrace.commands.schema import schemas

jsonschema = pytest.importorskip("jsonschema")

SOURCE = """__global__ void k(float* out, const float* in) {
  __shared__ float s[64];
  s[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  out[threadIdx.x * 64 + blockIdx.x] = s[63 - threadIdx.x];
}
// cutrace: k<<<64, 64>>>(out:f32[4096], in:f32[4096]=arange)
"""
SUITE = """[sizes]
N = [64, 128]

[[variant]]
name = "only"
source = "a.cu"
launch = "k<<<{N / 64}, 64>>>(out:f32[4096], in:f32[4096]=arange)"
"""
BUDGET = """[[budget]]
kernel = "k"
global_transactions = {}
"""
VERSIONS = {"advice": 2, "comparison": 2}
LINES = {
    "advice": ("advise a.cutrace", "analyze a.cutrace --advice"),
    "check": (
        "check a.cu --budget budget.toml --races --memory",
        "check a.cu --budget strict.toml",
        "check racy.cu --races",
        "check outside.cu --memory",
    ),
    "comparison": (
        "compare a=a.cutrace b=a.cutrace",
        "compare a=a.cutrace b=b.cu --by line",
        "sweep suite.toml",
    ),
    "counters": ("counters", "counters reuse"),
    "devices": ("devices", "devices h100"),
    "error": ("why missing.cutrace", "analyze bad.cu", "analyze outside.cu", "judge bad.cu a.cu"),
    "info": ("info a.cutrace",),
    "judge": (
        *("judge a.cu b.cu", "judge a.cu racy.cu", "judge a.cu outside.cu", "judge a.cu bad.cu"),
        *("judge a.cutrace b.cu -d t4", "judge a.cu b.cu --expect out=wrong.npy"),
    ),
    "occupancy": ("occupancy a.cutrace", "occupancy --threads 256 -d 8800gtx"),
    "profile": (
        *("analyze a.cutrace", "analyze a.cutrace --all -d h100,8800gtx"),
        *(f"analyze a.cutrace --by {by}" for by in ("line", "array", "instruction")),
        *("analyze a.cu --sample-blocks 20 --all", "analyze a.cutrace -d all"),
    ),
    "reuse": ("analyze a.cutrace --by reuse",),
    "set": ("analyze a.cutrace --by set",),
    "trend": ("check --trend 1",),
    "why": ("why a.cutrace", "why a.cutrace -d all"),
}
"""Command lines by the format that they print."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    import numpy as np

    before, folder = Path.cwd(), tmp_path_factory.mktemp("schemas")
    os.chdir(folder)
    texts = {
        "a.cu": SOURCE,
        "b.cu": SOURCE.replace("threadIdx.x * 64 + blockIdx.x", "blockIdx.x * 64 + threadIdx.x"),
        "racy.cu": SOURCE.replace("__syncthreads();", ""),
        "outside.cu": SOURCE.replace("out[", "out[1 + "),
        "bad.cu": SOURCE.replace("s[63", "t[63"),
        "suite.toml": SUITE,
        "cutrace.toml": '[[check]]\nsource = "a.cu"\nbudget = "budget.toml"\n',
        "budget.toml": BUDGET.format('"<= 9999999"'),
        "strict.toml": BUDGET.format(1),
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    np.save("wrong.npy", np.zeros(4096))
    assert run(["record", "a.cu"]) == 0
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "all"]):
        subprocess.run(["git", *words], check=True)
    yield folder
    os.chdir(before)


def closed(schema: Any) -> Any:
    """Return a schema that refuses keys that it does not describe."""
    schema = deepcopy(schema)
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "properties" in part:
                part.setdefault("additionalProperties", False)
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return schema


@pytest.mark.parametrize(("name", "line"), [(n, one) for n in LINES for one in LINES[n]])
def test_what_a_verb_prints_is_described(
    name: str, line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    run([*line.split(), "--format", "json"])
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == f"cutrace-{name}-{VERSIONS.get(name, 1)}"
    schema = json.loads(schemas()[name].read_text())
    jsonschema.Draft202012Validator(closed(schema)).validate(document)


def test_every_verb_and_every_schema_is_tried() -> None:
    commands = get_command(assemble()).commands  # type: ignore[attr-defined]
    verbs = {
        name
        for name, command in commands.items()
        for option in command.params
        if "--format" in option.opts and "json" in (option.metavar or "")
    }
    assert verbs == {line.split()[0] for lines in LINES.values() for line in lines}
    assert {*schemas()} == {*LINES, "manifest"}


@pytest.mark.parametrize("name", schemas())
def test_a_schema_is_one_and_has_a_title(name: str) -> None:
    schema = json.loads(schemas()[name].read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["title"]
    if name != "manifest":
        assert schema["properties"]["format"] == {
            "const": f"cutrace-{name}-{VERSIONS.get(name, 1)}"
        }


def test_a_schema_refuses_another_document() -> None:
    schema = json.loads(schemas()["why"].read_text())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate({"format": "cutrace-why-1", "rows": [{}]})


def test_schemas_are_printed_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "cutrace-judge-1"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(schemas()["judge"].read_text())
    assert run(["schema"]) == 0
    assert capsys.readouterr().out.split()[: len(schemas())] == [*schemas()]
    assert run(["schema", "juge"]) == 2
    assert "nearest: judge" in capsys.readouterr().err
