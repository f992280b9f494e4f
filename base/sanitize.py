"""Make foreign text inert: text of a trace or a source must not act where it is shown.

Names and source lines come from the author of the kernel or the trace. A terminal executes escape
sequences in them, a spreadsheet evaluates cells that begin like a formula, and bidirectional
control characters display a line that does not exist. The command line passes all output through
`sanitize`; coloured text is `Styled`, made from inert text.
"""

import re
from typing import TypeVar

_ACTIVE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters except tab and newline, bidirectional controls, and lone surrogates, which no
output can encode.
"""
_FORMULA = re.compile(r"[=+\-@\t\r]")

Value = TypeVar("Value")


class Styled(str):
    """Text with our own colour sequences; foreign text in it is inert already."""


def sanitize(text: str) -> str:
    r"""Show every character that would act on a terminal by its escape, as Python writes it.

    >>> sanitize("int x;\x1b[2J")
    'int x;\\x1b[2J'
    """
    return _ACTIVE.sub(_escape_control, text)


def one_line(text: str) -> str:
    r"""Sanitize a name for use within a line: newlines are escaped, too.

    >>> one_line("kernel\nnext: curl")
    'kernel\\nnext: curl'
    """
    return sanitize(text).replace("\n", "\\n")


def csv_cell(value: Value) -> Value | str:
    """Return a spreadsheet cell: an apostrophe turns text that begins like a formula into text.

    >>> csv_cell("=1+1"), csv_cell("kernel"), csv_cell(-1)
    ("'=1+1", 'kernel', -1)
    """
    if not isinstance(value, str):
        return value
    shown = one_line(value)
    return f"'{shown}" if _FORMULA.match(shown) else shown


def _escape_control(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
