"""Parse PTX text into a Module: its directives, module variables and functions.

`read_header` reads a function up to its body, `Body` the declarations, labels and instructions
between its braces, with a Scope per pair of braces. `Labels` resolves branch targets, lists of
targets and call prototypes to instruction indices once the whole body is read.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import field, replace
from typing import TypeAlias

from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from .instruction import Scope, builtin_scope, has_prototype, part_names, read_instruction
from .kernel import (
    TYPE_BYTES,
    CallTarget,
    Function,
    Instruction,
    Label,
    Location,
    Module,
    Operand,
    Symbol,
    Variable,
)
from .lexer import Cursor, InvalidPtxError, integer_literal, lex
from .lines import SourceLines, read_file
from .opcodes import LABEL_OPERAND, LEAVES, words
from .variable import (
    DECLARED_SPACES,
    element_bytes,
    read_count,
    read_declaration,
    read_name,
    read_names,
)

Release: TypeAlias = tuple[int, int]
"""A PTX version: (8, 5)."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """What a launch bound takes: `most` numbers, each at least `least`; from which PTX version on,
    and for which targets."""

    most: int
    least: int = 1
    since: Release = (1, 0)
    target: int = 10


_BOUNDS: Mapping[str, _Bound] = {
    "maxntid": _Bound(3),
    "reqntid": _Bound(3, since=(2, 1)),
    "minnctapersm": _Bound(1, since=(2, 0)),
    "maxnctapersm": _Bound(1),
    "maxnreg": _Bound(1),
    "reqnctapercluster": _Bound(3, 0, (7, 8), 90),
    "maxclusterrank": _Bound(1, 0, (7, 8), 90),
    "explicitcluster": _Bound(0, 0, (7, 8), 90),
    "blocksareclusters": _Bound(0, 0, (9, 0), 90),
}
"""The launch bounds of a kernel, as ptxas of CUDA 13.0 takes them."""

_ALTERNATIVES = (("maxntid", "reqntid"), ("reqnctapercluster", "maxclusterrank"))
_MAXNCTAPERSM_ENDS: Release = (2, 1)
_OTHERS = words("noreturn abi_preserve abi_preserve_control")


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


def read_header(cursor: Cursor, version: Release, target: int) -> Header:
    """Read from `.entry` or `.func` up to the `{` or `;`, which the caller reads."""
    is_entry = cursor.take() == ".entry"
    header = Header("", is_entry)
    _read_directives(cursor, header, version, target)
    if not is_entry and cursor.next == "(":
        header.returns = _read_parameters(cursor)
    header.name = cursor.name("the name of a function")
    if cursor.next == "(":
        header.parameters = _read_parameters(cursor)
    _read_directives(cursor, header, version, target)
    if "blocksareclusters" in header.directives:
        for name in ("reqntid", "reqnctapercluster"):
            if name not in header.directives:
                raise InvalidPtxError(
                    f"PTX line {cursor.line}: `.blocksareclusters` of {header.name}, "
                    f"expected a `.{name}` beside it"
                )
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


def _read_directives(cursor: Cursor, header: Header, version: Release, target: int) -> None:
    """Read `.maxntid 256, 1, 1 .minnctapersm 2`."""
    while cursor.next[:1] == ".":
        name = cursor.next[1:]
        if name == "pragma":
            skip_pragma(cursor)
        elif name == "attribute":
            cursor.take()
            cursor.skip_pair("(", ")")
        elif name in _BOUNDS:
            header.directives[name] = _read_bound(cursor, header, version, target)
        elif name in _OTHERS:
            cursor.take()
            header.directives[name] = _read_numbers(cursor)
        else:
            header.warnings.append(cursor.unknown())
            cursor.take()
            _read_numbers(cursor)


def _read_bound(cursor: Cursor, header: Header, version: Release, target: int) -> tuple[int, ...]:
    """Read a launch bound; raise InvalidPtxError for one that ptxas refuses."""
    line, directive = cursor.line, cursor.take()
    bound = _BOUNDS[directive[1:]]

    def refuse(numbers: tuple[int, ...], expected: str) -> InvalidPtxError:
        text = " ".join([directive, ", ".join(map(str, numbers))]).rstrip()
        return InvalidPtxError(f"PTX line {line}: found `{text}`, expected {expected}")

    numbers = _read_numbers(cursor) if bound.most else ()
    if not header.is_entry:
        raise refuse(numbers, "launch bounds at an `.entry` alone")
    if version < bound.since:
        raise refuse(numbers, f"`.version {bound.since[0]}.{bound.since[1]}` or later for it")
    if target < bound.target:
        raise refuse(numbers, f"`.target sm_{bound.target}` or later for it")
    if directive == ".maxnctapersm" and version >= _MAXNCTAPERSM_ENDS:
        raise refuse(numbers, "`.minnctapersm`: PTX has no `.maxnctapersm` from version 2.1 on")
    if bound.most and not 1 <= len(numbers) <= bound.most:
        raise refuse(numbers, "1 to 3 numbers" if bound.most > 1 else "one number")
    if any(not bound.least <= number < 1 << 32 for number in numbers):
        raise refuse(numbers, f"{'positive ' if bound.least else ''}numbers below 2**32")
    for one, other in _ALTERNATIVES:
        if {directive[1:], *header.directives} >= {one, other}:
            raise refuse(numbers, f"either `.{one}` or `.{other}`, not both")
    return numbers


def _read_numbers(cursor: Cursor) -> tuple[int, ...]:
    numbers: list[int] = []
    while (number := integer_literal(cursor.next)) is not None:
        cursor.take()
        numbers.append(number)
        if not cursor.accept(","):
            break
    return tuple(numbers)


_LINKAGE = frozenset({".visible", ".extern", ".weak", ".common"})


def parse_module(text: str) -> Module:
    """Parse PTX. An error names the PTX line, the unexpected text and what was expected.

    Unknown directives are skipped and listed in `Module.warnings`; unknown instructions parse like
    any other.
    """
    parser = _Parser(text)
    cursor = parser.cursor
    if cursor.next != ".version":
        raise cursor.error("`.version`, with which PTX begins")
    try:
        while cursor.next:
            parser.read_directive()
    except RecursionError:
        raise CutraceError("PTX: braces or parentheses are nested too deeply") from None
    if not parser.target:
        raise cursor.error("`.target`")
    parser.check_relocations()
    return Module(
        parser.version,
        parser.target,
        parser.address_size,
        parser.variables,
        parser.functions,
        parser.aliases,
        tuple(parser.warnings),
    )


class _Parser:
    """Parser state of one module."""

    def __init__(self, text: str) -> None:
        tokens = lex(text)
        self.cursor = Cursor(tokens)
        self.lines = SourceLines(tokens)
        self.scope = Scope(builtin_scope())
        self.version = ""
        self.target = ""
        self.address_size = 32
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self.warnings: list[str] = []

    def read_directive(self) -> None:
        """Read a directive, a variable or a function, with its linkage."""
        cursor, linkage = self.cursor, set()
        while cursor.next in _LINKAGE:
            linkage.add(cursor.take())
        directive = cursor.next
        read = _DIRECTIVES.get(directive)
        if directive.partition("::")[0] in DECLARED_SPACES:
            self._read_variables(".extern" in linkage)
        elif linkage and directive not in (".entry", ".func"):
            raise cursor.error("a state space, `.entry` or `.func`")
        elif read is not None:
            read(self)
        elif directive[:1] == ".":
            self.warnings.append(cursor.skip_unknown())
            if cursor.next == "{":
                cursor.skip_pair("{", "}")
        elif not cursor.accept(";"):
            raise cursor.error("a directive such as `.visible`, `.entry` or `.global`")

    def _read_version(self) -> None:
        self.cursor.take()
        at = self.cursor.index
        self.version = self.cursor.take()
        if not re.fullmatch(r"\d+\.\d+", self.version):
            raise self.cursor.error("a version such as 8.8", index=at)

    def _read_target(self) -> None:
        """Read `sm_75, texmode_independent`; keep only the first."""
        self.cursor.take()
        self.target = self.cursor.name("a target such as sm_75")
        while self.cursor.accept(","):
            self.cursor.name("a target option")

    def _read_address_size(self) -> None:
        self.cursor.take()
        at = self.cursor.index
        size = integer_literal(self.cursor.take())
        if size not in (32, 64):
            raise self.cursor.error("32 or 64", index=at)
        self.address_size = size

    def _read_file(self) -> None:
        self.cursor.take()
        read_file(self.cursor)

    def _read_loc(self) -> None:
        self.cursor.take()
        self.lines.read_loc(self.cursor)

    def _skip_section(self) -> None:
        """Skip the debug information in `.section .debug_str { ... }`."""
        while self.cursor.next not in ("", "{"):
            self.cursor.take()
        self.cursor.skip_pair("{", "}")

    def _skip_pragma(self) -> None:
        skip_pragma(self.cursor)

    def _read_alias(self) -> None:
        """Read `.alias name, function;`."""
        self.cursor.take()
        name = self.cursor.name("the name of a function")
        self.cursor.expect(",")
        at = self.cursor.index
        self.aliases[name] = self.cursor.name("the name of a function")
        if self.aliases[name] not in self.functions:
            raise self.cursor.error("a declared function", self.functions, at)
        self.scope.declare(name, Symbol(name))
        self.cursor.expect(";")

    def _read_variables(self, is_extern: bool) -> None:
        at = self.cursor.index
        for variable in read_names(self.cursor, read_declaration(self.cursor, is_extern)):
            earlier = self.variables.get(variable.name)
            if variable.name in self.functions or (
                earlier and not earlier.is_extern and not is_extern
            ):
                raise self.cursor.duplicate(variable.name, at)
            if earlier is None or earlier.is_extern:
                self.variables[variable.name] = variable
                symbol = Symbol(variable.name, element=element_bytes(variable))
                self.scope.declare(variable.name, symbol)

    def _read_function(self) -> None:
        """Read a function; it may have several declarations but one definition."""
        at = self.cursor.index
        major, minor = map(int, self.version.split("."))
        capability = re.search(r"\d+", self.target)
        header = read_header(self.cursor, (major, minor), int(capability[0]) if capability else 0)
        name = header.name
        earlier = self.functions.get(name)
        self.warnings += header.warnings
        self.scope.declare(name, Symbol(name))
        if self.cursor.accept(";"):
            self.functions.setdefault(name, header.declaration())
            return
        if self.cursor.next != "{":
            raise self.cursor.error("`{` or `;`")
        if name in self.variables or (earlier and not earlier.is_extern):
            raise self.cursor.duplicate(name, at)
        body = Body(self.cursor, self.scope, self.lines)
        self.functions[name] = body.read(header)
        self.variables |= {variable.name: variable for variable in body.statics}
        self.warnings += body.warnings

    def check_relocations(self) -> None:
        """Check that each symbol in an initialiser is declared, possibly later in the text."""
        symbols = {*self.variables, *self.functions, *self.aliases}
        for variable in self.variables.values():
            for _, name, _ in variable.relocations:
                if name not in symbols:
                    raise CutraceError(
                        f"PTX: {variable.name} holds the address of {name}, which is not declared"
                        f"{nearest(name, symbols)}"
                    )


_DIRECTIVES: Mapping[str, Callable[[_Parser], None]] = {
    ".version": _Parser._read_version,
    ".target": _Parser._read_target,
    ".address_size": _Parser._read_address_size,
    ".entry": _Parser._read_function,
    ".func": _Parser._read_function,
    ".alias": _Parser._read_alias,
    ".file": _Parser._read_file,
    ".loc": _Parser._read_loc,
    ".section": _Parser._skip_section,
    ".pragma": _Parser._skip_pragma,
}


STATIC = ("global", "const")
"""Spaces whose variables outlive a kernel, even if a function declares them."""
_MOST_REGISTERS = 1 << 24


class Body:
    """Declarations and instructions of one function during parsing; `read` runs all steps."""

    def __init__(self, cursor: Cursor, outer: Scope, lines: SourceLines) -> None:
        """Start a body nested in the scope `outer`."""
        self.warnings: list[str] = []
        self._cursor = cursor
        self._lines = lines
        self._scope = Scope(outer)
        self._scopes = 0
        self._labels = Labels(cursor)
        self.statics: list[Variable] = []
        self._function = ""
        self._variables: list[Variable] = []
        self._instructions: list[Instruction] = []
        self._location: Location | None = None

    def read(self, header: Header) -> Function:
        """Declare the parameters, parse from `{` to `}`, and return the function."""
        registers = self._scope.registers
        self._function = header.name
        for variable in (*header.returns, *header.parameters):
            self._declare(variable, self._cursor.index)
        last_line = self._read_statements()
        self._labels.resolve(self._instructions)
        self._end_with_return(last_line)
        return Function(
            header.name,
            header.is_entry,
            _flat(header.returns),
            _flat(header.parameters),
            registers,
            tuple(self._variables),
            tuple(self._instructions),
            self._labels.places,
            self._labels.targets,
            header.directives,
        )

    def _declare(self, variable: Variable, at: int) -> Variable:
        """Declare a variable (or, old PTX, a register parameter) in the current scope.

        A variable in global or constant memory belongs to the module, under a unique name.
        """
        name = self._scope.unique(variable.name)
        if variable.space in STATIC:
            name = f"{self._function}.{name}"
        if variable.space == "reg":
            vector = _elements(variable)
            fresh = self._scope.declare_register(variable.name, variable.element, vector)
        else:
            symbol = Symbol(name, element=element_bytes(variable))
            fresh = self._scope.declare(variable.name, symbol)
        if not fresh:
            raise self._cursor.duplicate(variable.name, at)
        return replace(variable, name=name)

    def _read_statements(self) -> int:
        """Read statements up to the body's closing brace; return the line of that brace."""
        cursor = self._cursor
        opened = cursor.line
        root = self._scope
        cursor.expect("{")
        while True:
            token = cursor.next
            if token == "}":
                line = cursor.line
                cursor.take()
                # The brace that ends the root scope closes the body.
                if self._scope is root:
                    return line
                self._scope = self._scope.parent or root
            elif token == "{":
                cursor.take()
                self._scopes += 1
                self._scope = Scope(self._scope, self._scopes)
            elif not token:
                raise cursor.error(f"the `}}` that closes line {opened}")
            elif token[0] == ".":
                self._read_directive(token)
            elif cursor.texts[cursor.index + 1] == ":":
                self._labels.read(self._scope, len(self._instructions))
            elif not cursor.accept(";"):
                instruction = read_instruction(cursor, self._scope, self._location)
                self._labels.use(len(self._instructions), instruction, self._scope)
                self._instructions.append(instruction)

    def _end_with_return(self, line: int) -> None:
        """Append the `ret` that a function without a final one implies at its closing brace."""
        # A label at the closing brace needs an instruction to refer to, even after a final `ret`.
        last = self._instructions[-1] if self._instructions else None
        ends = last and not last.guard and (last.opcode in LEAVES or last.opcode in LABEL_OPERAND)
        if not ends or self._labels.is_branched_to(len(self._instructions)):
            self._instructions.append(Instruction("ret", (), (), None, "ret;", line))

    def _read_directive(self, directive: str) -> None:
        cursor = self._cursor
        if directive == ".loc":
            cursor.take()
            self._location = self._lines.read_loc(cursor)
        elif directive == ".reg":
            self._read_registers()
        elif directive.partition("::")[0] in DECLARED_SPACES:
            at = cursor.index
            for variable in read_names(cursor, read_declaration(cursor)):
                declared = self._declare(variable, at)
                (self.statics if declared.space in STATIC else self._variables).append(declared)
        elif directive == ".pragma":
            skip_pragma(cursor)
        elif directive == ".file":
            cursor.take()
            read_file(cursor)
        else:
            self.warnings.append(cursor.skip_unknown())

    def _read_registers(self) -> None:
        """Read `.reg .pred p, q;`, `.reg .b32 %r<12>;`, `.reg .v4 .f32 %v;`."""
        cursor, scope = self._cursor, self._scope
        declared = read_declaration(cursor)
        while True:
            at = cursor.index
            name = cursor.name("the name of a register")
            if cursor.next == "<":
                count = read_count(cursor, _MOST_REGISTERS)
                fresh = scope.declare_range(name, count, declared.element)
            else:
                fresh = scope.declare_register(name, declared.element, declared.vector)
            if not fresh:
                raise cursor.duplicate(name, at)
            if cursor.accept(";"):
                return
            cursor.expect(",")


def _elements(register: Variable) -> int:
    """Return the number of elements of a register parameter: 2 for `.reg .v2 .u32 v`."""
    return register.size // TYPE_BYTES[register.element]


def _flat(parameters: tuple[Variable, ...]) -> tuple[Variable, ...]:
    """Replace each vector register by its elements."""
    flat: list[Variable] = []
    for parameter in parameters:
        names = [parameter.name]
        if parameter.space == "reg":
            names = part_names(parameter.name, _elements(parameter))
        size = parameter.size // len(names)
        flat += [replace(parameter, name=name, size=size) for name in names]
    return tuple(flat)


_LISTS = frozenset({".branchtargets", ".calltargets", ".callprototype"})


class Labels:
    """Labels and label lists of a function.

    `places` maps a label to its instruction index; `targets` maps a list to its names.
    """

    def __init__(self, cursor: Cursor) -> None:
        self.places: dict[str, int] = {}
        self.targets: dict[str, tuple[str, ...]] = {}
        self._cursor = cursor
        self._uses: list[tuple[int, Scope, int]] = []
        self._lists: list[tuple[str, Scope, list[int]]] = []
        self._branched: set[str] = set()

    def read(self, scope: Scope, place: int) -> None:
        """Read `name:`, the label of instruction `place` or of the list that follows."""
        cursor = self._cursor
        at = cursor.index
        name = cursor.name("a label")
        cursor.expect(":")
        unique = scope.unique(name)
        if name in scope.labels:
            raise cursor.duplicate(name, at)
        scope.labels[name] = unique
        if cursor.next in _LISTS:
            self._read_list(unique, scope)
        else:
            self.places[unique] = place

    def use(self, number: int, instruction: Instruction, scope: Scope) -> None:
        """Record the label operand of instruction `number`, if it has one."""
        if instruction.opcode in LABEL_OPERAND or (
            instruction.opcode == "call" and has_prototype(instruction)
        ):
            self._uses.append((number, scope, self._cursor.index - 2))

    def resolve(self, instructions: list[Instruction]) -> None:
        """Make all labels unique within the function; raise an error for a missing one."""
        for number, scope, at in self._uses:
            instruction = instructions[number]
            targets = self.places if instruction.opcode == "bra" else self.targets
            name = self._resolve(scope, at, targets)
            self._branched.add(name)
            operands = tuple(_with_label(operand, name) for operand in instruction.operands)
            instructions[number] = replace(instruction, operands=operands)
        for name, scope, tokens in self._lists:
            names = tuple(self._resolve(scope, at, self.places) for at in tokens)
            self.targets[name] = names
            self._branched.update(names)

    def is_branched_to(self, place: int) -> bool:
        """Return True if a branch targets `place`; call it after `resolve`."""
        return any(self.places.get(name) == place for name in self._branched)

    def _resolve(self, scope: Scope, at: int, targets: Collection[str]) -> str:
        name = scope.find_label(self._cursor.texts[at])
        if name is None or name not in targets:
            what = "a label" if targets is self.places else "a list of targets or a prototype"
            written = [label for label in targets if "@" not in label]
            raise self._cursor.error(f"{what} of this function", written, at)
        return name

    def _read_list(self, name: str, scope: Scope) -> None:
        """Read `.branchtargets a, b;`, `.calltargets f, g;`, `.callprototype (...) _ (...);`."""
        cursor = self._cursor
        directive = cursor.take()
        self.targets[name] = ()
        if directive == ".callprototype":
            self._skip_prototype()
            return
        tokens = [cursor.index]
        cursor.name("a name")
        while cursor.accept(","):
            tokens.append(cursor.index)
            cursor.name("a name")
        cursor.expect(";")
        if directive == ".branchtargets":
            self._lists.append((name, scope, tokens))
        else:
            self.targets[name] = tuple(cursor.texts[at] for at in tokens)

    def _skip_prototype(self) -> None:
        """Skip a prototype: the call itself lists the parameters that it passes."""
        cursor = self._cursor
        while not cursor.accept(";"):
            if cursor.next in ("", "}"):
                raise cursor.error("`;`")
            cursor.take()


def _with_label(operand: Operand, name: str) -> Operand:
    match operand:
        case Label():
            return Label(name)
        case CallTarget():
            return replace(operand, prototype=name)
    return operand
