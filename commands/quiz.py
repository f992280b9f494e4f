"""`cutrace quiz`: how much do you think a kernel costs? Questions with the arithmetic as answer."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import CutraceError, nearest
from .options.complete import gallery, starting
from .options.gallery import folders

if TYPE_CHECKING:
    from .running.questions import Question

PANEL = "Look up"
EXAMPLES = (
    "cutrace quiz transpose",
    "cutrace quiz shared_banks --questions 3 --seed 7",
    "cutrace quiz divergence --solutions",
)


def command(
    family: Annotated[
        str,
        typer.Argument(help="A family of the gallery", autocompletion=starting(gallery)),
    ],
    number: Annotated[
        int, typer.Option("--questions", metavar="N", min=1, help="Number of questions.")
    ] = 5,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the choice of questions.")] = 0,
    solutions: Annotated[
        bool, typer.Option("--solutions", help="Print the answers with their arithmetic.")
    ] = False,
) -> str:
    """Ask what a kernel of the gallery costs, and show the arithmetic behind the answer."""
    from .running.questions import choose, questions

    found = {folder.name: folder for folder in folders()}
    if family not in found:
        raise CutraceError(f"no family {family!r} in the gallery{nearest(family, found)}")
    every = [*questions(found[family])]
    if not every:
        raise CutraceError(f"{family}: no counter in it has its arithmetic")
    asked = choose(every, number, seed)
    if solutions:
        return "\n\n".join(f"{q.words}\n  {q.counter} = {_told(q)}" for q in asked)
    right = sum(_ask(asked))
    return f"{right} of {len(asked)} right\nnext: cutrace gallery {family}"


def _ask(asked: "list[Question]") -> Iterator[bool]:
    """Ask one after the other, until the answers end; whether each was right."""
    shown: Path | None = None
    for number, question in enumerate(asked, 1):
        if question.source != shown:
            shown = question.source
            print(f"\n{shown.read_text(encoding='utf-8').rstrip()}\n")
        print(
            f"{number}. {question.words}\n   how much is {question.counter}? ", end="", flush=True
        )
        line = sys.stdin.readline()
        if not line:
            print()
            return
        said = line.strip().replace(",", "").replace("_", "")
        is_right = said == str(question.answer)
        print(f"   {'right' if is_right else 'no'}: {_told(question)}")
        yield is_right


def _told(question: "Question") -> str:
    """The answer, with its arithmetic."""
    return f"{question.answer}, since {question.why}"
