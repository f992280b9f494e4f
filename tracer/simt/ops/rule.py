"""The form of a table row: what types an instruction takes and gives, and what it computes."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ....base.dataclass import dataclass
from ...ptx.kernel import Instruction
from .lanes import Array


@dataclass(frozen=True, slots=True)
class Rule:
    """`results = compute(*sources)`, every array broadcastable to (rows, columns).

    `sources` and `results` are PTX types; operands are read as these types and results written
    as these, extended to the width of their register. With `carry_in` the carry flag (a `pred`)
    is the last source, with `carry_out` it is the last result. More than one result is a tuple.
    """

    sources: tuple[str, ...]
    results: tuple[str, ...]
    compute: Callable[..., Array | tuple[Array, ...]]
    carry_in: bool = False
    carry_out: bool = False


Builder: TypeAlias = Callable[[Instruction], Rule | None]
"""Reads the modifiers; None where this family does not have the instruction in that form."""

Table: TypeAlias = Mapping[str, Builder]
"""Opcode to builder."""


@dataclass(frozen=True, slots=True)
class Family:
    """Instructions that belong together: `types` are the last types that they take, empty any.

    `kind` is the class that they count in (`traces.schema.CLASSES`) where their type does not say.
    """

    name: str
    table: Table
    types: frozenset[str] = frozenset()
    kind: str = "other"


def same(arity: int, function: Callable[..., Array]) -> Builder:
    """Build rows whose sources and result all have the instruction's type."""

    def build(instruction: Instruction) -> Rule:
        kind = instruction.type
        return Rule((kind,) * arity, (kind,), function)

    return build
