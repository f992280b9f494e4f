"""Parse a function body: the declarations, labels and instructions between its braces.

`Body` reads the statements and opens a Scope per pair of braces. `Labels` resolves branch targets,
lists of targets and call prototypes to instruction indices once the whole body is read.
"""

from collections.abc import Collection
from dataclasses import replace

from .header import Header, skip_pragma
from .instruction import has_prototype, read_instruction
from .kernel import (
    TYPE_BYTES,
    CallTarget,
    Function,
    Instruction,
    Label,
    Location,
    Operand,
    Symbol,
    Variable,
)
from .lexer import Cursor
from .lines import SourceLines, read_file
from .opcodes import LABEL_OPERAND, LEAVES
from .scope import Scope, part_names
from .variable import (
    DECLARED_SPACES,
    element_bytes,
    read_count,
    read_declaration,
    read_names,
)

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
            elif token:
                self._read_statement(token)
            else:
                raise cursor.error(f"the `}}` that closes line {opened}")

    def _read_statement(self, token: str) -> None:
        cursor = self._cursor
        if token[0] == ".":
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
