"""The lessons of docs/lessons: current, and their cells run, exercises and all."""

import contextlib
import io
import json
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import pytest

from cutrace.commands._main import run

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "write" / "lessons.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the scripts are not beside the tests")


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_the_notebooks_are_current(script: dict[str, Any]) -> None:
    for name in script["LESSONS"]:
        written = (script["FOLDER"] / f"{name}.ipynb").read_text("utf-8")
        assert written == script["lesson"](name), "run scripts/write/lessons.py"


def test_every_cell_runs_and_the_solutions_are_what_is_counted(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(script["lesson"]("occupancy"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells]
    names: dict[str, Any] = {}
    judged = 0
    for number, (cell, text) in enumerate(zip(cells, texts, strict=True)):
        if cell["cell_type"] != "code":
            continue
        answered = text
        if text.startswith("answer = None"):
            solution = re.search(r"^(\d+), since", texts[number + 1], re.M)
            assert solution is not None
            answered = text.replace("None", solution[1], 1)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            for line in re.findall(r"^!cutrace (.*)$", answered, re.M):
                assert run(shlex.split(line)) == 0
            exec(re.sub(r"^!.*$", "", answered, flags=re.M), names)
        if answered is not text:
            assert said.getvalue() == "right\n", text
            judged += 1
    assert judged == script["ASKED"]
