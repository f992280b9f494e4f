"""D = A B + C by a warp: where the registers have the elements of the matrices, and their formats.

The elements of an operand are numbered by register, place in it and lane: element (register * each
+ place) * 32 + lane, where a register holds `each`. LLVM compiles the loops of ops/tensor.py for
each `Form`; interpreter and machine code call the same routine.
"""

import ctypes
import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....jit.loop_codegen import translate
from ....jit.machine_code import address, compile_function
from ....jit.structure import Struct
from ....jit.value import ELEMENTS
from ..ops.format import FORMATS
from ..ops.lanes import LANES, Array
from ..ops.tensor import (
    AND,
    DOUBLES,
    FLOATS,
    INTEGERS,
    KEPT_BITS,
    OCTET_BITS,
    REAL,
    SIGNED,
    UNSIGNED,
    XOR,
    Form,
    Format,
    Matrix,
    multiply_warps,
    work_sizes,
)
from ..ops.tile import GROUP, Scales, multiply_floats

BITS = {
    **{"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "e4m3": 8, "e5m2": 8},
    **{"u8": 8, "s8": 8, "u4": 4, "s4": 4, "b1": 1},
    **{"e2m1": 8, "e2m3": 8, "e3m2": 8, "packed e2m1": 4},
}
"""Bits of an element of a PTX type; narrow floats lie in bytes, 4-bit ones also two to a byte."""

_OCTETS = frozenset({"e4m3", "e5m2"})
_SHIFTS = {"e2m1": 2, "e2m3": 0, "e3m2": 0}
"""Bits below a number in its byte (PTX ISA 9.7.14.5)."""

_LEAST = {"e4m3": -6, "e5m2": -14, "f16": -14, "f32": -126, "e2m1": 0, "e2m3": 0, "e3m2": -2}
"""The least exponents of normal numbers."""

Numbers = NDArray[np.int32]


def width(kind: str) -> int:
    """Return the bits of an element of a PTX type; elements of `b1` are words of 32."""
    return 32 if kind == "b1" else BITS[kind]


def each(kind: str) -> int:
    """Return the number of elements of a PTX type per register."""
    return max(32 // width(kind), 1)


def numbered(lane: Array, register: Array, place: Array, kind: str) -> NDArray[np.intp]:
    """Return the numbers of the elements at these lanes, registers and places."""
    indices: NDArray[np.intp] = (register * each(kind) + place) * LANES + lane
    return indices


@dataclass(frozen=True, slots=True)
class Layout:
    """Element numbers: `a` (products, rows, inner), `b` (products, inner, columns) and `c`
    (products, rows, columns); `d` is the place in `c` of each element of D, in the order of
    numbers."""

    a: NDArray[np.intp]
    b: NDArray[np.intp]
    c: NDArray[np.intp]
    d: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Sparsity:
    """The layout of the metadata of a sparse A: 4 bits per row and group of four columns, 2 of
    which A stores; `lane` and `shift` are (rows, groups). A column is an element, two elements
    of 4 bits, or half of an element of 32 bits."""

    lane: NDArray[np.intp]
    shift: NDArray[np.uint32]
    bits: int

    def expand(self, stored: Array, metadata: Array) -> Array:
        """Return A (rows, 2 inner, warps), from its stored elements (rows, inner, warps) and the
        metadata (warps, 32); the other elements are zero."""
        codes = np.moveaxis(metadata[:, self.lane] >> self.shift & 15, 0, -1).astype(np.intp)
        return spread(stored, codes, self.bits)


def spread(stored: Array, codes: NDArray[np.intp], bits: int) -> Array:
    """Return a sparse A (rows, 2 inner, warps) of elements of some bits from its stored ones (rows,
    inner, warps) and four bits of metadata for each group of four columns (rows, groups, warps)."""
    start = 4 * np.arange(codes.shape[1])[None, :, None]
    columns = start + (codes & 3)
    if bits == 32:
        columns //= 2
    else:
        columns = np.stack([columns, start + (codes >> 2)], 2)
    if bits == 4:
        columns = 2 * columns[..., None, :] + np.arange(2)[:, None]
    whole = np.zeros((stored.shape[0], 2 * stored.shape[1], stored.shape[2]), stored.dtype)
    np.put_along_axis(whole, columns.reshape(stored.shape), stored, 1)
    return whole


@dataclass(frozen=True)
class Product:
    """The PTX types of D, A, B and C, their layout, and the number of registers per lane.

    Products are added in blocks of `terms`, each to the sum of the earlier ones. The layout of a
    sparse A is that of its stored elements. In a product `of_warpgroup` factors may be given
    instead of registers, and their signs change where `negated` says so. `since_10` is true for
    what compute capability 9.0 lacks; `scale` is the type of the scales of `blocks` blocks of a
    row, if it has some.
    """

    types: tuple[str, str, str, str]
    layout: Layout
    registers: tuple[int, int, int, int]
    terms: int
    saturate: bool = False
    both: bool = False
    sparsity: Sparsity | None = None
    of_warpgroup: bool = False
    given: tuple[bool, bool] = (False, False)
    negated: tuple[bool, bool] = (False, False)
    since_10: bool = False
    scale: str = ""
    blocks: int = 0

    @cached_property
    def form(self) -> Form:
        """What the loops of a product need."""
        layout, types, form = self.layout, self.types, Form()
        octets = types[1] in _OCTETS and self.of_warpgroup
        has_least = octets or (self.since_10 and BITS[types[1]] <= 8)
        _, inner, columns = layout.b.shape
        products, rows = layout.c.shape[:2]
        given = (self.given[0] or self.sparsity is not None, self.given[1], False)
        negated = (*self.negated, False)
        first = self.registers[0]
        shapes = (products, rows, inner), layout.b.shape, layout.c.shape
        for place, numbers in enumerate((layout.a, layout.b, layout.c)):
            matrix = Matrix()
            matrix.format = _format(types[1 + place], has_least)
            matrix.count = math.prod(shapes[place])
            if given[place]:
                numbers = np.arange(matrix.count).reshape(shapes[place])
            if place < 2:
                numbers = numbers.take(self._order, axis=2 - place)
            matrix.numbers = numbers.astype(np.int32).reshape(-1)
            matrix.register = first
            matrix.registers = 0 if given[place] else self.registers[1 + place]
            elements = LANES * matrix.registers * each(types[1 + place])
            matrix.size = matrix.count if given[place] else elements
            matrix.places = each(types[1 + place]).bit_length() - 1
            matrix.is_given, matrix.is_negated = int(given[place]), int(negated[place])
            setattr(form, "abc"[place], matrix)
            first += self.registers[1 + place]
        form.to, form.d = _format(types[0]), layout.d.astype(np.int32)
        form.registers, form.places = self.registers[0], each(types[0]).bit_length() - 1
        form.arithmetic = self._arithmetic()
        form.lines, form.rows, form.inner, form.columns = products * rows, rows, inner, columns
        form.adds_last = int(self._adds_octets)
        form.stage = inner // 2 if form.adds_last else self.terms
        form.kept = OCTET_BITS if octets else KEPT_BITS
        form.saturates = int(self.saturate)
        form.cuts_sum = int(octets and types[0] == "f32")
        form.drops_sign = int(self.of_warpgroup)
        return form

    @property
    def _adds_octets(self) -> bool:
        """Whether 8-bit floats are summed in two stages, and the accumulator is added last."""
        return self.types[1] in _OCTETS and not self.of_warpgroup and not self.since_10

    @property
    def _order(self) -> NDArray[np.intp]:
        """The columns of A in the order in which they are added."""
        columns = np.arange(self.layout.b.shape[1])
        half = 4 if self.sparsity else 2
        return np.argsort(columns // half % 2, kind="stable") if self._adds_octets else columns

    @cached_property
    def text(self) -> str:
        """The routine `product`, for interpreter and machine code: the loops with the form as a
        constant, and their work on the stack."""
        sizes = work_sizes(self.form)
        lines = [*constant_text("form", self.form), _HEAD, f"  %work = alloca [{len(sizes)} x ptr]"]
        for number, (name, size) in enumerate(sizes.items()):
            lines.append(f"  %{name} = alloca [{size} x i64], align 64")
            lines.append(f"  %at.{name} = getelementptr ptr, ptr %work, i64 {number}")
            lines.append(f"  store ptr %{name}, ptr %at.{name}")
        own = translate([multiply_warps], "alwaysinline").replace(
            "define i64", "define internal i64"
        )
        return "\n".join((own, *lines, _CALL))

    @cached_property
    def _run(self) -> Callable[..., None]:
        pointer, word = ctypes.c_void_p, ctypes.c_int64
        return compile_function(self.text, "product", pointer, pointer, pointer, word, word)

    def _arithmetic(self) -> int:
        if self.types[1] == "f64":
            return DOUBLES
        if self.types[1] == "b1":
            return AND if self.both else XOR
        return INTEGERS if self.types[0] == "s32" else FLOATS

    def __call__(
        self, operands: Sequence[Array], metadata: Array | None = None,
        given: NDArray[np.int64] | None = None,
    ) -> Array:  # fmt: skip
        """Return the registers of D (n, warps, 32) from those of A, B and C (n, warps, 32), the
        metadata (warps, 32) of a sparse A, and the elements (warps, n) of given factors."""
        form, count = self.form, self.registers[0]
        warps = operands[-1].shape[1]
        unit = operands[-1].dtype
        words = np.concatenate([np.zeros((count, warps, LANES), unit), *operands])
        starts = np.arange(len(words)) * (warps * LANES * unit.itemsize // 4)
        if metadata is not None and self.sparsity:
            expanded = self.sparsity.expand(self.stored(operands[0]), metadata)
            given = np.zeros((warps, form.a.count + form.b.count), np.int64)
            given[:, : form.a.count] = expanded.reshape(-1, warps).T
        elif given is None:
            given = np.zeros((1, 1), np.int64)
        self._run(*(address(array) for array in (words, starts, given)), -1, warps)
        return words[:count]

    def stored(self, registers: Array) -> Array:
        """Return the elements (rows, inner, warps) of A in its registers (n, warps, 32)."""
        return _elements(registers, self.layout.a[0], self.types[1])

    def scaled(self, operands: Sequence[Array], metadata: Array | None, scales: Scales) -> Array:
        """Return the registers of D of a product with scales, from those of A, B and C."""
        _, left, right, start = self.types
        a = self.stored(operands[0])
        if metadata is not None and self.sparsity:
            a = self.sparsity.expand(a, metadata)
        b, c = (
            _elements(registers, numbers[0], kind)
            for registers, numbers, kind in (
                (operands[1], self.layout.b, right), (operands[2], self.layout.c, start)
            )
        )  # fmt: skip
        types = self.types[0], left.removeprefix("packed "), right.removeprefix("packed "), start
        a, b = (_numbers(m, kind) for m, kind in ((a, left), (b, right)))
        group = 1 if left != "packed e2m1" else 2 * GROUP if self.sparsity else GROUP
        tiles = np.moveaxis(a, -1, 0), b.T, np.moveaxis(c, -1, 0)
        d = multiply_floats(types, *tiles, scales, group).reshape(len(scales.a), -1)
        words = d[:, self.layout.d].astype(np.uint32).reshape(len(d), -1, LANES)
        registers: Array = np.moveaxis(words, 1, 0)
        return registers


def _elements(registers: Array, numbers: NDArray[np.intp], kind: str) -> Array:
    """Return the elements of these numbers, with a last dimension of warps."""
    register, place = np.divmod(numbers // LANES, each(kind))
    shift = (place * width(kind)).astype(np.uint32)[..., None]
    mask = np.uint32((1 << width(kind)) - 1)
    elements: Array = registers[register, :, numbers % LANES] >> shift & mask
    return elements


def _numbers(octets: Array, kind: str) -> Array:
    """Return the patterns of narrow floats in their bytes."""
    real = FORMATS.get(kind)
    if real is None or real.bits == 8:
        return octets
    patterns: Array = octets >> np.uint32(_SHIFTS[kind]) & np.uint32((1 << real.bits) - 1)
    return patterns


def _format(kind: str, has_least: bool = False) -> Format:
    """Return the format of a PTX type; `has_least` is true if subnormal numbers count as having the
    exponent of the least normal one."""
    form, real = Format(), FORMATS.get(kind.removeprefix("packed "))
    form.width = form.pitch = width(kind)
    form.shift = 0
    form.kind = SIGNED if kind[0] == "s" else UNSIGNED
    if kind == "f64":
        form.kind = REAL
    elif real is not None:
        form.width, form.shift = real.bits, _SHIFTS.get(kind, width(kind) - real.bits)
        form.kind, form.fraction, form.bias = REAL, real.fraction, real.bias
        form.infinity, form.nan = real.infinity, real.nan
    form.least = _LEAST.get(kind, -2000) if has_least else -2000
    return form


_HEAD = "define void @product(ptr %words, ptr %starts, ptr %given, i64 %mask, i64 %warps) {"
_CALL = """\
  call i64 @multiply_warps(
    ptr @form, ptr %words, ptr %starts, ptr %given, i64 %mask, i64 %warps, ptr %work)
  ret void
}
"""


def constant_text(name: str, structure: Struct) -> list[str]:
    """Return the definitions of a structure as the constant @NAME, and of what it points to."""
    lines, words = [], []
    for field in structure.fields:
        value = getattr(structure, field)
        if isinstance(value, int):
            words.append(f"i64 {value}")
            continue
        words.append(f"ptr @{name}.{field}")
        if isinstance(value, Struct):
            lines += constant_text(f"{name}.{field}", value)
            continue
        element = ELEMENTS[value.dtype.str[1:]][0]
        listed = ", ".join(f"{element} {number}" for number in value.tolist())
        lines.append(f"@{name}.{field} = internal constant [{len(value)} x {element}] [{listed}]")
    kinds = ", ".join(word.split()[0] for word in words)
    lines.append(f"@{name} = internal constant {{{kinds}}} {{{', '.join(words)}}}")
    return lines
