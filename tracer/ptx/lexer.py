"""Split PTX text into tokens with one stateless regular expression.

A token is a string; its first character gives its kind. A word includes its dotted suffix, so an
opcode with all its modifiers (`ld.global.L2::128B.f32`) and a component (`%tid.x`) are one token
each.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest

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
    """All tokens of a text, plus a few empty ones as lookahead; `starts` are character offsets."""

    source: str
    texts: list[str]
    starts: list[int]
    line_ends: list[int]

    def line(self, index: int) -> int:
        """Return the 1-based line of token `index`."""
        return bisect_right(self.line_ends, self.starts[index]) + 1

    def between(self, first: int, last: int) -> str:
        """Return the text from token `first` through token `last` with single spaces."""
        text = self.source[self.starts[first] : self.starts[last] + len(self.texts[last])]
        if "/" in text or "\\" in text:
            text = _COMMENT.sub(" ", text)
        return " ".join(text.split())


def lex(text: str) -> Tokens:
    """Split `text` into tokens. It never fails: an unexpected character becomes a token."""
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


_SHOWN = 80


class Cursor:
    """A position in the tokens; `texts[index]` is the next one, the empty string marks the end."""

    __slots__ = ("index", "texts", "tokens")

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.texts = tokens.texts
        self.index = 0

    @property
    def next(self) -> str:
        """Return the next token without consuming it."""
        return self.texts[self.index]

    @property
    def line(self) -> int:
        """Return the line of the next token."""
        return self.tokens.line(self.index)

    def take(self) -> str:
        """Consume and return the next token; the cursor stays at the end."""
        token = self.texts[self.index]
        if token:
            self.index += 1
        return token

    def accept(self, token: str) -> bool:
        """Consume the next token if it is `token`; return whether it was."""
        if self.texts[self.index] != token:
            return False
        self.index += 1
        return True

    def expect(self, token: str) -> None:
        """Consume `token`, or raise an error."""
        if not self.accept(token):
            raise self.error(f"`{token}`")

    def name(self, what: str) -> str:
        """Consume an identifier."""
        token = self.texts[self.index]
        if not token or not (token[0].isalpha() or token[0] in "_$%"):
            raise self.error(what)
        self.index += 1
        return token

    def string(self, what: str) -> str:
        """Consume a quoted string and return its contents."""
        if len(self.next) < 2 or self.next[0] != '"':
            raise self.error(what)
        return self.take()[1:-1]

    def skip_pair(self, opening: str, closing: str) -> None:
        """Skip `{ ... }` or `( ... )` with its contents."""
        line = self.line
        self.expect(opening)
        depth = 1
        while depth:
            if not self.next:
                raise self.error(f"the `{closing}` that closes line {line}")
            token = self.take()
            depth += (token == opening) - (token == closing)

    def unknown(self) -> str:
        """Return the warning for an unknown directive, the next token."""
        return f"PTX line {self.line}: directive {self.next} is not known and was passed over"

    def skip_unknown(self) -> str:
        """Skip an unknown directive to its `;`, its `}` or the end of its line; add a warning."""
        warning, line = self.unknown(), self.line
        while self.next not in ("", "{", "}") and self.line == line:
            if self.take() == ";":
                return warning
        if self.next == "{" and self.line == line:
            self.skip_pair("{", "}")
        return warning

    def error(
        self, expected: str, candidates: Iterable[str] = (), index: int | None = None
    ) -> CutraceError:
        """Return the error for the token at `index` (default: the next one)."""
        at = self.index if index is None else index
        token = self.texts[at][:_SHOWN]
        token_text = f"`{token}`" if token else "the end of the text"
        hint = nearest(token, candidates)
        return CutraceError(
            f"PTX line {self.tokens.line(at)}: found {token_text}, expected {expected}{hint}"
        )

    def duplicate(self, name: str, index: int) -> CutraceError:
        """Return the error for a repeated declaration of `name` near token `index`."""
        line = self.tokens.line(index)
        return CutraceError(f"PTX line {line}: found a second `{name}`, expected a new name")
