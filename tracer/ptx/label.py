"""Labels of a function, and the lists of targets and prototypes that share their names.

A label may be used before it is declared, so every use is noted with its scope, and `resolve`
runs when the function ends.
"""

from collections.abc import Collection
from dataclasses import replace

from .cursor import Cursor
from .instruction import has_prototype
from .kernel import CallTarget, Instruction, Label, Operand
from .opcodes import LABEL_OPERAND
from .scope import Scope

_LISTS = frozenset({".branchtargets", ".calltargets", ".callprototype"})


class Labels:
    """`places` are instruction numbers by label; `targets` the names in each list."""

    def __init__(self, cursor: Cursor) -> None:
        """Know no label yet."""
        self.places: dict[str, int] = {}
        self.targets: dict[str, tuple[str, ...]] = {}
        self._cursor = cursor
        self._uses: list[tuple[int, Scope, int]] = []
        self._lists: list[tuple[str, Scope, list[int]]] = []
        self._branched: set[str] = set()

    def read(self, scope: Scope, place: int) -> None:
        """Read `name:`, the label of instruction `place`, or of the list that follows it."""
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
        """Note the label that instruction `number`, just read, ends with, if it does."""
        if instruction.opcode in LABEL_OPERAND or (
            instruction.opcode == "call" and has_prototype(instruction)
        ):
            self._uses.append((number, scope, self._cursor.index - 2))

    def resolve(self, instructions: list[Instruction]) -> None:
        """Give every label its function-wide name and check that it is there."""
        for number, scope, at in self._uses:
            instruction = instructions[number]
            known = self.places if instruction.opcode == "bra" else self.targets
            name = self._resolve(scope, at, known)
            self._branched.add(name)
            operands = tuple(_with_label(operand, name) for operand in instruction.operands)
            instructions[number] = replace(instruction, operands=operands)
        for name, scope, tokens in self._lists:
            names = tuple(self._resolve(scope, at, self.places) for at in tokens)
            self.targets[name] = names
            self._branched.update(names)

    def is_branched_to(self, place: int) -> bool:
        """Whether a branch goes to `place`: after `resolve`."""
        return any(self.places.get(name) == place for name in self._branched)

    def _resolve(self, scope: Scope, at: int, known: Collection[str]) -> str:
        name = scope.find_label(self._cursor.texts[at])
        if name is None or name not in known:
            what = "a label" if known is self.places else "a list of targets or a prototype"
            written = [label for label in known if "@" not in label]
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
        """Step over a prototype: the call itself says which parameters it passes."""
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
