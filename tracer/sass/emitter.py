"""What `Lifter` offers to constants and to control flow, which it imports."""

from typing import Protocol

from ...base.errors import CutraceError
from .cubin import Code, Instruction
from .operand import Operand


class Emitter(Protocol):
    """Adds PTX for the present instruction; see `Lifter`."""

    code: Code
    operands: list[Operand]
    lines: list[tuple[str, Instruction | None]]

    @property
    def guard(self) -> str:
        """The predicate of the instruction."""

    def set_guard(self, predicate: str) -> None:
        """Let what follows of an instruction run where a predicate holds."""

    def emit(self, operation: str, *operands: str, guarded: bool | None = None) -> None:
        """Add an operation."""

    def label(self, text: str) -> None:
        """Add a label."""

    def new(self, kind: str = "r") -> str:
        """Return a new temporary."""

    def compute(self, operation: str, *values: str, kind: str = "r") -> str:
        """Add an operation; return its result."""

    def refuse(self, why: str) -> CutraceError:
        """Return the error for the present instruction."""

    def word(self, operand: Operand) -> str:
        """Return the 32 bits of an operand as an integer."""

    def plain(self, operand: Operand) -> str:
        """Return the 32 bits of an operand, without its signs."""

    def wide(self, operand: Operand, signs: bool = False) -> str:
        """Return the 64 bits of an operand."""

    def predicate(self, operand: Operand) -> str:
        """Return a predicate operand as a register."""

    def both(self, holds: str) -> str:
        """Return a predicate that is true where the guard and another are."""

    def meet(self, lanes: str) -> None:
        """Wait for the lanes of a mask."""

    def count_lanes(self) -> None:
        """Count the lanes that the guard lets pass."""
