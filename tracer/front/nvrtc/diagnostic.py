"""The compiler's messages, read from its log: where each one is, and what it says."""

import re
from collections.abc import Iterator

from ....lazy_dataclass import dataclass

_HEAD = re.compile(
    r"^(?P<file>\S.*?)\((?P<line>\d+)\): (?P<kind>(?:catastrophic )?error|warning|remark)"
    r"(?: #\d+(?:-D)?)?: (?P<words>.*)$"
)
_AT = re.compile(r' at line (\d+)(?: of "?([^"]+?)"?)?$')
_TAIL = re.compile(r"^\d+ (?:catastrophic )?errors? detected|^Compilation terminated|^Remark: ")
_MISSING = re.compile(r'cannot open source file "([^"]+)"')
_INDENT = 2  # the compiler shows a line two columns in
NAME_MAP = "__nv_name_map"
"""The file in which NVRTC says that it finds name expressions."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message: `places` are (file, line), its own first, then whence it was instantiated.

    `column` counts from 0, in characters of its own line, -1 where the compiler shows none.
    """

    kind: str
    words: str
    places: tuple[tuple[str, int], ...]
    column: int
    text: str

    @property
    def is_error(self) -> bool:
        """Whether it kept the compiler from giving PTX."""
        return self.kind.endswith("error")

    @property
    def missing_header(self) -> str:
        """The header that could not be opened, or `""`."""
        found = _MISSING.search(self.words)
        return found[1] if found else ""

    @property
    def name_expression(self) -> str:
        """The template instance that was asked for and names nothing, or `""`."""
        if self.places[0][0] != NAME_MAP:
            return ""
        _, _, rest = self.text.partition("#pragma nv_mangled_name ")
        return rest.partition("\n")[0].strip()

    def at(self, path: str, line: int) -> "Diagnostic":
        """The same words, said of another place alone, without what the compiler showed."""
        text = f"{path}({line}): {self.kind}: {self.words}"
        return Diagnostic(self.kind, self.words, ((path, line),), -1, text)


def read_diagnostics(log: str) -> tuple[Diagnostic, ...]:
    """The messages of a log, in order; notes belong to the message before them."""
    return tuple(_read(chunk) for chunk in _chunks(log))


def _chunks(log: str) -> Iterator[list[str]]:
    chunk: list[str] = []
    for line in log.splitlines():
        if _HEAD.match(line):
            if chunk:
                yield chunk
            chunk = [line]
        elif chunk and line.strip() and not _TAIL.match(line):
            chunk.append(line)
    if chunk:
        yield chunk


def _read(chunk: list[str]) -> Diagnostic:
    head = _HEAD.match(chunk[0])
    assert head is not None
    own = head["file"], int(head["line"])
    whence = ((at[2] or own[0], int(at[1])) for line in chunk[1:] if (at := _AT.search(line)))
    caret = next((line for line in chunk[1:] if line.strip() == "^"), "")
    column = caret.find("^") - _INDENT if caret else -1
    return Diagnostic(head["kind"], head["words"], (own, *whence), column, "\n".join(chunk))
