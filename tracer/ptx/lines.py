"""Parse source lines: `.file` and `.loc` with `inlined_at` (PTX ISA, 11.5)."""

from .kernel import Kernel, Location
from .lexer import Cursor, Tokens, integer_literal

_MOST = (1 << 32) - 1
"""Largest number of a file, line or column: 32 bits."""


class SourceLines:
    """The files of a text, and the locations of its `.loc` directives up to the cursor."""

    def __init__(self, tokens: Tokens) -> None:
        """Collect the files; no location is known yet."""
        self._files = _find_files(tokens)
        self._places: dict[tuple[int, int, int], Location] = {}

    def read_loc(self, cursor: Cursor) -> Location | None:
        """Read the operands of `.loc`; return None for line 0, which means no line.

        A location inlined into an inlined one inherits its chain: `inlined_at` refers to a location
        of an earlier `.loc`.
        """
        place = self._read_place(cursor)
        chain: tuple[Location, ...] = ()
        while cursor.accept(","):
            attribute = cursor.name("`function_name` or `inlined_at`")
            if attribute == "inlined_at":
                outer = self._locate(self._read_place(cursor), ())
                chain = (Location(outer.file, outer.line, outer.column), *outer.inlined_at)
            elif attribute == "function_name":
                _skip_label(cursor)
            else:
                raise cursor.error("`function_name` or `inlined_at`", index=cursor.index - 1)
        location = self._places[place] = self._make(place, chain)
        return location if location.line else None

    def _locate(self, place: tuple[int, int, int], chain: tuple[Location, ...]) -> Location:
        return self._places.get(place) or self._make(place, chain)

    def _make(self, place: tuple[int, int, int], chain: tuple[Location, ...]) -> Location:
        file, line, column = place
        return Location(self._files.get(file, ""), line, column, chain)

    def _read_place(self, cursor: Cursor) -> tuple[int, int, int]:
        file, line, column = (_number(cursor, _MOST) for _ in range(3))
        return file, line, column


def read_file(cursor: Cursor) -> None:
    """Skip the operands of `.file` (number, names, time, size): `_find_files` has read them."""
    _number(cursor)
    cursor.string('a file name in `"`')
    while cursor.next[:1] == '"':
        cursor.take()
    while cursor.accept(","):
        _number(cursor)


def _find_files(tokens: Tokens) -> dict[int, str]:
    """Collect all `.file` directives; compilers emit them last. A second string is the file."""
    texts = tokens.texts
    files: dict[int, str] = {}
    for index, token in enumerate(texts):
        if token == ".file":
            number = integer_literal(texts[index + 1])
            if number is not None:
                files.setdefault(number, _file_name(texts[index + 2], texts[index + 3]))
    return files


def _file_name(first: str, second: str) -> str:
    name = first.strip('"')
    if second[:1] != '"':
        return name
    inner = second.strip('"')
    return inner if inner.startswith("/") else f"{name}/{inner}"


def _number(cursor: Cursor, most: int | None = None) -> int:
    number = integer_literal(cursor.next)
    if number is None or (most is not None and number > most):
        raise cursor.error("a number" if most is None else f"a number up to {most}")
    cursor.take()
    return number


def _skip_label(cursor: Cursor) -> None:
    """Skip `$L__info_string0` or `$L__info_string0+12` (an offset in .debug_str)."""
    cursor.name("a label in .debug_str")
    if cursor.accept("+"):
        _number(cursor)


def source_line(kernel: Kernel, pc: int) -> str:
    """Return `file:line` of an instruction, or its PTX line if the source line is unknown; of
    machine code its address."""
    instruction = kernel.instructions[pc]
    place = instruction.location
    if place is None and kernel.rows:
        return f"address {instruction.text.partition(' ')[0].strip('/*')}"
    return f"{place.file}:{place.line}" if place else f"PTX line {instruction.ptx_line}"
