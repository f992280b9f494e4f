"""Top-level definitions by their braces alone, for text that the grammar cannot follow.

Macros that take statements as arguments (`FOR_EACH(int i = 0; f(i);)`) break the syntax tree of the
function around them into pieces. Braces still tell where that function begins and ends.
"""

import re
from collections.abc import Iterator

from .definition import Definition, defined_name, marker_pattern

_TOKEN = re.compile(
    rb"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:\\\r?\n|[^\n])*"
    rb"|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|[{};]",
    re.DOTALL | re.MULTILINE,
)
_OPENING = re.compile(rb'\b(?:namespace\b[\w\s:]*|extern\s*"C"\s*)$')


def chunks(text: str, markers: frozenset[str]) -> Iterator[Definition]:
    """The file's definitions in order: each ends at a `;` or a `}` outside of all other braces.

    Namespaces and `extern "C"` blocks are looked into; `markers` make a definition device code.
    """
    raw = text.encode()
    pattern = marker_pattern(markers)
    start = depth = 0
    for token in _TOKEN.finditer(raw):
        mark = token[0]
        if mark not in (b"{", b"}", b";"):
            if not raw[start : token.start()].strip():
                start = token.end()  # a comment or directive before the definition
        elif mark == b"{" and not depth and _OPENING.search(raw, start, token.start()):
            start = token.end()
        else:
            depth = max(depth + (mark == b"{") - (mark == b"}"), 0)
            if depth == 0 and raw[start : token.start()].strip():
                yield _chunk(raw, start, token.end(), pattern)
            start = start if depth else token.end()


def _chunk(raw: bytes, start: int, end: int, markers: re.Pattern[bytes]) -> Definition:
    """What lies between two bytes, without the blanks before it."""
    begin = end - len(raw[start:end].lstrip())
    return Definition(
        start=begin,
        end=end,
        first=raw.count(b"\n", 0, begin) + 1,
        last=raw.count(b"\n", 0, end) + 1,
        is_device=bool(markers.search(raw, begin, end)),
        is_host=False,
        is_function=raw[end - 1 : end] == b"}",
        name=defined_name(raw[begin:end]),
    )
