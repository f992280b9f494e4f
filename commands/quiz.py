"""`cutrace quiz`: how much do you think a kernel costs? Questions with the arithmetic as answer."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..base.config import read_toml
from ..base.dataclass import dataclass
from ..base.errors import CutraceError, nearest
from .options.complete import folders, gallery, starting

if TYPE_CHECKING:
    pass


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

    families = {folder.name: folder for folder in folders()}
    if family not in families:
        raise CutraceError(f"no family {family!r} in the gallery{nearest(family, families)}")
    every = [*questions(families[family])]
    if not every:
        raise CutraceError(f"{family}: no counter in it has its arithmetic")
    selection = choose(every, number, seed)
    if solutions:
        return "\n\n".join(f"{q.words}\n  {q.counter} = {_answer_text(q)}" for q in selection)
    right = sum(_run_questions(selection))
    return f"{right} of {len(selection)} right\nnext: cutrace gallery {family}"


def _run_questions(selection: "list[Question]") -> Iterator[bool]:
    """Ask the questions until input ends; yield whether each answer was right."""
    shown: Path | None = None
    for number, question in enumerate(selection, 1):
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
        answer = line.strip().replace(",", "").replace("_", "")
        is_right = answer == str(question.answer)
        print(f"   {'right' if is_right else 'no'}: {_answer_text(question)}")
        yield is_right


def _answer_text(question: "Question") -> str:
    """Return the answer with its arithmetic."""
    return f"{question.answer}, since {question.why}"


_TABLE = re.compile(r"^\[\[expected\]\]", re.M)
_COUNTER = re.compile(r'^(?P<name>[\w."]+) *= *(?P<value>\[.*?\]|-?\d+) *# *(?P<why>.*)$', re.M)
_LAUNCH = re.compile(r"^// cutrace: *(?P<first>.*(?:\n// {2,}.*)*)", re.M)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a counter of a launch on a device; `why` is the arithmetic of the answer."""

    source: Path
    launch: int
    text: str
    device: str
    options: str
    counter: str
    answer: int
    why: str

    @property
    def words(self) -> str:
        """Text of the question."""
        options = f" with {self.options}" if self.options else ""
        return f"{self.source.name}, launch {self.launch} on {self.device}{options}: {self.text}"


def questions(folder: Path) -> Iterator[Question]:
    """Yield all questions of a family that have an answer with arithmetic."""
    path = folder / "expected.toml"
    text = path.read_text(encoding="utf-8")
    tables = read_toml(text, str(path)).get("expected", [])
    starts = [match.start() for match in _TABLE.finditer(text)]
    parts = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    for table, part in zip(tables, parts, strict=True):
        source = folder / str(table["source"])
        if source.suffix == ".cu":
            yield from _of(source, table, part)


def _of(source: Path, table: Mapping[str, Any], text: str) -> Iterator[Question]:
    launches = launch_lines(source.read_text(encoding="utf-8"))
    options = " ".join(f"--{k.replace('_', '-')} {v}" for k, v in table.get("options", {}).items())
    for match in _COUNTER.finditer(text):
        name = match["name"].strip('"')
        value = table.get("counters", {}).get(name)
        every = value if isinstance(value, list) else [value] * len(launches)
        for number, (answer, launch) in enumerate(zip(every, launches, strict=False)):
            if isinstance(answer, int) and not isinstance(answer, bool):
                for device in table["devices"]:
                    yield Question(
                        *(source, number, launch, device, options, name, answer),
                        _arithmetic(match["why"], number, len(every)),
                    )


def _arithmetic(text: str, number: int, launches: int) -> str:
    """Return the arithmetic of one launch; select its item from lists with one item per launch.

    >>> _arithmetic("[256 * 4, 40 * 9]", 1, 2), _arithmetic("2 half-warps * [1, 16]", 0, 2)
    ('40 * 9', '2 half-warps * 1')
    """

    def pick(match: re.Match[str]) -> str:
        parts = match[1].split(", ")
        return parts[number] if len(parts) == launches else match[0]

    return re.sub(r"\[([^][]*)\]", pick, text)


def launch_lines(source: str) -> list[str]:
    """Return the launch comments of a source, without array values."""
    lines = (re.sub(r"\n// +", " ", match["first"]) for match in _LAUNCH.finditer(source))
    return [line.partition(">>>(")[0] + ">>>" for line in lines if ">>>(" in line]


def choose(every: Sequence[Question], number: int, seed: int) -> list[Question]:
    """Return `number` questions in the family's order; the seed selects them."""
    indices = Random(seed).sample(range(len(every)), min(number, len(every)))
    return [every[index] for index in sorted(indices)]
