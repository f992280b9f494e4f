"""A row of an instruction table: the types of an instruction's sources and results, and its
function."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ....base.dataclass import dataclass
from ...ptx.kernel import Instruction
from .lanes import Array


@dataclass(frozen=True, slots=True)
class Rule:
    """`results = compute(*sources)`, every array broadcastable to (rows, columns).

    `sources` and `results` are PTX types. Operands are read as these types; results are written as
    these types, extended to the width of their register. With `carry_in` the carry flag (a `pred`)
    is the last source, with `carry_out` it is the last result. Several results are a tuple.
    """

    sources: tuple[str, ...]
    results: tuple[str, ...]
    compute: Callable[..., Array | tuple[Array, ...]]
    carry_in: bool = False
    carry_out: bool = False


Builder: TypeAlias = Callable[[Instruction], Rule | None]
"""Reads the modifiers; returns None if this family lacks the instruction in that form."""

Table: TypeAlias = Mapping[str, Builder]
"""Opcode to builder."""


@dataclass(frozen=True, slots=True)
class Family:
    """A group of instructions; `types` are the last types that they accept, empty for any.

    `kind` is the class that they count in (`traces.schema.CLASSES`) unless their type decides it.
    """

    name: str
    table: Table
    types: frozenset[str] = frozenset()
    kind: str = "other"


def same(arity: int, function: Callable[..., Array]) -> Builder:
    """Build rows with the instruction's type for all sources and the result."""

    def build(instruction: Instruction) -> Rule:
        kind = instruction.type
        return Rule((kind,) * arity, (kind,), function)

    return build
