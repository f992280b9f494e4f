"""The terminal that a verb prints to: width, colours, and `--quiet`.

`--color` and `--quiet` may be anywhere before `--`, for every verb; `$NO_COLOR`, `$FORCE_COLOR` and
`$COLUMNS` have their usual meaning. A pipe has no width unless `$COLUMNS` gives it one.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from ...base.dataclass import dataclass
from ...base.errors import CutraceError

WHEN = ("auto", "always", "never")
_NEXT = re.compile(r"^(?:\x1b\[[0-9;]*m)?next: ")


@dataclass(frozen=True, slots=True)
class Screen:
    """Screen options; `color` is one of WHEN."""

    color: str = "auto"
    quiet: bool = False


_AS_USUAL = Screen()
_SCREEN: ContextVar[Screen] = ContextVar("screen", default=_AS_USUAL)


@contextmanager
def screen_of(arguments: Sequence[str]) -> Iterator[list[str]]:
    """Yield the arguments without the screen options, which apply while the body runs."""
    read, tail = read_screen(arguments)
    before = _SCREEN.set(read)
    try:
        yield tail
    finally:
        _SCREEN.reset(before)


def read_screen(arguments: Sequence[str]) -> tuple[Screen, list[str]]:
    """Return the screen options, and the other arguments.

    >>> read_screen(["why", "--color=never", "k.cu", "-q", "--", "./app", "-q"])
    (Screen(color='never', quiet=True), ['why', 'k.cu', '--', './app', '-q'])
    """
    color, quiet = "auto", False
    tail: list[str] = []
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if word == "--":
            return Screen(color, quiet), [*tail, word, *words]
        if word in ("--quiet", "-q"):
            quiet = True
        elif name == "--color":
            color = value if equals else next(words, "")
            if color not in WHEN:
                raise CutraceError(f"--color {color}: expected {', '.join(WHEN)}")
        else:
            tail.append(word)
    return Screen(color, quiet), tail


def is_quiet() -> bool:
    """Return whether `--quiet` suppresses all but the answer."""
    return _SCREEN.get().quiet


def width() -> int | None:
    """Return the terminal's width, or `$COLUMNS`; None if lines may have any length."""
    if os.environ.get("COLUMNS", "").isdigit() or sys.stdout.isatty():
        return shutil.get_terminal_size().columns
    return None


def has_colour() -> bool:
    """Return whether to print colours: by option, else by environment, else on a terminal."""
    color = _SCREEN.get().color
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


def without_next(text: str) -> str:
    """Return a report without its last line, if that suggests the next command."""
    *lines, last = text.rstrip("\n").split("\n")
    return "\n".join(lines).rstrip() if _NEXT.match(last) else text
