"""Preprocessor conditionals whose branches do not close the braces they open.

`#ifdef A` / `if (x) {` / `#else` / `while (x) {` / `#endif` is one brace to a compiler and two to
a parser that reads all branches. Of such a conditional only the first branch is shown to the
parser; the others become spaces, so that no position changes.
"""

import re
from dataclasses import field

from ....lazy_dataclass import dataclass

_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(if|ifdef|ifndef|else|elif|endif)\b", re.MULTILINE)
_NOT_CODE = re.compile(
    rb'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.){1,4}\'', re.DOTALL
)


@dataclass
class _Conditional:
    """Where its branches begin, each after its directive's line, and where the last one ends."""

    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


def show_one_branch(text: bytes) -> bytes:
    """Blank all but the first branch of each conditional with a branch that leaves braces open."""
    if b"#" not in text:
        return text
    for each in _conditionals(text):
        branches = list(zip(each.starts, each.ends, strict=True))
        if any(_open_braces(text[start:end]) for start, end in branches):
            for start, end in branches[1:]:
                text = text[:start] + re.sub(rb"[^\r\n]", b" ", text[start:end]) + text[end:]
    return text


def _conditionals(text: bytes) -> list[_Conditional]:
    """The conditionals of a text, inner ones before those around them."""
    waiting: list[_Conditional] = []
    found = []
    for directive in _DIRECTIVE.finditer(text):
        line_end = text.find(b"\n", directive.end()) + 1 or len(text)
        if directive[1].startswith(b"if"):
            waiting.append(_Conditional([line_end]))
        elif waiting:
            waiting[-1].ends.append(directive.start())
            if directive[1] == b"endif":
                found.append(waiting.pop())
            else:
                waiting[-1].starts.append(line_end)
    return found


def _open_braces(branch: bytes) -> int:
    code = _NOT_CODE.sub(b"", branch)
    return code.count(b"{") - code.count(b"}")
