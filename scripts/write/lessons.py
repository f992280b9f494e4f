"""Write docs/lessons/*.ipynb: lessons made of families of the gallery, with exercises.

    python scripts/write/lessons.py

A lesson has each family's explanation, its kernels, their counters and pictures, and exercises: how
much is a counter of a launch? The cell below counts it, and the solution is the arithmetic that the
family's expected.toml has beside the number. tests/golden/test_lessons.py runs some of them.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from cutrace.commands.quiz import Question, choose, questions

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "traces" / "gallery"
FOLDER = ROOT / "docs" / "lessons"
LESSONS = {
    "coalescing": ("Coalescing", ("reverse_array", "shifted_copy", "load_patterns")),
    "banks": ("Banks of shared memory", ("shared_banks", "transpose")),
    "divergence": ("Divergence", ("divergence", "reduction")),
    "constant_texture": ("Constant and texture memory", ("constant_table", "texture")),
    "occupancy": ("Occupancy", ("occupancy",)),
}
"""A lesson's title, and the families that it is made of."""
DEVICES = ("gtx580", "h200")
ASKED, SHOWN = 3, 2
"""Exercises of a family, and kernels that are shown."""
_DEVICES = "[" + ", ".join(f'"{device}"' for device in DEVICES) + "]"
Cell = dict[str, object]


def lesson(name: str) -> str:
    """The notebook's text."""
    title, families = LESSONS[name]
    cells = [
        _words(
            f"# {title}\n\nMade by `scripts/write/lessons.py` from the gallery of cutrace, which"
            " needs no GPU: install it as its README says, in the environment of this notebook."
        ),
        _code("import cutrace"),
        *(cell for family in families for cell in _family(family)),
    ]
    notebook = {
        "cells": [{"id": f"{name}-{number}", **cell} for number, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _family(family: str) -> Iterator[Cell]:
    """The explanation, the kernels with their counters and pictures, then exercises."""
    yield _words((GALLERY / family / "why.md").read_text("utf-8").replace("# ", "## ", 1))
    yield _code(f"!cutrace gallery {family} --copy .")
    found = [q for q in questions(GALLERY / family) if not q.options.startswith("--set")]
    named = {path.name: path for path in sorted((GALLERY / family).glob("*.cu"))}
    recorded = [name for name, path in named.items() if "// cutrace:" in path.read_text("utf-8")]
    asked = choose(found, ASKED, seed=1)
    shown = dict.fromkeys([*recorded[:SHOWN], *(q.source.name for q in asked)])
    for name in shown:
        yield from _kernel(family, name)
    scripts = sorted((GALLERY / family).glob("*.py")) if not recorded else []
    for script in scripts[:SHOWN]:
        yield _code(f"!cutrace analyze {family}/{script.name} -d {','.join(DEVICES)}")
    for number, question in enumerate(asked, start=1):
        yield from _exercise(number, question)


def _kernel(family: str, name: str) -> Iterator[Cell]:
    trace = _trace(name)
    text = (GALLERY / family / name).read_text("utf-8").rstrip()
    yield _words(f"`{family}/{name}`:\n\n```cuda\n{text}\n```")
    yield _code(
        f'cutrace.record("{family}/{name}", out="{trace}")\ncutrace.analyze("{trace}", {_DEVICES})'
    )
    yield _code(f'cutrace.why("{trace}", device="{DEVICES[-1]}")')


def _exercise(number: int, question: Question) -> Iterator[Cell]:
    """A question, a cell that counts, and the solution folded away."""
    yield _words(f"**Exercise {number}.** {question.words}\n\nHow much is `{question.counter}`?")
    yield _code(
        "answer = None  # your number\n"
        f'profile = cutrace.analyze("{_trace(question.source.name)}", "{question.device}"'
        f"{_named(question.options)})\n"
        f"launch = profile.launches[{question.launch}]\n"
        f'counted = launch.counters["{question.counter}"]\n'
        'print("right" if answer == counted else "not so: try again")'
    )
    yield _words(
        "<details><summary>Solution</summary>\n\n"
        f"{question.answer}, since {question.why}\n\n</details>"
    )


def _named(options: str) -> str:
    """`--registers 48 --dlcm ca` as arguments of `analyze`."""
    words = options.replace("--", "").split()
    pairs = zip(words[::2], words[1::2], strict=True)
    return "".join(f", {k}={v if v.isdigit() else json.dumps(v)}" for k, v in pairs)


def _trace(name: str) -> str:
    return f"{Path(name).stem}.cutrace"


def _words(text: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str) -> Cell:
    whole: Cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    return {**whole, "source": text.splitlines(keepends=True)}


def main() -> None:
    """Write all lessons."""
    FOLDER.mkdir(exist_ok=True)
    for name in LESSONS:
        (FOLDER / f"{name}.ipynb").write_text(lesson(name), "utf-8")


if __name__ == "__main__":
    main()
