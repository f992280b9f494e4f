"""Operands of machine code, as nvdisasm prints them."""

from ...base.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand without its signs: `kind` is `R`, `P`, `c`, `[` or `#` (an immediate)."""

    kind: str
    text: str
    negative: bool = False
    inverted: bool = False
    absolute: bool = False
    number: int = 0
    suffix: tuple[str, ...] = ()

    @property
    def is_zero(self) -> bool:
        """Whether it is RZ or URZ."""
        return self.kind == "R" and self.number < 0


ZERO = Operand("R", "RZ", number=-1)


def registers(operand: Operand, count: int) -> list[str]:
    """Return the registers of an operand of so many words."""
    prefix = operand.text.rstrip("0123456789Z")
    return [f"%{prefix}{operand.number + n}" for n in range(count)]
