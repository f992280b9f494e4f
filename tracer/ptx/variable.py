"""Parse declarations of variables and parameters: `.global .align 4 .b8 table[16] = {...}`."""

import struct
from collections.abc import Mapping
from dataclasses import field
from math import prod

from ...base.dataclass import dataclass
from .kernel import TYPE_BYTES, Immediate, Variable
from .lexer import Cursor, integer_literal, read_constant, read_integer

ADDRESS_BYTES = 8
_MOST_INITIAL = 1 << 28
_BYTES = frozenset(map(str, range(256)))


@dataclass(slots=True)
class Data:
    """Initialised bytes, and relocations (offset, symbol, addend).

    `masked` are single bytes of an address, `0xFF00(name)`: (offset, byte number, symbol, addend).
    """

    image: bytearray = field(default_factory=bytearray)
    relocations: list[tuple[int, str, int]] = field(default_factory=list)
    masked: list[tuple[int, int, str, int]] = field(default_factory=list)

    def put(self, offset: int, value: bytes) -> None:
        """Write `value` at `offset`; fill a gap before it with zeros."""
        self.image.extend(bytes(max(0, offset + len(value) - len(self.image))))
        self.image[offset : offset + len(value)] = value


def read_initializer(cursor: Cursor, element: str, width: int, dims: tuple[int, ...]) -> Data:
    """Read the initialiser of an array of `dims` (the first 0 if open), `width` bytes each."""
    data = Data()
    start = cursor.index
    size = width * prod(dims)
    if size > _MOST_INITIAL:
        raise cursor.error(f"no initial values of a variable of {size} bytes", index=start)
    if cursor.next == "{":
        _read_level(cursor, data, element, width, dims, 0)
    else:
        _read_scalar(cursor, data, element, width, 0)
    _join_masked(cursor, data, start)
    if size and len(data.image) > size:
        raise cursor.error(f"at most {size} bytes of initial values", index=start)
    return data


def _read_level(
    cursor: Cursor, data: Data, element: str, width: int, dims: tuple[int, ...], offset: int
) -> None:
    """Read the `{...}` of one dimension; an inner `{` starts at the next whole row."""
    cursor.expect("{")
    row = width * prod(dims[1:])
    at = offset + _read_plain_bytes(cursor, data, width, offset)
    while not cursor.accept("}"):
        if cursor.next == "{":
            if len(dims) < 2:
                raise cursor.error(f"a value, since there are {len(dims)} dimensions")
            at = offset + -(-(at - offset) // row) * row
            _read_level(cursor, data, element, width, dims[1:], at)
            at += row
        else:
            at += _read_scalar(cursor, data, element, width, at)
        if cursor.next != "}":
            cursor.expect(",")


def _read_plain_bytes(cursor: Cursor, data: Data, width: int, offset: int) -> int:
    """Read a whole `{...}` of plain decimal bytes at once; return how many there are."""
    texts, start = cursor.texts, cursor.index
    if width != 1 or texts[start] not in _BYTES:
        return 0
    end = next(i for i in range(start + 1, len(texts)) if texts[i] in ("}", ""))
    values, commas = texts[start:end:2], texts[start + 1 : end : 2]
    if not set(values) <= _BYTES or set(commas) != {","} or len(values) == len(commas):
        return 0
    data.put(offset, bytes(map(int, values)))
    cursor.index = end
    return len(values)


def _read_scalar(cursor: Cursor, data: Data, element: str, width: int, offset: int) -> int:
    """Read one value to `offset` and return its size in bytes."""
    start = cursor.next[:1]
    if start == '"' and width == 1:
        text = cursor.string("a string").encode("utf-8") + b"\0"
        data.put(offset, text)
        return len(text)
    if start and (start.isalpha() or start in "_$%") and cursor.next != "WARP_SZ":
        _read_symbol(cursor, data, width, offset)
    elif cursor.texts[cursor.index + 1] == "(" and start.isdigit():
        _read_masked(cursor, data, width, offset)
    else:
        at = cursor.index
        data.put(offset, _pack(cursor, read_constant(cursor), element, width, at))
    return width


def _pack(cursor: Cursor, value: Immediate, element: str, width: int, at: int) -> bytes:
    """Return `value` as one element in little-endian bytes."""
    bits = value.bits
    if element in ("f32", "f64") and value.kind != element:
        bits = _convert(value, element)
    elif value.kind == "f64" and width != ADDRESS_BYTES:
        raise cursor.error(f"an integer, since the type is .{element}", index=at)
    return (bits & ((1 << 8 * width) - 1)).to_bytes(width, "little")


def _convert(value: Immediate, element: str) -> int:
    """Return the bits of a number converted to a floating-point type."""
    if value.kind == "int":
        number = float(value.bits)
    elif value.kind == "f32":
        number = struct.unpack("<f", struct.pack("<I", value.bits))[0]
    else:
        number = struct.unpack("<d", struct.pack("<Q", value.bits))[0]
    if element == "f64":
        return int.from_bytes(struct.pack("<d", number), "little")
    try:
        return int.from_bytes(struct.pack("<f", number), "little")
    except OverflowError:
        return 0x7F800000 if number > 0 else 0xFF800000


def _read_symbol(cursor: Cursor, data: Data, width: int, offset: int) -> None:
    """Read `name`, `name+8`, `generic(name)+8`."""
    at = cursor.index
    name, addend = _read_place(cursor)
    if width != ADDRESS_BYTES:
        raise cursor.error(f"a number: an address takes 8 bytes, not {width}", index=at)
    data.relocations.append((offset, name, addend))
    data.put(offset, bytes(ADDRESS_BYTES))


def _read_place(cursor: Cursor) -> tuple[str, int]:
    name = cursor.name("the name of a variable or function")
    if name == "generic" and cursor.accept("("):
        name = cursor.name("the name of a variable")
        inner = read_integer(cursor) if cursor.next in ("+", "-") else 0
        cursor.expect(")")
    else:
        inner = 0
    return name, inner + (read_integer(cursor) if cursor.next in ("+", "-") else 0)


def _read_masked(cursor: Cursor, data: Data, width: int, offset: int) -> None:
    """Read one byte of an address, `0xFF00(name)`."""
    at = cursor.index
    mask = integer_literal(cursor.take()) or 0
    number = (mask.bit_length() - 1) // 8
    cursor.expect("(")
    name, addend = _read_place(cursor)
    cursor.expect(")")
    if mask != 0xFF << 8 * max(number, 0) or width != 1:
        raise cursor.error("a mask of one byte such as 0xFF00, in an array of .b8", index=at)
    data.masked.append((offset, number, name, addend))
    data.put(offset, b"\0")


def _join_masked(cursor: Cursor, data: Data, start: int) -> None:
    """Merge eight consecutive address bytes into one relocation."""
    for index in range(0, len(data.masked), ADDRESS_BYTES):
        offset, _, name, addend = data.masked[index]
        whole = [(offset + byte, byte, name, addend) for byte in range(ADDRESS_BYTES)]
        if data.masked[index : index + ADDRESS_BYTES] != whole:
            raise cursor.error(f"all 8 bytes of the address of {name}, in order", index=start)
        data.relocations.append((offset, name, addend))


DECLARED_SPACES = frozenset({".global", ".const", ".shared", ".local", ".param", ".tex"})
"""Directives that start a variable declaration."""

OPAQUE: Mapping[str, int] = {"texref": 8, "samplerref": 8, "surfref": 8}
_WIDTHS: Mapping[str, int] = {".v2": 2, ".v4": 4, ".v8": 8}
_MOST_NUMBERED = 1 << 16
_LARGEST = 1 << 48
_MOST_ALIGNED = 1 << 24


@dataclass(slots=True)
class Declaration:
    """The part of a declaration before the names: state space, type, alignment, attributes.

    `vector` is the number of elements of `.v2`/`.v4`; `align` 0 means natural alignment.
    """

    space: str
    is_extern: bool = False
    element: str = ""
    vector: int = 1
    align: int = 0
    pointer_space: str | None = None
    is_managed: bool = False
    offset: int | None = None

    @property
    def width(self) -> int:
        """Return the bytes of one element (of a vector: of one component)."""
        return OPAQUE.get(self.element) or TYPE_BYTES[self.element]


def read_declaration(cursor: Cursor, is_extern: bool = False) -> Declaration:
    """Read a declaration from the state space to the type, before the names."""
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
    """Return the size of one element in bytes, the unit of an index."""
    return OPAQUE.get(variable.element) or TYPE_BYTES[variable.element]


def read_names(cursor: Cursor, declared: Declaration) -> list[Variable]:
    """Read all names of one declaration through the `;`."""
    variables = read_name(cursor, declared)
    while cursor.accept(","):
        variables += read_name(cursor, declared)
    cursor.expect(";")
    return variables


def read_name(cursor: Cursor, declared: Declaration) -> list[Variable]:
    """Read one name with its dimensions and initialiser; `name<4>` declares four variables."""
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
    """Read the count `<12>` of `%r<12>`, from 0 to `most`."""
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
    elif directive not in (".align", ".attribute", ".offset"):
        raise cursor.error("a type such as `.b32`", [f".{name}" for name in TYPE_BYTES])
    cursor.take()
    if directive == ".align":
        _read_alignment(cursor, declared)
    elif directive == ".offset":  # no PTX: of the declarations around a cubin (sass/frame.py)
        declared.offset = read_integer(cursor)
    elif directive == ".attribute":
        begin = cursor.index
        cursor.skip_pair("(", ")")
        declared.is_managed |= ".managed" in cursor.texts[begin : cursor.index]


def _read_alignment(cursor: Cursor, declared: Declaration) -> None:
    """Read the bytes of `.align`; after `.ptr` they apply to the object pointed to."""
    at = cursor.index
    align = integer_literal(cursor.take())
    if not align or align & (align - 1) or align > _MOST_ALIGNED:
        raise cursor.error(f"a power of two up to {_MOST_ALIGNED}", index=at)
    if not declared.pointer_space:
        declared.align = align


def _read_dimensions(cursor: Cursor) -> tuple[int, ...]:
    """Read `[4][2]`; an open first dimension, `[]`, is 0."""
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
    if declared.element in OPAQUE:  # sampler attributes: the host sets them when it binds one
        cursor.skip_pair("{", "}")
        return Data()
    vector = (declared.vector,) if declared.vector > 1 else ()
    return read_initializer(cursor, declared.element, declared.width, dims + vector)


def _make(
    declared: Declaration, name: str, dims: tuple[int, ...], data: Data, line: int
) -> Variable:
    unit = declared.width * declared.vector
    if dims[:1] == (0,):  # open: its values give its length
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
        declared.is_managed,
        declared.offset,
    )
