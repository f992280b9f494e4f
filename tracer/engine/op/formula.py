"""Formulas in float64 written in Python and turned into LLVM assembly: `x * x + 1`.

Only operations that every processor rounds alike are offered, so that a formula gives the same
bits everywhere.
"""

import struct
from collections.abc import Callable, Sequence


class Number:
    """A float64 value of a formula under way; `text` is what names it in the assembly."""

    def __init__(self, lines: list[str], text: str) -> None:
        self._lines = lines
        self.text = text

    def _emit(self, statement: str) -> str:
        name = f"%e{len(self._lines)}"
        self._lines.append(f"{name} = {statement}")
        return name

    def _number(self, statement: str) -> "Number":
        return Number(self._lines, self._emit(statement))

    def _constant(self, value: "Number | float") -> str:
        return value.text if isinstance(value, Number) else literal(value)

    def __add__(self, other: "Number | float") -> "Number":
        return self._number(f"fadd double {self.text}, {self._constant(other)}")

    def __sub__(self, other: "Number | float") -> "Number":
        return self._number(f"fsub double {self.text}, {self._constant(other)}")

    def __mul__(self, other: "Number | float") -> "Number":
        return self._number(f"fmul double {self.text}, {self._constant(other)}")

    def __truediv__(self, other: "Number | float") -> "Number":
        return self._number(f"fdiv double {self.text}, {self._constant(other)}")

    def __rsub__(self, other: float) -> "Number":
        return self._number(f"fsub double {literal(other)}, {self.text}")

    def __rtruediv__(self, other: float) -> "Number":
        return self._number(f"fdiv double {literal(other)}, {self.text}")

    def __neg__(self) -> "Number":
        return self._number(f"fneg double {self.text}")

    def __abs__(self) -> "Number":
        return self._number(f"call double @llvm.fabs.f64(double {self.text})")

    def constant(self, value: float) -> "Number":
        """Return a number that does not depend on anything."""
        return Number(self._lines, literal(value))

    def root(self) -> "Number":
        """Return the square root."""
        return self._number(f"call double @llvm.sqrt.f64(double {self.text})")

    def single(self) -> "Number":
        """Return the nearest float32."""
        return self._number(
            f"fpext float {self._emit(f'fptrunc double {self.text} to float')} to double"
        )

    def nearest(self) -> "Number":
        """Return the nearest whole number, ties to even."""
        return self._number(f"call double @llvm.rint.f64(double {self.text})")

    def with_sign_of(self, other: "Number") -> "Number":
        """Return the magnitude of this with the sign of the other."""
        given = f"double {self.text}, double {other.text}"
        return self._number(f"call double @llvm.copysign.f64({given})")

    def compare(self, relation: str, other: "Number | float") -> str:
        """Return the name of a truth value; `relation` is LLVM's: `olt`, `uno`, `oeq`."""
        return self._emit(f"fcmp {relation} double {self.text}, {self._constant(other)}")

    def where(self, condition: str, otherwise: "Number | float") -> "Number":
        """Return this where the condition holds, else the other."""
        other = self._constant(otherwise)
        return self._number(f"select i1 {condition}, double {self.text}, double {other}")

    def bits(self) -> str:
        """Return the name of the 64 bits."""
        return self._emit(f"bitcast double {self.text} to i64")

    def whole(self) -> str:
        """Return the name of a number, whole and below 2^62 in size, as an integer."""
        return self._emit(f"fptosi double {self.text} to i64")

    def integer(self, operation: str, left: str, right: str | int) -> str:
        """Return the name of `operation` (`and`, `shl`, `icmp ne`...) of two integers."""
        return self._emit(f"{operation} i64 {left}, {right}")

    def of_bits(self, bits: str) -> "Number":
        """Return 64 bits as a number."""
        return self._number(f"bitcast i64 {bits} to double")

    def of_whole(self, integer: str) -> "Number":
        """Return an integer as a number."""
        return self._number(f"sitofp i64 {integer} to double")

    def polynomial(self, coefficients: Sequence[float]) -> "Number":
        """Return c0 + c1 x + c2 x^2 ..., by Horner's rule."""
        total = self * coefficients[-1]
        for coefficient in reversed(coefficients[1:-1]):
            total = (total + coefficient) * self
        return total + coefficients[0]


def literal(value: float) -> str:
    """Write a float64 as LLVM reads it, exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


DECLARATIONS = "".join(
    f"declare double @llvm.{name}.f64(double)\n" for name in ("fabs", "sqrt", "rint")
)
DECLARATIONS += "declare double @llvm.copysign.f64(double, double)\n"

Formula = Callable[..., Number]


def write(formula: Formula, sources: Sequence[str]) -> tuple[list[str], str]:
    """Return the statements of a formula of named sources, and the name of its result."""
    lines: list[str] = []
    result = formula(*(Number(lines, source) for source in sources))
    return lines, result.text
