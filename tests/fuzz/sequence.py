"""Random sequences of PTX instructions for a chip to run: drawn by seed from the tables of forms.

A thread loads a row of operands, runs the sequence, and stores every register. Forms are those of
tests/validate/instructions whose results the ISA fixes to the bit. Nothing here needs cutrace.
"""

import re
from collections.abc import Sequence as Items
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from ptx.ptx_case import ALIASES, Case, bits_of, read_cases
from ptx.ptx_values import edges, pool, raw

TABLES = Path(__file__).parents[1] / "validate" / "instructions"
WEIGHTS = {"integer": 7, "float": 4, "half": 3, "compare": 4, "convert": 4, "video": 2}
"""How often a table is asked, of 24 times."""

LANES = 4096
"""Threads of a launch."""

STEPS = 30
FIRST: dict[str, tuple[str, ...]] = {
    "h": ("f16", "bf16", "u16", "s16"),
    "r": ("f32", "f32", "s32", "u32", "n", "f16x2", "bf16x2", "lane", "turn", "s32"),
    "d": ("f64", "f64", "s64", "u64"),
    "p": ("pred", "pred"),
}
"""What the registers of each width hold when a sequence begins."""

_SPARE = ("$m", "$t", "$w")
_CONTRACTED = frozenset({"add", "sub", "mul"})
_ROUNDING = frozenset({"rn", "rz", "rm", "rp"})
_KEPT = frozenset({"lane", "turn"})
"""Kinds of sources that take no other register's value: the ISA leaves the rest open."""


@dataclass(frozen=True)
class Step:
    """An instruction with its registers; it runs where `guard` holds (`p0`, `!p1`), if any."""

    case: Case
    results: tuple[str, ...]
    sources: tuple[str, ...]
    guard: str = ""


@dataclass(frozen=True)
class Branch:
    """Threads part by a predicate."""

    guard: str
    body: tuple["Statement", ...]
    other: tuple["Statement", ...]


@dataclass(frozen=True)
class Loop:
    """A body that runs 1 to 4 times, by the low bits of a register."""

    times: str
    body: tuple["Statement", ...]


Statement = Step | Branch | Loop


@dataclass(frozen=True)
class Sequence:
    """`first` are the kinds of the registers that are loaded, `registers` all, by their names."""

    number: int
    first: tuple[tuple[str, str], ...]
    registers: tuple[str, ...]
    body: tuple[Statement, ...]


def letter_of(kind: str) -> str:
    """Return the letter of the registers that hold a type: h, r, d or p."""
    if kind == "pred":
        return "p"
    if kind in ("u8", "s8", "b8"):
        return "r"
    return {16: "h", 32: "r", 64: "d"}[max(bits_of(kind), 16)]


def is_contracted(case: Case) -> bool:
    """Whether an assembler may fuse this with a neighbour: sums and products without rounding."""
    opcode, *modifiers = case.text.split()[0].split(".")
    return opcode in _CONTRACTED and "f" in modifiers[-1] and not _ROUNDING & {*modifiers}


RARE = re.compile(
    r"^(v|mul24|mad24|fns|szext|bmsk|copysign|testp|\w+(\.lo|\.hi)?\.cc|lop3\.(or|and)|prmt\.b32\."
    r"|(add|sub|mul|fma|mad|div|rcp|sqrt)\.r[zmp]|sqrt\.rn\.ftz|setp\..*x2 |set\..*f16 |set\..*x2 "
    r"|set\..*f16\.|cvt\..*f16\.[us]\d|cvt\..*[us]\d+\.b?f16|cvt\.r[zmp].*\.[us]\d+ "
    r"|cvt.*\.sat\..*\.[us]\d+ |cvt.*\.sat\.[us]\d|cvt\.pack|cvt\..*x2|cvt\.rna"
    r"|cvt\.r[nz]i\.[us](8|16)\.f)"
)
"""Forms that compilers do not make of common code: every second sequence has none of them."""


@cache
def forms(table: str, plain: bool = False) -> tuple[tuple[Case, ...], ...]:
    """Return the forms by opcode, so that one of many forms is not drawn more often."""
    found: dict[str, list[Case]] = {}
    for case in read_cases((TABLES / f"{table}.txt").read_text()):
        open_result = case.bound or is_contracted(case) or any(w in case.text for w in _SPARE)
        if not open_result and not (plain and RARE.match(case.text)):
            found.setdefault(case.text.split(".")[0], []).append(case)
    return tuple(tuple(cases) for cases in found.values())


_TABLES = tuple(name for name, weight in WEIGHTS.items() for _ in range(weight))


class Drawing:
    """Draws one sequence from the words of a random stream."""

    def __init__(self, number: int) -> None:
        self._words = iter(raw(f"sequence {number}", 4096).tolist())
        self._number = number
        self._plain = number % 2 == 0
        self._tables = [table for table in _TABLES if forms(table, self._plain)]
        self.kinds: dict[str, str] = {}
        self._fixed: set[str] = set()

    def below(self, limit: int) -> int:
        """Return a number from 0 to limit - 1."""
        return int(next(self._words) >> 11) % limit

    def whole(self) -> Sequence:
        """Draw the whole sequence."""
        for letter, kinds in FIRST.items():
            for kind in kinds:
                name = self._new(letter, kind)
                if kind in _KEPT:
                    self._fixed.add(name)
        first = tuple(self.kinds.items())
        body = self._body(STEPS, may_make=True)
        return Sequence(self._number, first, tuple(self.kinds), body)

    def _new(self, letter: str, kind: str) -> str:
        name = f"{letter}{sum(known[0] == letter for known in self.kinds)}"
        self.kinds[name] = kind
        return name

    def _body(self, steps: int, may_make: bool) -> tuple[Statement, ...]:
        """Draw statements of so many instructions; only outer ones make registers."""
        statements: list[Statement] = []
        while steps > 0:
            chance = self.below(24)
            if may_make and chance == 0:
                statements.append(self._branch())
                steps -= 4
            elif may_make and chance == 1:
                statements.append(Loop(self._register("n"), self._body(3, may_make=False)))
                steps -= 3
            else:
                statements.append(self._step(may_make))
                steps -= 1
        return tuple(statements)

    def _branch(self) -> Branch:
        other = self._body(2, may_make=False) if self.below(2) else ()
        return Branch(self._guard(), self._body(2, may_make=False), other)

    def _guard(self) -> str:
        return "!" * self.below(2) + self._register("pred")

    def _step(self, may_make: bool) -> Step:
        opcodes = forms(self._tables[self.below(len(self._tables))], self._plain)
        cases = opcodes[self.below(len(opcodes))]
        case = cases[self.below(len(cases))]
        sources = tuple(self._source(kind, case) for kind in case.sources)
        guard = self._guard() if ";" not in case.text and self.below(8) == 0 else ""
        makes = may_make and not guard and self.below(4) > 0
        results: list[str] = []
        for kind in case.results:
            results.append(self._result(kind, makes, results))
        return Step(case, tuple(results), sources, guard)

    def _result(self, kind: str, makes: bool, taken: Items[str]) -> str:
        letter = letter_of(kind)
        if not makes:
            known = [n for n in self.kinds if n[0] == letter and n not in {*self._fixed, *taken}]
            if known:
                name = known[self.below(len(known))]
                self.kinds[name] = kind
                return name
        return self._new(letter, kind)

    def _register(self, kind: str) -> str:
        """Draw a register: more often one that was written as this type."""
        letter = letter_of(kind)
        known = [name for name in self.kinds if name[0] == letter]
        alike = [name for name in known if self.kinds[name] == kind]
        if alike and (kind in _KEPT or self.below(2)):
            known = alike
        return known[self.below(len(known))]

    def _source(self, kind: str, case: Case) -> str:
        takes = (
            kind in _WRITTEN and not case.text.startswith(_NO_CONSTANTS) and "$" not in case.name
        )
        if takes and self.below(12) == 0:
            known = [each for each in edges(kind) if kind != "n" or each < 256]
            return str(known[self.below(len(known))])
        return self._register(kind if kind in (*_KEPT, "n") else ALIASES.get(kind, kind))


_WRITTEN = frozenset({"u32", "s32", "b32", "u64", "s64", "b64", "n"})
_NO_CONSTANTS = ("div", "rem", "v")
"""An assembler divides by a constant in its own way, and takes none in video instructions."""


def draw(number: int) -> Sequence:
    """Return the sequence of a number."""
    return Drawing(number).whole()


def rows(sequence: Sequence) -> NDArray[np.uint64]:
    """Return the operands: (first registers, LANES), a word each."""
    return operands(sequence.number, [kind for _, kind in sequence.first])


def operands(number: int, kinds: Items[str]) -> NDArray[np.uint64]:
    """Return a column of LANES words for each kind."""
    columns = [pool(kind, f"{kind} {k} of {number}", LANES) for k, kind in enumerate(kinds)]
    return np.stack([column.astype(np.uint64) for column in columns])
