"""Declarations of variables and parameters: `.global .align 4 .b8 table[16] = {...}`."""

from collections.abc import Mapping
from math import prod

from ...lazy_dataclass import dataclass
from .constant import integer_literal, read_integer
from .cursor import Cursor
from .initializer import Data, read_initializer
from .kernel import TYPE_BYTES, Variable

DECLARED_SPACES = frozenset({".global", ".const", ".shared", ".local", ".param", ".tex"})
"""Directives that begin the declaration of a variable."""

OPAQUE: Mapping[str, int] = {"texref": 8, "samplerref": 8, "surfref": 8}
_WIDTHS: Mapping[str, int] = {".v2": 2, ".v4": 4, ".v8": 8}
_MOST_NUMBERED = 1 << 16
_LARGEST = 1 << 48
_MOST_ALIGNED = 1 << 24


@dataclass(slots=True)
class Declaration:
    """What comes before the names: state space, type, alignment, attributes.

    `vector` is the number of elements of `.v2`/`.v4`; `align` 0 means the natural one.
    """

    space: str
    is_extern: bool = False
    element: str = ""
    vector: int = 1
    align: int = 0
    pointer_space: str | None = None

    @property
    def width(self) -> int:
        """Bytes of one element (of a vector: of one of its parts)."""
        return OPAQUE.get(self.element) or TYPE_BYTES[self.element]


def read_declaration(cursor: Cursor, is_extern: bool = False) -> Declaration:
    """Read from the state space to the type; the names follow."""
    declared = Declaration(cursor.take()[1:].partition("::")[0], is_extern)
    if cursor.accept("["):  # a bank, `.const[2]`: all banks are one window
        read_integer(cursor)
        cursor.expect("]")
    while cursor.next[:1] == ".":
        _read_attribute(cursor, declared)
    if not declared.element:
        raise cursor.error("a type such as `.b32`")
    return declared


def element_bytes(variable: Variable) -> int:
    """Return the bytes of one element, as an index counts them."""
    return OPAQUE.get(variable.element) or TYPE_BYTES[variable.element]


def read_names(cursor: Cursor, declared: Declaration) -> list[Variable]:
    """Read all names of one declaration, to the `;` and over it."""
    variables = read_name(cursor, declared)
    while cursor.accept(","):
        variables += read_name(cursor, declared)
    cursor.expect(";")
    return variables


def read_name(cursor: Cursor, declared: Declaration) -> list[Variable]:
    """Read one name with its dimensions and initialiser; `name<4>` is four variables."""
    line = cursor.line
    name = cursor.name("the name of a variable")
    if cursor.next == "<":
        count = read_count(cursor, _MOST_NUMBERED)
        return [_make(declared, f"{name}{number}", (), Data(), line) for number in range(count)]
    dims = _read_dimensions(cursor)
    data = Data()
    if cursor.accept("="):
        data = _read_value(cursor, declared, dims)
    return [_make(declared, name, dims, data, line)]


def read_count(cursor: Cursor, most: int) -> int:
    """Read `<12>` of `%r<12>`: 0 to `most`."""
    cursor.expect("<")
    at = cursor.index
    count = integer_literal(cursor.take())
    if count is None or count > most:
        raise cursor.error(f"a count from 0 to {most}", index=at)
    cursor.expect(">")
    return count


def _read_attribute(cursor: Cursor, declared: Declaration) -> None:
    """Read one directive between the state space and the name."""
    directive = cursor.next
    if directive[1:] in TYPE_BYTES or directive[1:] in OPAQUE:
        declared.element = directive[1:]
    elif directive in _WIDTHS:
        declared.vector = _WIDTHS[directive]
    elif directive == ".ptr":
        declared.pointer_space = "generic"
    elif directive in DECLARED_SPACES and declared.pointer_space:
        declared.pointer_space = directive[1:]
    elif directive not in (".align", ".attribute"):
        raise cursor.error("a type such as `.b32`", [f".{name}" for name in TYPE_BYTES])
    cursor.take()
    if directive == ".align":
        _read_alignment(cursor, declared)
    elif directive == ".attribute":
        cursor.skip_pair("(", ")")


def _read_alignment(cursor: Cursor, declared: Declaration) -> None:
    """Read the bytes after `.align`; after `.ptr` they are the pointed-to object's."""
    at = cursor.index
    align = integer_literal(cursor.take())
    if not align or align & (align - 1) or align > _MOST_ALIGNED:
        raise cursor.error(f"a power of two up to {_MOST_ALIGNED}", index=at)
    if not declared.pointer_space:
        declared.align = align


def _read_dimensions(cursor: Cursor) -> tuple[int, ...]:
    """Read `[4][2]`; the first may be open, `[]`, and is 0 then."""
    dims: list[int] = []
    while cursor.accept("["):
        at = cursor.index
        least = 1 if dims else 0
        extent = read_integer(cursor) if dims or cursor.next != "]" else 0
        if not least <= extent <= _LARGEST:
            raise cursor.error("a number of elements", index=at)
        dims.append(extent)
        cursor.expect("]")
    return tuple(dims)


def _read_value(cursor: Cursor, declared: Declaration, dims: tuple[int, ...]) -> Data:
    if declared.element in OPAQUE:  # attributes of a sampler: the host's, when it binds one
        cursor.skip_pair("{", "}")
        return Data()
    vector = (declared.vector,) if declared.vector > 1 else ()
    return read_initializer(cursor, declared.element, declared.width, dims + vector)


def _make(
    declared: Declaration, name: str, dims: tuple[int, ...], data: Data, line: int
) -> Variable:
    unit = declared.width * declared.vector
    if dims[:1] == (0,):  # open: as long as its values
        row = unit * prod(dims[1:])
        size = -(-len(data.image) // row) * row if row else 0
    else:
        size = unit * prod(dims)
    return Variable(
        name,
        declared.space,
        declared.element,
        declared.align or unit,
        size,
        bytes(data.image),
        tuple(data.relocations),
        declared.is_extern,
        declared.pointer_space,
        line,
    )
