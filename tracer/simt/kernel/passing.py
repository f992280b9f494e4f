"""Places of function parameters: each piece of bytes is like a register that outlives its basic
block.

A caller's argument and its callee's parameter mostly share one place (kernel/function_pointer.py).
Old PTX has registers, `.func (.reg .u32 r) f (.reg .u32 a)`, and any PTX may pass a register for a
`.param`. A call then moves values to the callee's place, and results back in the block after it:
`argument_moves` and `result_moves` list them for both engines.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from ....base.dataclass import dataclass
from ...ptx.kernel import (
    TYPE_BYTES,
    Address,
    CallTarget,
    Instruction,
    Kernel,
    Operand,
    Register,
    Symbol,
    Variable,
    Vector,
)
from .function_pointer import apart, parameter_places
from .layout import Place, Span, local_layout, parameter_pieces, recursive_functions

ANY = -1
"""The function of a register that several functions share."""

Piece: TypeAlias = tuple[int, str, int, int]
"""Bytes of a parameter: (function, name, offset, bytes)."""

WIDEST = 8


class Passing:
    """The parameters of a kernel's functions; `recursive` are the functions that can call
    themselves."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._above: dict[Place, Place] = {}
        self._pieces: dict[Place, tuple[Span, ...]] = {}
        self.recursive: frozenset[int] = frozenset()
        if len(kernel.functions) > 1 or any(map(_passes, kernel.instructions)):
            self.recursive = recursive_functions(kernel)
            self._above = parameter_places(kernel, apart(kernel, self.recursive))
            self._pieces = dict(parameter_pieces(kernel, parameter_places(kernel)))

    def has_levels(self, function: int, name: str) -> bool:
        """Return whether each level of recursion has its own copy of a local variable."""
        offsets = local_layout(self._kernel).offsets
        return function in self.recursive and (function, name) in offsets

    def place(self, function: int, name: str) -> Place:
        """Return the place of a parameter."""
        return self._above.get((function, name), (function, name))

    def spans(self, place: Place) -> tuple[Span, ...]:
        """Return the pieces of a place, from `place`."""
        return self._pieces.get(place, ())

    def pieces(self) -> Iterator[Piece]:
        """Yield all pieces except those of the kernel's own parameters, which are constant."""
        own = {(0, parameter.name) for parameter in self._kernel.parameters}
        for place in sorted({self.place(*name) for name in self._pieces} - own):
            for offset, size in self.spans(place):
                yield *place, offset, size

    def registers(self, place: Place, span: Span) -> list[tuple[Register, int]]:
        """Return the registers that hold bytes of a place, each with its first bit."""
        start, size = span
        pieces = [s for s in self.spans(place) if start <= s[0] < start + size]
        return [(piece_register((*place, *s)), 8 * (s[0] - start)) for s in pieces]


def _passes(instruction: Instruction) -> bool:
    """Return whether an instruction calls, or stores a parameter that a call may take."""
    return instruction.opcode == "call" or (
        instruction.opcode == "st" and instruction.space == "param"
    )


def piece_register(piece: Piece) -> Register:
    """Return the pseudo register of a piece."""
    function, name, offset, size = piece
    return Register(f"[{function} {name} {offset} {size}]", f"b{8 * size}")


def shared_register(kernel: Kernel, function: int, name: str) -> Register:
    """Return the register of a function that passes a value, under the name that other functions
    use."""
    kind = kernel.functions[function].function.registers[name]
    return Register(f"[{function} {name}]", kind)


@dataclass(frozen=True, slots=True)
class Bytes:
    """Bytes of a parameter."""

    place: Place
    span: Span


@dataclass(frozen=True, slots=True)
class Passed:
    """A register of a function that passes a value."""

    function: int
    name: str


@dataclass(frozen=True, slots=True)
class Move:
    """A value of the PTX type `kind` that moves within each lane."""

    source: Operand | Bytes | Passed
    to: Operand | Bytes | Passed
    kind: str


Refuse: TypeAlias = Callable[[str], Exception]


def argument_moves(
    kernel: Kernel, passing: Passing, caller: int, target: CallTarget, callee: int, refuse: Refuse
) -> Iterator[Move]:
    """Yield the moves that pass the arguments before the callee runs."""
    parameters = kernel.functions[callee].function.parameters
    for operand, variable in zip(target.arguments, parameters, strict=True):
        if not isinstance(operand, Symbol) or variable.space == "reg":
            yield Move(operand, _own(passing, callee, variable, refuse), variable.element)
        else:
            source = passing.place(caller, operand.name)
            yield from _copies(passing, source, passing.place(callee, variable.name))


def result_moves(
    kernel: Kernel, passing: Passing, caller: int, target: CallTarget, callee: int, refuse: Refuse
) -> Iterator[Move]:
    """Yield the moves that take the results, in the block after the call."""
    returns = kernel.functions[callee].function.returns
    for operand, variable in zip(target.returns, returns, strict=True):
        if isinstance(operand, Symbol):
            to = passing.place(caller, operand.name)
            yield from _copies(passing, passing.place(callee, variable.name), to)
        elif isinstance(operand, Register):
            yield Move(_own(passing, callee, variable, refuse), operand, variable.element)


def _own(passing: Passing, callee: int, variable: Variable, refuse: Refuse) -> Bytes | Passed:
    """Return where the callee has a parameter that the caller has in a register."""
    if variable.space == "reg":
        return Passed(callee, variable.name)
    if variable.size != TYPE_BYTES[variable.element]:
        raise refuse(f"`{variable.name}` has {variable.size} bytes, and is no register's")
    return Bytes(passing.place(callee, variable.name), (0, variable.size))


def _copies(passing: Passing, source: Place, to: Place) -> Iterator[Move]:
    """Yield the moves that copy a parameter, piece by piece; none if both are one place."""
    for span in passing.spans(to) if source != to else ():
        yield Move(Bytes(source, span), Bytes(to, span), f"b{8 * span[1]}")


def parameter_moves(
    passing: Passing, function: int, instruction: Instruction, refuse: Refuse
) -> list[Move]:
    """Return the moves of an access of a parameter by name."""
    is_load = instruction.opcode == "ld"
    value, address = instruction.operands[:2] if is_load else instruction.operands[1::-1]
    if not isinstance(address, Address) or not isinstance(address.base, Symbol):
        raise refuse("expected the name of a parameter, or a pointer to one, as address")
    place = passing.place(function, address.base.name)
    start, kind = address.base.offset + address.offset, instruction.type
    size = TYPE_BYTES[kind]
    moves = []
    for number, element in enumerate(value.elements if isinstance(value, Vector) else (value,)):
        own = Bytes(place, (start + number * size, size))
        moves.append(Move(own, element, kind) if is_load else Move(element, own, kind))
    return moves
