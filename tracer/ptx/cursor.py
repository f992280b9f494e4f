"""A place among the tokens: look, take, expect, and the one way to complain."""

from collections.abc import Iterable

from ...errors import CutraceError, nearest
from .lexer import Tokens

_SHOWN = 80


class Cursor:
    """Walks over tokens; `texts[index]` is the next one, the empty string is the end."""

    __slots__ = ("index", "texts", "tokens")

    def __init__(self, tokens: Tokens) -> None:
        """Stand before the first token."""
        self.tokens = tokens
        self.texts = tokens.texts
        self.index = 0

    @property
    def next(self) -> str:
        """The token that `take` would return."""
        return self.texts[self.index]

    @property
    def line(self) -> int:
        """The line of the next token."""
        return self.tokens.line(self.index)

    def take(self) -> str:
        """Return the next token and step over it; the end is never stepped over."""
        token = self.texts[self.index]
        if token:
            self.index += 1
        return token

    def accept(self, token: str) -> bool:
        """Step over the next token if it is `token`."""
        if self.texts[self.index] != token:
            return False
        self.index += 1
        return True

    def expect(self, token: str) -> None:
        """Step over `token`, or complain."""
        if not self.accept(token):
            raise self.error(f"`{token}`")

    def name(self, what: str) -> str:
        """Take an identifier."""
        token = self.texts[self.index]
        if not token or not (token[0].isalpha() or token[0] in "_$%"):
            raise self.error(what)
        self.index += 1
        return token

    def string(self, what: str) -> str:
        """Take a quoted string and return what is between the quotes."""
        if len(self.next) < 2 or self.next[0] != '"':
            raise self.error(what)
        return self.take()[1:-1]

    def skip_pair(self, opening: str, closing: str) -> None:
        """Step over `{ ... }` or `( ... )`, whatever is in it."""
        line = self.line
        self.expect(opening)
        depth = 1
        while depth:
            if not self.next:
                raise self.error(f"the `{closing}` that closes line {line}")
            token = self.take()
            depth += (token == opening) - (token == closing)

    def unknown(self) -> str:
        """Return the warning about the next token, a directive that nobody knows."""
        return f"PTX line {self.line}: directive {self.next} is not known and was passed over"

    def skip_unknown(self) -> str:
        """Step over an unknown directive, to its `;`, its `}` or the end of its line; warn."""
        warning, line = self.unknown(), self.line
        while self.next not in ("", "{", "}") and self.line == line:
            if self.take() == ";":
                return warning
        if self.next == "{" and self.line == line:
            self.skip_pair("{", "}")
        return warning

    def error(
        self, expected: str, known: Iterable[str] = (), index: int | None = None
    ) -> CutraceError:
        """Make the error for the token at `index` (the next one if None)."""
        at = self.index if index is None else index
        token = self.texts[at][:_SHOWN]
        found = f"`{token}`" if token else "the end of the text"
        hint = nearest(token, known)
        return CutraceError(
            f"PTX line {self.tokens.line(at)}: found {found}, expected {expected}{hint}"
        )

    def duplicate(self, name: str, index: int) -> CutraceError:
        """Make the error for a name, declared around token `index`, that is not the first."""
        line = self.tokens.line(index)
        return CutraceError(f"PTX line {line}: found a second `{name}`, expected a new name")
