"""Source lines with their words marked: comments, keywords, strings and numbers, nothing else.

The text of others is escaped and made inert before it is marked.
"""

from functools import lru_cache
from typing import Any

from markupsafe import Markup, escape

from ...inert import inert

MARKED = (("Comment", "c"), ("Keyword", "k"), ("String", "s"), ("Number", "n"))
"""Kinds of words, in the order in which they are looked for, and their classes on the page."""
MOST = 2_000_000
"""Characters of a file beyond which nothing is marked."""


@lru_cache(maxsize=64)
def marked_lines(name: str, text: str) -> tuple[Markup, ...]:
    """The lines of a file, marked; none where its language is not known."""
    lexer = _lexer(name)
    if lexer is None or len(text) > MOST:
        return ()
    lines: list[list[Markup]] = [[]]
    for kind, words in lexer.get_tokens(inert(text).replace("\x0c", " ")):
        style = next((style for part, style in MARKED if part in tuple(kind)), "")
        first, *others = words.split("\n")
        lines[-1].append(_span(first, style))
        lines += [[_span(words, style)] for words in others]
    return tuple(Markup("").join(line) for line in lines)


def _span(words: str, style: str) -> Markup:
    if not style or not words.strip():
        return escape(words)
    return Markup('<b class="{}">{}</b>').format(style, words)


def _lexer(name: str) -> Any:
    """The lexer for a file name; None for an unknown language."""
    from pygments.lexers import CudaLexer, PythonLexer

    if name.endswith(".py"):
        return PythonLexer(stripnl=False, ensurenl=False)
    if name.endswith((".cu", ".cuh", ".h", ".hpp", ".cpp", ".inl")):
        return CudaLexer(stripnl=False, ensurenl=False)
    return None
