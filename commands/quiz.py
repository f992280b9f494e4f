"""`cutrace quiz`: how much do you think a kernel costs? Questions with the arithmetic as answer."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Annotated, Any

from ..base.config import read_toml
from ..base.dataclass import dataclass
from ..base.errors import CutraceError, nearest
from .options.complete import devices, folders, gallery, last_of, starting
from .options.verb import argument, flag, value, verb

TODAY = ("h100", "a100", "rtx4090", "rtx3060", "t4")
"""The default devices: compute capability 7.5 to 9.0."""


@verb(
    "Look up",
    "cutrace quiz transpose",
    "cutrace quiz occupancy -d t4,h100 --questions 3 --seed 7",
    "cutrace quiz divergence --sheet",
    "cutrace quiz divergence --solutions",
)
def quiz(
    family: Annotated[str, argument("A family of the gallery", complete=starting(gallery))],
    device: Annotated[
        str,
        value(
            f"Ask about these devices (default: {', '.join(TODAY)}).",
            "DEVICE,...",
            *("--device", "-d"),
            complete=last_of(devices),
        ),
    ] = "",
    number: Annotated[int, value("Number of questions.", "N", "--questions", min=1)] = 5,
    seed: Annotated[int, value("Seed of the choice of questions.", "N")] = 0,
    sheet: Annotated[bool, flag("Print the questions without their answers.")] = False,
    solutions: Annotated[bool, flag("Print the answers with their arithmetic.")] = False,
) -> str:
    """Ask what a kernel of the gallery costs, and show the arithmetic behind the answer."""
    families = {folder.name: folder for folder in folders()}
    if family not in families:
        close = nearest(family, families) or f"; expected one of {', '.join(families)}"
        raise CutraceError(f"no family {family!r} in the gallery{close}")
    every = [*questions(families[family])]
    if not every:
        raise CutraceError(f"{family}: no counter in it has its arithmetic")
    names = [name.strip() for name in device.split(",")] if device else [*TODAY]
    selection = choose(_on_devices(every, family, names), number, seed)
    if sheet:
        return "\n\n".join(_sheet(selection))
    if solutions:
        return "\n\n".join(f"{q.words}\n  {q.counter}: {q.solution}" for q in selection)
    verdicts = [*_run_questions(selection)]
    left = len(selection) - len(verdicts)
    unanswered = f"; {left} not answered" if left else ""
    return f"{sum(verdicts)} of {len(verdicts)} right{unanswered}\nnext: cutrace gallery {family}"


def _on_devices(every: "Sequence[Question]", family: str, names: Sequence[str]) -> "list[Question]":
    """Return the questions about these devices, the devices in the user's order."""
    known = dict.fromkeys(question.device for question in every)
    for name in names:
        if name not in known:
            from ..models.replay.device.device import load_devices

            load_devices([name])  # a name that no device has is another error
            listed = ", ".join(known)
            raise CutraceError(f"{family}: no question about {name}; there are some for {listed}")
    return sorted((q for q in every if q.device in names), key=lambda q: names.index(q.device))


def _sheet(selection: "Sequence[Question]") -> Iterator[str]:
    """Yield each source before its first question, and the questions with room for an answer."""
    shown: Path | None = None
    for number, question in enumerate(selection, 1):
        if question.source != shown:
            shown = question.source
            yield shown.read_text(encoding="utf-8").rstrip()
        yield f"{number}. {question.words}\n   {question.counter} = ____________________"


def _run_questions(selection: "Sequence[Question]") -> Iterator[bool]:
    """Ask the questions until input ends; yield whether each answer was right."""
    shown: Path | None = None
    for number, question in enumerate(selection, 1):
        if question.source != shown:
            shown = question.source
            print(f"\n{shown.read_text(encoding='utf-8').rstrip()}\n")
        print(
            f"{number}. {question.words}\n   how much is {question.counter}? ", end="", flush=True
        )
        answer = _read_number()
        if answer is None:
            print()
            return
        is_right = question.accepts(answer)
        print(f"   {'right' if is_right else 'no'}: {question.solution}")
        yield is_right


def _read_number() -> float | None:
    """Read lines until one is a number; return None where input ends before."""
    while line := sys.stdin.readline():
        try:
            return number_of(line)
        except ValueError:
            print("   a number, please, such as 1,024 or 62.5 %: ", end="", flush=True)
    return None


def number_of(text: str) -> float:
    """Return the number that a person typed; raise `ValueError` for anything else.

    >>> number_of("1,024"), number_of("62.5 %"), number_of("40 / 64"), number_of("16_384")
    (1024.0, 0.625, 0.625, 16384.0)
    """
    text = text.strip().replace(",", "").replace("_", "")
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(?: */ *(\d+(?:\.\d*)?)| *(%))?", text)
    if not match or (match[2] and not float(match[2])):
        raise ValueError(text)
    return float(match[1]) / (float(match[2]) if match[2] else 100 if match[3] else 1)


_TABLE = re.compile(r"^\[\[expected\]\]", re.M)
_COUNTER = re.compile(r'^(?P<name>[\w."]+) *= *(?P<value>\[.*?\]|-?[\d.]+) *# *(?P<why>.*)$', re.M)
_NUMBER = re.compile(r"\b\d{4,}\b")
_ONE = re.compile(r"(?<!\d)(1 [a-z-]+)s\b")
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
    answer: float
    why: str

    @property
    def words(self) -> str:
        """Text of the question."""
        options = f" with {self.options}" if self.options else ""
        return f"{self.source.name}, launch {self.launch} on {self.device}{options}: {self.text}"

    @property
    def subject(self) -> tuple[str, int, str, str]:
        """What is asked, but for the device."""
        return self.source.name, self.launch, self.options, self.counter

    @property
    def is_ratio(self) -> bool:
        """Return whether the answer is a share, which people write in per cent."""
        from ..analyzer.counting.vocabulary import find_counters

        return find_counters([self.counter])[0].unit == "ratio"

    @property
    def solution(self) -> str:
        """The answer and its arithmetic: `1,024 = 256 warps x 4 sectors`."""
        share = self.is_ratio
        text = f"{100 * self.answer:.4g} %" if share else f"{self.answer:,.0f}"
        return f"{text} = {_NUMBER.sub(_with_commas, self.why.replace(' * ', ' x '))}"

    def accepts(self, answer: float) -> bool:
        """Return whether an answer is right; a share may be given in per cent, too."""
        if not self.is_ratio:
            return answer == self.answer
        return any(abs(value - self.answer) < 0.0006 for value in (answer, answer / 100))


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
            why = _arithmetic(match["why"], number, len(every))
            if isinstance(answer, int | float) and re.search("[a-z]", why):
                for device in table["devices"]:
                    yield Question(source, number, launch, device, options, name, answer, why)


def _with_commas(match: re.Match[str]) -> str:
    return f"{int(match[0]):,}"


def _arithmetic(text: str, number: int, launches: int) -> str:
    """Return the arithmetic of one launch; select its item from lists with one item per launch.

    >>> _arithmetic("[256 * 4, 40 * 9]", 1, 2), _arithmetic("2 half-warps * [1, 16] words", 0, 2)
    ('40 * 9', '2 half-warps * 1 word')
    """

    def pick(match: re.Match[str]) -> str:
        parts = match[1].split(", ")
        return parts[number] if len(parts) == launches else match[0]

    return _ONE.sub(r"\1", re.sub(r"\[([^][]*)\]", pick, text))


def launch_lines(source: str) -> list[str]:
    """Return the launch comments of a source, without array values."""
    lines = (re.sub(r"\n// +", " ", match["first"]) for match in _LAUNCH.finditer(source))
    return [line.partition(">>>(")[0] + ">>>" for line in lines if ">>>(" in line]


def choose(every: Sequence[Question], number: int, seed: int) -> list[Question]:
    """Return `number` questions in the family's order; the seed selects them.

    A pair in four is about a subject whose answer differs between the devices, if there is one: it
    comes on two devices with two answers. Other subjects come on one device.
    """
    random = Random(seed)
    subjects: dict[tuple[str, int, str, str], list[Question]] = {}
    for question in every:
        subjects.setdefault(question.subject, []).append(question)
    differing = [s for s, asked in subjects.items() if len({q.answer for q in asked}) > 1]
    equal = [s for s in subjects if s not in set(differing)]
    pairs = random.sample(differing, min(len(differing), (number + 2) // 4))
    chosen = [q for s in pairs for q in _pair(subjects[s], random)]
    singles = random.sample(equal, min(len(equal), max(number - len(chosen), 0)))
    chosen += [random.choice(subjects[s]) for s in singles]
    for subject in random.sample(differing, len(differing)):
        if len(chosen) >= number:
            break
        if subject not in pairs:
            chosen += _pair(subjects[subject], random)[: number - len(chosen)]
    sources = [*dict.fromkeys(question.source.name for question in every)]
    subjects_in_order = sorted(subjects, key=lambda subject: sources.index(subject[0]))
    order = [question for subject in subjects_in_order for question in subjects[subject]]
    return sorted(chosen, key=order.index)[:number]


def _pair(asked: Sequence[Question], random: Random) -> list[Question]:
    """Return one question of a subject and another whose answer differs."""
    first = random.choice(asked)
    return [first, random.choice([q for q in asked if q.answer != first.answer])]
