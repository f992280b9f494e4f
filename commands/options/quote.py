"""Quote words for a command line."""

import re
from pathlib import PurePath

from ...traces.address import as_given


def quote(word: object) -> str:
    """Return the word, in double quotes if a shell needs them; for bash, zsh and cmd.

    >>> quote("reverse.cu"), quote("f<<<1, 2>>>()")
    ('reverse.cu', '"f<<<1, 2>>>()"')
    """
    text = as_given(word) if isinstance(word, PurePath) else str(word)
    if re.fullmatch(r"[\w@%+=:,./-]+", text):
        return text
    return '"' + re.sub(r'(["\\$`])', r"\\\1", text) + '"'
