"""Sentences in lines: as wide as the terminal, SENTENCE at most, with words and names whole."""

from textwrap import wrap

SENTENCE = 100
"""Where sentences break at the latest."""


def wrapped(text: str, width: int | None = None, indent: str = "", hang: str = "  ") -> list[str]:
    """The lines of a sentence, from `indent` on; those after the first `hang` further in.

    `width` is the terminal's, None on a pipe.
    """
    return wrap(
        text,
        min(width or SENTENCE, SENTENCE),
        initial_indent=indent,
        subsequent_indent=indent + hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
