"""Marks: PTX in which every statement says its own line, so that a cubin's line table names it."""

import re

_SOURCE = re.compile(r"\s*\.(?:loc|file)\s")
_COMMENT = re.compile(r"//.*|/\*.*?\*/")
_WHOLE = (";", "{", "}", ":")
"""What ends a statement, or comes between two."""
FILE = '\n\t.file 1 "kernel.ptx"\n'


def mark_lines(ptx: str) -> str:
    """Return PTX with the number of its own line before each statement of a kernel or function.

    Lines of the source that it was compiled from are left out.
    """
    marked: list[str] = []
    depth, begins = 0, True
    for number, line in enumerate(ptx.split("\n"), 1):
        if _SOURCE.match(line):
            continue
        said = _COMMENT.sub("", line).strip()
        if depth and begins and _is_statement(said):
            marked.append(f"\t.loc 1 {number} 0")
        marked.append(line)
        if said:
            begins = said.endswith(_WHOLE)
            depth += said.count("{") - said.count("}")
    return "\n".join(marked) + FILE


def _is_statement(said: str) -> bool:
    """Whether a line begins with an instruction, also behind an opening brace."""
    word = said.lstrip("{ \t")
    return bool(word) and (word[0] == "@" or word[0].islower())
