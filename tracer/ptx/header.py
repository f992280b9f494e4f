"""Parse a function header: name, parameters and performance directives."""

from dataclasses import field

from ...base.dataclass import dataclass
from .constant import integer_literal
from .kernel import Function, Variable
from .lexer import Cursor
from .opcodes import words
from .variable import read_declaration, read_name

_DIRECTIVES = words(
    """
    maxntid reqntid minnctapersm maxnctapersm maxnreg noreturn explicitcluster reqnctapercluster
    maxclusterrank blocksareclusters abi_preserve abi_preserve_control
    """
)


@dataclass(slots=True)
class Header:
    """The header of an `.entry` or `.func`; `directives` are like `{"maxntid": (256, 1, 1)}`."""

    name: str
    is_entry: bool
    returns: tuple[Variable, ...] = ()
    parameters: tuple[Variable, ...] = ()
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def declaration(self) -> Function:
        """Return the function as a declaration without a body."""
        shape = (self.name, self.is_entry, self.returns, self.parameters)
        return Function(*shape, {}, (), (), {}, {}, self.directives, is_extern=True)


def read_header(cursor: Cursor) -> Header:
    """Read from `.entry` or `.func` up to the `{` or `;`, which the caller reads."""
    is_entry = cursor.take() == ".entry"
    header = Header("", is_entry)
    _read_directives(cursor, header)
    if not is_entry and cursor.next == "(":
        header.returns = _read_parameters(cursor)
    header.name = cursor.name("the name of a function")
    if cursor.next == "(":
        header.parameters = _read_parameters(cursor)
    _read_directives(cursor, header)
    return header


def skip_pragma(cursor: Cursor) -> None:
    """Skip `.pragma "nounroll";`, a hint to the assembler."""
    cursor.take()
    cursor.string("a string")
    while cursor.accept(","):
        cursor.string("a string")
    cursor.expect(";")


def _read_parameters(cursor: Cursor) -> tuple[Variable, ...]:
    """Read `(.param .u64 a, .reg .u32 b)`."""
    cursor.expect("(")
    parameters: list[Variable] = []
    while not cursor.accept(")"):
        if parameters:
            cursor.expect(",")
        if cursor.next not in (".param", ".reg"):
            raise cursor.error("`.param`, `.reg` or `)`")
        parameters += read_name(cursor, read_declaration(cursor))
    return tuple(parameters)


def _read_directives(cursor: Cursor, header: Header) -> None:
    """Read `.maxntid 256, 1, 1 .minnctapersm 2`."""
    while cursor.next[:1] == ".":
        name = cursor.next[1:]
        if name == "pragma":
            skip_pragma(cursor)
        elif name == "attribute":
            cursor.take()
            cursor.skip_pair("(", ")")
        elif name in _DIRECTIVES:
            cursor.take()
            header.directives[name] = _read_numbers(cursor)
        else:
            header.warnings.append(cursor.unknown())
            cursor.take()
            _read_numbers(cursor)


def _read_numbers(cursor: Cursor) -> tuple[int, ...]:
    numbers: list[int] = []
    while (number := integer_literal(cursor.next)) is not None:
        cursor.take()
        numbers.append(number)
        if not cursor.accept(","):
            break
    return tuple(numbers)
