"""Files for hosts and containers: they are well formed, and what they run is there."""

import json
import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

from cutrace.commands._application import assemble

ROOT = Path(__file__).parents[3]
YAML = (".github/workflows/check.yml", "action.yml", ".pre-commit-hooks.yaml")
COMMAND = re.compile(r"cutrace (?P<verb>check|analyze)(?P<rest>[^\n`]*)")


@pytest.mark.parametrize("name", YAML)
def test_yaml_is_of_the_plain_kind(name: str) -> None:
    before = 0
    for line in (ROOT / name).read_text("utf-8").splitlines():
        body = line.lstrip(" ")
        assert "\t" not in line
        assert line == line.rstrip()
        if not body or body.startswith("#"):
            continue
        depth = len(line) - len(body)
        assert depth % 2 == 0
        assert depth <= before + 2 or body.startswith("- ")
        assert body.startswith("- ") or re.match(r"[\w-]+:( |$)", body), line
        before = depth + 2 * body.startswith("- ")


@pytest.mark.parametrize("name", [*YAML, "Dockerfile"])
def test_commands_of_cutrace_are_verbs_with_options_that_there_are(name: str) -> None:
    verbs = get_command(assemble()).commands  # type: ignore[attr-defined]
    for found in COMMAND.finditer((ROOT / name).read_text("utf-8")):
        known = {o for p in verbs[found["verb"]].params for o in p.opts} | {"--quiet"}
        words = [w for w in found["rest"].split() if w.startswith("--") and w != "--"]
        assert {*words} <= known


def test_scripts_and_extras_that_are_named_are_there() -> None:
    assert "- run: .ci/run" in (ROOT / YAML[0]).read_text("utf-8")
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100
    settings = (ROOT / "pyproject.toml").read_text("utf-8")
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text("utf-8"))
    docker = (ROOT / "Dockerfile").read_text("utf-8")
    extras = re.findall(r"\[(\w+)\]['\"]", docker + container["postCreateCommand"])
    assert extras == ["programs", "dev"]
    for extra in extras:
        assert f"\n{extra} = [" in settings


def test_a_dockerfile_has_instructions_and_copies_what_is_there() -> None:
    text = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text("utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    known = {"FROM", "RUN", "COPY", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert {line.split()[0] for line in lines} == known
    assert lines[0].startswith("FROM ")
    for line in lines:
        word, _, rest = line.partition(" ")
        if word in ("ENTRYPOINT", "CMD"):
            assert all(isinstance(part, str) for part in json.loads(rest))
        elif word == "RUN":
            assert shlex.split(rest)
