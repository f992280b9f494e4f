"""The body of a function: declarations, labels and instructions between its braces.

A label may be used before it is declared, so every use is noted with its scope and resolved when
the function ends.
"""

from collections.abc import Collection
from dataclasses import replace

from .cursor import Cursor
from .header import Header, skip_pragma
from .instruction import has_prototype, read_instruction
from .isa import LABEL_OPERAND, LEAVES
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
from .lines import SourceLines, read_file
from .scope import Scope
from .variable import DECLARED_SPACES, read_count, read_declaration, read_names

_MOST_REGISTERS = 1 << 24
LISTS = frozenset({".branchtargets", ".calltargets", ".callprototype"})


class Body:
    """What a function declares and does, while it is read; `finish` does all in order."""

    def __init__(self, cursor: Cursor, outer: Scope, lines: SourceLines) -> None:
        """Start a body whose names may mean those of `outer`."""
        self.scope = Scope(outer)
        self.registers = self.scope.registers
        self.variables: list[Variable] = []
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.targets: dict[str, tuple[str, ...]] = {}
        self.warnings: list[str] = []
        self._cursor = cursor
        self._lines = lines
        self._location: Location | None = None
        self._scopes = 0
        self._end_line = 0
        self._branched: set[str] = set()
        self._uses: list[tuple[int, Scope, int]] = []
        self._lists: list[tuple[str, Scope, list[int]]] = []

    def _declare(self, variable: Variable, at: int) -> Variable:
        """Declare a variable (or, old PTX, a register parameter) in the current scope."""
        if variable.space == "reg":
            vector = variable.size // TYPE_BYTES[variable.element]
            self._once(self.scope.declare_register(variable.name, variable.element, vector), at)
            return variable
        name = self.scope.unique(variable.name)
        self._once(self.scope.declare(variable.name, Symbol(name)), at)
        return replace(variable, name=name)

    def finish(self, header: Header) -> Function:
        """Declare the parameters, read the body and make the function."""
        for variable in (*header.returns, *header.parameters):
            self._declare(variable, self._cursor.index)
        self._read()
        self._resolve_labels()
        self._end_with_return()
        return Function(
            header.name,
            header.is_entry,
            header.returns,
            header.parameters,
            self.registers,
            tuple(self.variables),
            tuple(self.instructions),
            self.labels,
            self.targets,
            header.directives,
        )

    def _read(self) -> None:
        """Read statements until the brace that opens the body is closed."""
        cursor = self._cursor
        opened = cursor.line
        cursor.expect("{")
        depth = 1
        while depth:
            token = cursor.next
            if token == "}":
                depth -= 1
                self._close(depth)
            elif token == "{":
                depth += 1
                self._open()
            elif token[:1] == ".":
                self._read_directive(token)
            elif not token:
                raise cursor.error(f"the `}}` that closes line {opened}")
            elif cursor.texts[cursor.index + 1] == ":":
                self._read_label()
            elif not cursor.accept(";"):
                self._read_instruction()

    def _resolve_labels(self) -> None:
        """Give every label its function-wide name and check that it is there."""
        for index, scope, at in self._uses:
            instruction = self.instructions[index]
            known = self.labels if instruction.opcode == "bra" else self.targets
            name = self._resolve(scope, at, known)
            self._branched.add(name)
            operands = tuple(_with_label(operand, name) for operand in instruction.operands)
            self.instructions[index] = replace(instruction, operands=operands)
        for name, scope, places in self._lists:
            self.targets[name] = tuple(self._resolve(scope, at, self.labels) for at in places)

    def _resolve(self, scope: Scope, at: int, known: Collection[str]) -> str:
        name = scope.find_label(self._cursor.texts[at])
        if name is None or name not in known:
            what = "a label" if known is self.labels else "a list of targets or a prototype"
            raise self._cursor.error(f"{what} of this function", known, at)
        return name

    def _open(self) -> None:
        self._cursor.take()
        self._scopes += 1
        self.scope = Scope(self.scope, self._scopes)

    def _close(self, depth: int) -> None:
        """Leave a scope, or the body."""
        self._end_line = self._cursor.line
        self._cursor.take()
        if depth:
            assert self.scope.parent
            self.scope = self.scope.parent

    def _end_with_return(self) -> None:
        """Let a lane that comes to the closing brace return."""
        last = self.instructions[-1] if self.instructions else None
        ends = last and not last.guard and (last.opcode in LEAVES or last.opcode in LABEL_OPERAND)
        listed = {name for names in self.targets.values() for name in names}
        used = {index for name, index in self.labels.items() if name in self._branched | listed}
        if not ends or len(self.instructions) in used:
            self.instructions.append(Instruction("ret", (), (), None, "ret;", self._end_line))

    def _once(self, fresh: bool, at: int) -> None:
        if not fresh:
            raise self._cursor.error("a name that is not declared yet", index=at)

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
                self.variables.append(self._declare(variable, at))
        elif directive == ".pragma":
            skip_pragma(cursor)
        elif directive == ".file":
            cursor.take()
            read_file(cursor)
        else:
            self.warnings.append(cursor.skip_unknown())

    def _read_registers(self) -> None:
        """Read `.reg .pred p, q;`, `.reg .b32 %r<12>;`, `.reg .v4 .f32 %v;`."""
        cursor = self._cursor
        declared = read_declaration(cursor)
        while True:
            at = cursor.index
            name = cursor.name("the name of a register")
            if cursor.next == "<":
                count = read_count(cursor, _MOST_REGISTERS)
                self._once(self.scope.declare_range(name, count, declared.element), at)
            else:
                self._once(self.scope.declare_register(name, declared.element, declared.vector), at)
            if cursor.accept(";"):
                return
            cursor.expect(",")

    def _read_label(self) -> None:
        """Read `name:`; what follows may make it the name of a list instead."""
        cursor = self._cursor
        at = cursor.index
        name = cursor.name("a label")
        cursor.expect(":")
        unique = self.scope.unique(name)
        self._once(self.scope.labels.setdefault(name, unique) is unique, at)
        if cursor.next in LISTS:
            self._read_list(unique, cursor.take())
        else:
            self.labels[unique] = len(self.instructions)

    def _read_list(self, name: str, directive: str) -> None:
        """Read `.branchtargets a, b;`, `.calltargets f, g;`, `.callprototype (...) _ (...);`."""
        cursor = self._cursor
        self.targets[name] = ()
        if directive == ".callprototype":
            while not cursor.accept(";"):
                if not cursor.take():
                    raise cursor.error("`;`")
            return
        places = [cursor.index]
        cursor.name("a name")
        while cursor.accept(","):
            places.append(cursor.index)
            cursor.name("a name")
        cursor.expect(";")
        if directive == ".branchtargets":
            self._lists.append((name, self.scope, places))
        else:
            self.targets[name] = tuple(cursor.texts[place] for place in places)

    def _read_instruction(self) -> None:
        cursor = self._cursor
        instruction = read_instruction(cursor, self.scope, self._location)
        if instruction.opcode in LABEL_OPERAND or (
            instruction.opcode == "call" and has_prototype(instruction)
        ):
            self._uses.append((len(self.instructions), self.scope, cursor.index - 2))
        self.instructions.append(instruction)


def _with_label(operand: Operand, name: str) -> Operand:
    match operand:
        case Label():
            return Label(name)
        case CallTarget():
            return replace(operand, prototype=name)
    return operand
