"""Text of others made inert: what a trace or a source brings does nothing where it is shown.

Names and source lines come from whoever wrote the kernel, or the trace. A terminal obeys escape
sequences in them, a spreadsheet calculates cells that begin like a formula, and characters that
turn the direction of writing show a line that is not there. The command line passes all that it
prints through `sanitize`; what is coloured is `Styled`, made of inert text.
"""

import re
from typing import TypeVar

_ACTIVE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but tab and newline, those of direction, and halves of pairs, which no output
can hold."""
_FORMULA = re.compile(r"[=+\-@\t\r]")

Value = TypeVar("Value")


class Styled(str):
    """Text with colours of our own, the text of others in it inert already."""


def sanitize(text: str) -> str:
    r"""Show every character that would act on a terminal by its escape, as Python writes it.

    >>> sanitize("int x;\x1b[2J")
    'int x;\\x1b[2J'
    """
    return _ACTIVE.sub(_escape_control, text)


def one_line(text: str) -> str:
    r"""The same for a name, which has no line of its own: newlines are shown, too.

    >>> one_line("kernel\nnext: curl")
    'kernel\\nnext: curl'
    """
    return sanitize(text).replace("\n", "\\n")


def csv_cell(value: Value) -> Value | str:
    """A cell for a spreadsheet: an apostrophe before what begins like a formula makes it text.

    >>> csv_cell("=1+1"), csv_cell("kernel"), csv_cell(-1)
    ("'=1+1", 'kernel', -1)
    """
    if not isinstance(value, str):
        return value
    shown = one_line(value)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def _escape_control(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
