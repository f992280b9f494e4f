"""PTX text to tokens: one regular expression, no state.

A token is a string; its first character tells its kind. A word keeps its dotted tail, so that an
opcode with all its modifiers (`ld.global.L2::128B.f32`) and a component (`%tid.x`) are one token.
"""

import re
from bisect import bisect_right

from ...lazy_dataclass import dataclass

_TOKEN = re.compile(
    r"""
    (?: [\s\\]+ | //[^\n]* | /\*.*?\*/ | ^\#[^\n]* | ^[ \t]*@@DWARF[^\n]* )*+
    ( [A-Za-z_$%][\w$]*(?:(?:\.|::)\w+)*        # name, register, opcode with modifiers
    | \.[A-Za-z_]\w*(?:::\w+)*                  # directive, type
    | \d+(?:\.\d*)?[eE][+-]?\d+ | \d+\.\d* | \.\d+(?:[eE][+-]?\d+)?
    | \d\w*                                     # integer, 0f and 0d floats
    | "(?:[^"\\\n]|\\.)*"
    | <<|>>|<=|>=|==|!=|&&|\|\|
    | \S | \Z
    )
    """,
    re.VERBOSE | re.ASCII | re.DOTALL | re.MULTILINE,
)

_LOOK_AHEAD = 4
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\\", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Tokens:
    """All tokens of a text, then a few empty ones to look at; `starts` are character offsets."""

    source: str
    texts: list[str]
    starts: list[int]
    line_ends: list[int]

    def line(self, index: int) -> int:
        """Return the 1-based line of token `index`."""
        return bisect_right(self.line_ends, self.starts[index]) + 1

    def between(self, first: int, last: int) -> str:
        """Return the text from token `first` through token `last`, blanks made single."""
        text = self.source[self.starts[first] : self.starts[last] + len(self.texts[last])]
        if "/" in text or "\\" in text:
            text = _COMMENT.sub(" ", text)
        return " ".join(text.split())


def lex(text: str) -> Tokens:
    """Cut `text` into tokens. Never fails: a foreign character becomes a token of its own."""
    texts: list[str] = []
    starts: list[int] = []
    for match in _TOKEN.finditer(text):
        texts.append(match[1])
        starts.append(match.start(1))
    while texts and not texts[-1]:
        del texts[-1], starts[-1]
    texts += [""] * _LOOK_AHEAD
    starts += [len(text.rstrip())] * _LOOK_AHEAD
    return Tokens(text, texts, starts, [match.start() for match in re.finditer("\n", text)])
