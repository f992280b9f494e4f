"""Split PTX text into tokens with one stateless regular expression; read literals and constants.

A token is a string; its first character gives its kind. A word includes its dotted suffix, so an
opcode with all its modifiers (`ld.global.L2::128B.f32`) and a component (`%tid.x`) are one token
each. A constant expression (PTX ISA, 4.5) has C's operators, on 64-bit integers.
"""

import operator
import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from .kernel import Immediate

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


class InvalidPtxError(CutraceError):
    """A text is no PTX: CUDA_ERROR_INVALID_PTX for programs."""


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
    ) -> InvalidPtxError:
        """Return the error for the token at `index` (default: the next one)."""
        at = self.index if index is None else index
        token = self.texts[at][:_SHOWN]
        token_text = f"`{token}`" if token else "the end of the text"
        hint = nearest(token, candidates)
        return InvalidPtxError(
            f"PTX line {self.tokens.line(at)}: found {token_text}, expected {expected}{hint}"
        )

    def duplicate(self, name: str, index: int) -> InvalidPtxError:
        """Return the error for a repeated declaration of `name` near token `index`."""
        line = self.tokens.line(index)
        return InvalidPtxError(f"PTX line {line}: found a second `{name}`, expected a new name")


_MASK = (1 << 64) - 1


def _divide(lhs: int, right: int) -> int:
    quotient = abs(lhs) // abs(right)
    return quotient if (lhs < 0) == (right < 0) else -quotient


_OPERATORS: Mapping[str, tuple[int, Callable[[int, int], int]]] = {
    "||": (1, lambda a, b: int(bool(a) or bool(b))),
    "&&": (2, lambda a, b: int(bool(a) and bool(b))),
    "|": (3, operator.or_),
    "^": (4, operator.xor),
    "&": (5, operator.and_),
    "==": (6, lambda a, b: int(a == b)),
    "!=": (6, lambda a, b: int(a != b)),
    "<": (7, lambda a, b: int(a < b)),
    "<=": (7, lambda a, b: int(a <= b)),
    ">": (7, lambda a, b: int(a > b)),
    ">=": (7, lambda a, b: int(a >= b)),
    "<<": (8, lambda a, b: a << (b & 63)),
    ">>": (8, lambda a, b: a >> (b & 63)),
    "+": (9, operator.add),
    "-": (9, operator.sub),
    "*": (10, operator.mul),
    "/": (10, _divide),
    "%": (10, lambda a, b: a - b * _divide(a, b)),
}
"""Precedence and function of each binary operator."""

_UNARY: Mapping[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": lambda a: int(not a),
}


def integer_literal(text: str) -> int | None:
    """Parse `12`, `0x1F`, `017`, `0b101`, each with or without `U`; return None for anything else.

    PTX integers have at most 64 bits.
    """
    digits = text[:-1] if text[-1:] in ("U", "u") else text
    if not digits.isalnum():
        return None
    is_octal = digits[:1] == "0" and len(digits) > 1
    base = {"0x": 16, "0X": 16, "0b": 2, "0B": 2}.get(digits[:2], 8 if is_octal else 10)
    try:
        number = int(digits[2:] if base in (2, 16) else digits, base)
    except ValueError:
        return None
    return number if number <= _MASK else None


def float_literal(text: str) -> Immediate | None:
    """Parse `0f3F800000`, `0d3FF0000000000000`, `1.5`, `2e-3`; return None for anything else."""
    try:
        if text[:2] in ("0f", "0F") and len(text) == 10:
            return Immediate(int(text[2:], 16), "f32")
        if text[:2] in ("0d", "0D") and len(text) == 18:
            return Immediate(int(text[2:], 16), "f64")
        if (text[:1].isdigit() or text[:1] == ".") and set(text) & set(".eE"):
            return Immediate(struct.unpack("<Q", struct.pack("<d", float(text)))[0], "f64")
    except ValueError:
        pass
    return None


def read_constant(cursor: Cursor) -> Immediate:
    """Read a floating-point literal with an optional sign, or an integer expression."""
    start = cursor.index
    negative = cursor.accept("-")
    token = cursor.next
    if integer_literal(token) is None and (number := float_literal(token)) is not None:
        cursor.take()
        sign = 1 << (31 if number.kind == "f32" else 63)
        return Immediate(number.bits ^ sign, number.kind) if negative else number
    cursor.index = start
    return Immediate(read_integer(cursor))


def read_integer(cursor: Cursor) -> int:
    """Read an integer expression."""
    texts = cursor.texts
    value = integer_literal(texts[cursor.index])
    if value is not None and texts[cursor.index + 1] in (",", ";", "}", "]", ")"):
        cursor.index += 1
        return value
    return _ternary(cursor)


def _ternary(cursor: Cursor) -> int:
    condition = _binary(cursor, 1)
    if not cursor.accept("?"):
        return condition
    yes = _ternary(cursor)
    cursor.expect(":")
    no = _ternary(cursor)
    return yes if condition else no


def _binary(cursor: Cursor, strength: int) -> int:
    lhs = _unary(cursor)
    while cursor.next in _OPERATORS:
        binds, apply = _OPERATORS[cursor.next]
        if binds < strength:
            break
        sign, at = cursor.take(), cursor.index
        right = _binary(cursor, binds + 1)
        if sign in "/%" and right == 0:
            raise cursor.error("a divisor that is not 0", index=at)
        lhs = _wrap(apply(lhs, right))
    return lhs


def _unary(cursor: Cursor) -> int:
    if cursor.next in _UNARY:
        return _UNARY[cursor.take()](_unary(cursor))
    if cursor.accept("("):
        if cursor.next in (".s64", ".u64"):
            cast = cursor.take()
            cursor.expect(")")
            value = _unary(cursor) & _MASK
            return value - (value >> 63 << 64) if cast == ".s64" else value
        value = _ternary(cursor)
        cursor.expect(")")
        return value
    if cursor.accept("WARP_SZ"):
        return 32
    number = integer_literal(cursor.next)
    if number is None:
        raise cursor.error("a number")
    cursor.take()
    return number


def _wrap(value: int) -> int:
    """Return `value` unchanged if it fits in 64 bits, signed or unsigned; else wrap it."""
    return value if -(1 << 63) <= value <= _MASK else value & _MASK
