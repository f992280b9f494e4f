"""Places of function parameters in a register frame: each piece of bytes is like a register that
outlives its basic block.

A caller's argument and its callee's parameter mostly share one place, as in the array engine: see
call/argument_passing.py and kernel/function_pointer.py.
"""

from collections.abc import Iterator
from typing import TypeAlias

from ...ptx.kernel import Kernel, Register, Variable
from ..kernel.function_pointer import apart, parameter_places
from ..kernel.layout import Place, Span, parameter_pieces, recursive_functions

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
        if len(kernel.functions) > 1 or any(i.opcode == "call" for i in kernel.instructions):
            self.recursive = recursive_functions(kernel)
            self._above = parameter_places(kernel, apart(kernel, self.recursive))
            self._pieces = dict(parameter_pieces(kernel, parameter_places(kernel)))

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


def piece_register(piece: Piece) -> Register:
    """Return the pseudo register of a piece."""
    function, name, offset, size = piece
    return Register(f"[{function} {name} {offset} {size}]", f"b{8 * size}")


def shared_register(kernel: Kernel, function: int, variable: Variable) -> Register:
    """Return the register of a function that passes a value, under the name that other functions
    use."""
    kind = kernel.functions[function].function.registers[variable.name]
    return Register(f"[{function} {variable.name}]", kind)
