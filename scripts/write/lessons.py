"""Write docs/lessons/*.ipynb: lessons made of families of the gallery, with exercises.

    python scripts/write/lessons.py
    python scripts/write/lessons.py --assignments FOLDER

A lesson has each family's explanation, its kernels, their counters and pictures, and exercises: how
much is a counter of a launch? Exercises are about devices of compute capability 7.5 to 9.0, two of
them about two devices with two answers; one about an older device ends a family that has some. The
cell below an exercise counts it, and the solution is the arithmetic that the family's expected.toml
has beside the number. tests/golden/test_lessons.py runs some of them.

With --assignments lessons are written without their solutions, to print or to hand in: a cell for
the answer, and a locked cell of one point that nbgrader grades.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from cutrace.commands.quiz import TODAY, Question, choose, questions

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "traces" / "gallery"
FOLDER = ROOT / "docs" / "lessons"
LESSONS = {
    "coalescing": ("Coalescing", ("load_patterns", "shifted_copy", "reverse_array")),
    "banks": ("Banks of shared memory", ("shared_banks", "transpose")),
    "divergence": ("Divergence", ("divergence", "reduction")),
    "constant_texture": ("Constant and texture memory", ("constant_table", "texture")),
    "occupancy": ("Occupancy", ("occupancy",)),
}
"""A lesson's title, and the families that it is made of."""
DEVICES = ("t4", "h100")
OTHERS = {"reverse_array": ("8800gtx", "h100")}
"""The devices that a family's kernels are shown on, and the families that need others."""
ASKED, SHOWN = 4, 2
"""Exercises of a family on devices of today, and kernels that are shown."""
Cell = dict[str, object]


def lesson(name: str, is_assignment: bool = False) -> str:
    """The notebook's text; an assignment has no solutions."""
    title, families = LESSONS[name]
    cells = [
        _words(
            f"# {title}\n\nMade by `scripts/write/lessons.py` from the gallery of cutrace, which"
            " needs no GPU: install it as its README says, in the environment of this notebook."
        ),
        _code("import cutrace"),
        *(cell for family in families for cell in _family(family, is_assignment)),
    ]
    notebook = {
        "cells": [_identified(f"{name}-{number}", cell) for number, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _family(family: str, is_assignment: bool) -> Iterator[Cell]:
    """The explanation, the kernels with their counters and pictures, then exercises."""
    yield _words((GALLERY / family / "why.md").read_text("utf-8").replace("# ", "## ", 1))
    yield _code(f"!cutrace gallery {family} --copy .")
    found = [q for q in questions(GALLERY / family) if not q.options.startswith("--set")]
    named = {path.name: path for path in sorted((GALLERY / family).glob("*.cu"))}
    recorded = [name for name, path in named.items() if "// cutrace:" in path.read_text("utf-8")]
    asked = choose([q for q in found if q.device in TODAY], ASKED, seed=1)
    former = choose(_of_former_devices(found), 1, seed=1)
    shown = dict.fromkeys([*recorded[:SHOWN], *(q.source.name for q in (*asked, *former))])
    devices = OTHERS.get(family, DEVICES)
    for name in shown:
        yield from _kernel(family, name, devices)
    scripts = sorted((GALLERY / family).glob("*.py")) if not recorded else []
    for script in scripts[:SHOWN]:
        yield _code(f"!cutrace analyze {family}/{script.name} -d {','.join(devices)}")
    for number, question in enumerate(asked, start=1):
        yield from _exercise(str(number), question, is_assignment)
    for question in former:
        yield from _exercise(f"{len(asked) + 1}, history", question, is_assignment)


def _of_former_devices(found: list[Question]) -> list[Question]:
    """The questions about older devices; those that a device of today answers otherwise, if any."""
    today = {q.subject: q.answer for q in found if q.device in TODAY}
    former = [q for q in found if q.device not in (*TODAY, "h200")]
    return [q for q in former if today.get(q.subject, q.answer) != q.answer] or former


def _kernel(family: str, name: str, devices: tuple[str, ...]) -> Iterator[Cell]:
    trace = _trace(name)
    text = (GALLERY / family / name).read_text("utf-8").rstrip()
    yield _words(f"`{family}/{name}`:\n\n```cuda\n{text}\n```")
    yield _code(
        f'cutrace.record("{family}/{name}", out="{trace}")\n'
        f'cutrace.analyze("{trace}", {json.dumps(devices)})'
    )
    yield _code(f'cutrace.why("{trace}", device="{devices[-1]}")')


def _exercise(number: str, question: Question, is_assignment: bool) -> Iterator[Cell]:
    """A question, a cell that counts, and the solution folded away."""
    unit = ", as a fraction: 0.5 is 50 %" if question.is_ratio else ""
    named = " Assign it to `answer`." if is_assignment else ""
    yield _words(
        f"**Exercise {number}.** {question.words}\n\nHow much is `{question.counter}`{unit}?{named}"
    )
    count = (
        f'profile = cutrace.analyze("{_trace(question.source.name)}", "{question.device}"'
        f"{_named(question.options)})\n"
        f"launch = profile.launches[{question.launch}]\n"
        f'counted = launch.counters["{question.counter}"]\n'
    )
    right = "abs(answer - counted) < 0.0006" if question.is_ratio else "answer == counted"
    if is_assignment:
        yield _code("answer = None  # your number", is_answer=True)
        test = f"answer is not None and {right}"
        yield _code(f'{count}assert {test}, "not so: try again"', is_test=True)
        return
    if question.is_ratio:
        right = f"answer is not None and {right}"
    yield _code(
        f'answer = None  # your number\n{count}print("right" if {right} else "not so: try again")'
    )
    yield _words(f"<details><summary>Solution</summary>\n\n{question.solution}\n\n</details>")


def _named(options: str) -> str:
    """`--registers 48 --dlcm ca` as arguments of `analyze`."""
    words = options.replace("--", "").replace("-", "_").split()
    pairs = zip(words[::2], words[1::2], strict=True)
    return "".join(f", {k}={v if v.isdigit() else json.dumps(v)}" for k, v in pairs)


def _trace(name: str) -> str:
    return f"{Path(name).stem}.cutrace"


def _words(text: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str, is_answer: bool = False, is_test: bool = False) -> Cell:
    metadata: dict[str, object] = {}
    if is_answer or is_test:  # nbgrader's names for a cell that students fill, and one that grades
        metadata["nbgrader"] = {
            "schema_version": 3,
            "solution": is_answer,
            "grade": is_test,
            "locked": is_test,
            "task": False,
            **({"points": 1} if is_test else {}),
        }
    whole: Cell = {"cell_type": "code", "execution_count": None, "metadata": metadata}
    return {**whole, "outputs": [], "source": text.splitlines(keepends=True)}


def _identified(name: str, cell: Cell) -> Cell:
    """The cell with an identifier, which nbgrader wants as well."""
    metadata = cell["metadata"]
    assert isinstance(metadata, dict)
    if grading := metadata.get("nbgrader"):
        grading["grade_id"] = name
    return {"id": name, **cell}


def main() -> None:
    """Write all lessons, or all assignments."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--assignments", metavar="FOLDER", type=Path)
    folder = options.parse_args().assignments
    (folder or FOLDER).mkdir(parents=True, exist_ok=True)
    for name in LESSONS:
        text = lesson(name, is_assignment=folder is not None)
        ((folder or FOLDER) / f"{name}.ipynb").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
