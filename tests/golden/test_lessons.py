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

import cutrace
from cutrace.commands._main import run
from cutrace.commands.quiz import TODAY, number_of

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
            solution = re.search(r"^[\d,.]+(?: %)? = ", texts[number + 1], re.M)
            assert solution is not None
            answer = number_of(solution[0].removesuffix("= "))
            answered = text.replace("None", str(answer), 1)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            for line in re.findall(r"^!cutrace (.*)$", answered, re.M):
                assert run(shlex.split(line)) == 0
            exec(re.sub(r"^!.*$", "", answered, flags=re.M), names)
        if answered is not text:
            assert said.getvalue() == "right\n", text
            judged += 1
    assert judged == script["ASKED"] + 1, "and one about an older device"


def test_the_exercises_are_about_todays_devices_then_one_about_an_older_one(
    script: dict[str, Any],
) -> None:
    for name, (_, families) in script["LESSONS"].items():
        texts = ["".join(c["source"]) for c in json.loads(script["lesson"](name))["cells"]]
        asked = [text for text in texts if text.startswith("**Exercise")]
        today = [text for text in asked if ", history.**" not in text]
        assert all(re.search(rf"launch \d on ({'|'.join(TODAY)})\b", text) for text in today), name
        assert len(today) >= 3 * (len(families) - families.count("texture")), name
        assert len(asked) - len(today) <= len(families), name


def test_the_two_devices_of_the_reversed_store_give_two_answers(
    script: dict[str, Any], tmp_path: Path
) -> None:
    shown = re.search(
        r'cutrace.analyze\("reverse_global.cutrace", \["(\w+)", "(\w+)"\]\)',
        "\n".join(
            "".join(cell["source"]) for cell in json.loads(script["lesson"]("coalescing"))["cells"]
        ),
    )
    assert shown is not None
    source = ROOT / "traces" / "gallery" / "reverse_array" / "reverse_global.cu"
    trace = cutrace.record(source, out=tmp_path / "reverse_global.cutrace")
    stores = [
        launch.counters["global_store_transactions"]
        for launch in cutrace.analyze(trace, list(shown.groups())).launches
    ]
    # backwards a half-warp of 1.0 stores lane by lane; a warp of 9.0 touches four sectors
    assert stores == [1024 * 16 * 16, 1024 * 8 * 4]


def test_an_assignment_has_no_solution_and_grades_its_answers(script: dict[str, Any]) -> None:
    for name in script["LESSONS"]:
        text = script["lesson"](name, is_assignment=True)
        assert "Solution" not in text
        cells = json.loads(text)["cells"]
        asked = [cell for cell in cells if "**Exercise" in "".join(cell["source"])]
        graded = [cell for cell in cells if "nbgrader" in cell["metadata"]]
        assert len(graded) == 2 * len(asked)
        names = [cell["metadata"]["nbgrader"]["grade_id"] for cell in graded]
        assert len(set(names)) == len(names)
        for answer, test in zip(graded[::2], graded[1::2], strict=True):
            assert "".join(answer["source"]) == "answer = None  # your number"
            assert answer["metadata"]["nbgrader"]["solution"]
            assert test["metadata"]["nbgrader"]["grade"]
            assert test["metadata"]["nbgrader"]["locked"]
            assert test["metadata"]["nbgrader"]["points"] == 1
            assert "".join(test["source"]).splitlines()[-1].startswith("assert answer is not None")


def test_assignments_are_written_into_a_folder(
    script: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["lessons.py", "--assignments", str(tmp_path / "class")])
    before = {path: path.read_bytes() for path in script["FOLDER"].glob("*.ipynb")}
    script["main"]()
    written = {path.stem for path in (tmp_path / "class").iterdir()}
    assert written == set(script["LESSONS"])
    assert before == {path: path.read_bytes() for path in script["FOLDER"].glob("*.ipynb")}
