"""The forms of `tests/golden/instructions_isa.txt`, as instructions and as a module of PTX."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).parents[1] / "golden" / "instructions_isa.txt"
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
_LINE = re.compile(r"(\S+) (\S+) ([\w ]+?) \| (.*)")
_VECTOR = re.compile(r"<(\d+)([hrdf])>")
_INNERMOST = re.compile(r"<([^<>]*)>")


class Heading(NamedTuple):
    """An instruction of the ISA: its section and name, the targets that have it, its forms."""

    section: str
    name: str
    targets: tuple[str, ...]
    forms: tuple[str, ...]


def headings() -> list[Heading]:
    """Return the instructions of the table."""
    found = []
    for line in TABLE.read_text().splitlines():
        if line and not line.startswith("#"):
            match = _LINE.fullmatch(line)
            assert match, line
            section, name, targets, forms = match.groups()
            words = TARGETS if targets == "all" else tuple(f"sm_{t}" for t in targets.split())
            each = tuple(one for form in forms.split("; ") for one in expand(form))
            found.append(Heading(section, name, words, each))
    return found


def expand(form: str) -> Iterator[str]:
    """Yield a form with each of its choices; `<4r>` is a vector of four registers."""
    form = _VECTOR.sub(lambda match: _vector(int(match[1]), match[2]), form)
    choice = _INNERMOST.search(form)
    if choice is None:
        yield form
        return
    before, after = form[: choice.start()], form[choice.end() :]
    for word in re.split(r"(?<!%p0)\|(?!%p1)", choice[1]):
        yield from expand(before + word + after)


def _vector(count: int, kind: str) -> str:
    return "{" + ", ".join(f"%{kind}{number}" for number in range(count)) + "}"


HEAD = """.version 8.8
.target {target}
.address_size 64
.extern .shared .align 1024 .b8 box[];
.global .align 1024 .b8 far[1024];
.func (.param .b32 result) own(.param .b32 given)
{{
.reg .b32 %r0; ld.param.b32 %r0, [given]; st.param.b32 [result], %r0; ret;
}}
"""
_BODY = """.visible .entry k{number}(.param .u64 a)
{{
.reg .b8 %b<2>; .reg .b16 %h<8>; .reg .b32 %r<201>; .reg .b64 %d<8>; .reg .b128 %q<2>;
.reg .f32 %f<4>; .reg .pred %p<4>;
mov.u64 %d0, far;
targets: .branchtargets OUT;
{text};
OUT: ret;
}}
"""
LINES = _BODY.count("\n")
"""Lines of a kernel in a module; its instruction is on the last but two."""


def kernel(form: str, number: int = 0) -> str:
    """Return a kernel with one instruction."""
    return _BODY.format(number=number, text=form)


def module(forms: Sequence[str], target: str) -> str:
    """Return a module with a kernel for each form."""
    text = HEAD.format(target=target)
    return text + "".join(kernel(form, number) for number, form in enumerate(forms))
