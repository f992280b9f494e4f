"""Codegen of `ldmatrix`, `stmatrix`, `mma` and `wmma.mma`.

`add_matrix_access` moves rows of 16 bytes between shared memory and registers; the eight rows of a
matrix, side by side, are a register's 32 lanes (see matrix/ldmatrix.py). `add_product` calls a
routine per form of a product, which `_Routine` writes: it unpacks the fragments of A, B and C,
multiplies them to the same bits as ops/tensor.py, and packs D.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from ....jit.ufunc import Fragment, fragment_of
from ...ptx.kernel import TYPE_BYTES, Instruction, Register
from ..matrix import mma, wmma
from ..matrix.ldmatrix import COUNTS, ROW_BYTES
from ..matrix.product import BITS, Product, each, width
from ..ops.floating import arithmetic
from ..ops.format import Reformat, reformat
from ..ops.tensor import KEPT_BITS
from .emit_access import element_operands, emit_check
from .emit_lane import Fragments, Refuse
from .emit_lines import WarpText

_ROWS = """
define void @{name}(i64 %start, ptr %addresses, i64 %mask, ptr %rows) {{
entry:
  br label %row
row:
  %lane = phi i64 [0, %entry], [%next, %done]
  %own = getelementptr <4 x i32>, ptr %rows, i64 %lane
  %bits = lshr i64 %mask, %lane
  %on = trunc i64 %bits to i1
  br i1 %on, label %move, label %stay
move:
  %ap = getelementptr i64, ptr %addresses, i64 %lane
  %a = load i64, ptr %ap, align 8
  %at = add i64 %start, %a
  %p = inttoptr i64 %at to ptr
  %x = load <4 x i32>, ptr {source}, align 1
  store <4 x i32> %x, ptr {to}, align 1
  br label %done
stay:
  {otherwise}
  br label %done
done:
  %next = add i64 %lane, 1
  %more = icmp ult i64 %next, {count}
  br i1 %more, label %row, label %end
end:
  ret void
}}
"""
_ZERO = "store <4 x i32> zeroinitializer, ptr %own, align 8"
_TURNED = ", ".join(f"i32 {8 * (k % 8) + k // 8}" for k in range(64))
_PUT = """
define void @{name}(i64 %mask, ptr %from, ptr %to) {{
  %h = load <64 x i16>, ptr %from, align 8
  %t = shufflevector <64 x i16> %h, <64 x i16> poison, <64 x i32> <{order}>
  %v = bitcast <64 x i16> %t to <32 x i32>
  %m32 = trunc i64 %mask to i32
  %m = bitcast i32 %m32 to <32 x i1>
  %old = load <32 x i32>, ptr %to, align 8
  %y = select <32 x i1> %m, <32 x i32> %v, <32 x i32> %old
  store <32 x i32> %y, ptr %to, align 8
  ret void
}}
"""


def add_matrix_access(
    text: WarpText, instruction: Instruction, position: int, number: int, refuse: Refuse
) -> None:
    """Emit an `ldmatrix` or `stmatrix`, access `number` of the basic block."""
    is_load = instruction.opcode == "ldmatrix"
    place, values = (1, 0) if is_load else (0, 1)
    registers = element_operands(instruction.operands[values])
    count = next((COUNTS[m] for m in instruction.modifiers if m in COUNTS), 0)
    if len(registers) != count or "m8n8" not in instruction.modifiers or instruction.type != "b16":
        raise refuse("this shape or type of matrix")
    active = text.lanes_on(instruction)
    rows = text.emit(f"and i64 {active}, {(1 << 8 * count) - 1}")
    operand = instruction.operands[place]
    reach = emit_check(text, instruction, operand, ROW_BYTES, position, number, refuse, rows)
    moved = f"i64 {reach.start}, ptr {reach.addresses}, i64 {reach.mask}, ptr %values"
    if is_load:
        text.add(f"call void @{_rows(text, count, is_load)}({moved})")
    for matrix, register in enumerate(registers):
        if not isinstance(register, Register) or TYPE_BYTES[register.type] != 4:
            raise refuse("an operand that is no register of 32 bits")
        at = text.emit(f"getelementptr i32, ptr %values, i64 {32 * matrix}")
        register_place = text.place(register)
        pair = f"ptr {at}, ptr {register_place}" if is_load else f"ptr {register_place}, ptr {at}"
        lanes = active if is_load else -1
        text.add(f"call void @{_put(text, 'trans' in instruction.modifiers)}(i64 {lanes}, {pair})")
    if not is_load:
        text.add(f"call void @{_rows(text, count, is_load)}({moved})")


def _rows(text: WarpText, count: int, is_load: bool) -> str:
    """Return the function that moves the rows of `count` matrices; the row of an inactive lane is
    zeros."""
    name = f"{'load' if is_load else 'store'}_rows{count}"
    source, to = ("%p", "%own") if is_load else ("%own", "%p")
    definition = _ROWS.format(
        name=name, source=source, to=to, otherwise=_ZERO if is_load else "", count=8 * count
    )
    return text.fragments.once(name, "i64, ptr, i64, ptr", definition)


def _put(text: WarpText, transposed: bool) -> str:
    """Return the function that writes a matrix, or its transpose, to some lanes of a register."""
    name = "put_turned" if transposed else "put_matrix"
    order = _TURNED if transposed else ", ".join(f"i32 {k}" for k in range(64))
    return text.fragments.once(name, "i64, ptr, ptr", _PUT.format(name=name, order=order))


_ABREAST = 8
"""Columns of B multiplied at a time."""

_INTRINSICS = """
declare <8 x double> @llvm.trunc.v8f64(<8 x double>)
declare <8 x double> @llvm.fabs.v8f64(<8 x double>)
declare <8 x double> @llvm.copysign.v8f64(<8 x double>, <8 x double>)
declare <8 x i32> @llvm.smax.v8i32(<8 x i32>, <8 x i32>)
declare <8 x i32> @llvm.smin.v8i32(<8 x i32>, <8 x i32>)
declare <8 x i64> @llvm.smax.v8i64(<8 x i64>, <8 x i64>)
declare <8 x i64> @llvm.smin.v8i64(<8 x i64>, <8 x i64>)
declare <8 x i32> @llvm.ctpop.v8i32(<8 x i32>)
"""
_LARGEST, _LEAST = 1000, -900
"""Bounds of the exponents that scale a sum: no number has a larger one, and sums of zeros have the
least."""

_NOTHING = -4096
"""The exponent of zero."""


def add_product(text: WarpText, instruction: Instruction, mask: str, refuse: Refuse) -> None:
    """Emit an `mma` or `wmma.mma` for the lanes `mask`."""
    find = mma.product_of if instruction.opcode == "mma" else wmma.product_of
    product = find(instruction)
    if product is None or product.sparsity or (product.octets and product.types[0] != "f32"):
        raise refuse("this shape or type")
    offsets = []
    size = 8 if product.types[1] == "f64" else 4
    for operand, count in zip(instruction.operands, product.registers, strict=True):
        registers = element_operands(operand)
        if len(registers) != count:
            raise refuse("this number of registers")
        for register in registers:
            if not isinstance(register, Register) or TYPE_BYTES[register.type] != size:
                raise refuse("an operand that is no register of its size")
            offsets.append(f"i64 {text.frame.place(text.function, register.name).offset}")
    kinds = ", ".join(["ptr", "i64", *["i64"] * len(offsets)])
    called = text.fragments.once("product", kinds, product_text(product), vectors=True)
    text.add(f"call void @{called}(ptr %frame, i64 {mask}, {', '.join(offsets)})")


def product_text(product: Product) -> str:
    """Return the routine `product` of a form. It takes the frame, the mask of active lanes, and the
    offsets of the registers of D, A, B and C in the frame."""
    return _Routine(product).text()


def _fragment(function: object) -> Fragment:
    fragment = fragment_of(function)
    assert fragment is not None
    return fragment


class _Routine:
    """Writes the routine of one form. A matrix has a value of `_wide` bits per element, row by
    row."""

    def __init__(self, product: Product) -> None:
        self._product = product
        self._fragments = Fragments()
        self._tables: list[str] = []
        self._rooms: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._is_real = product.types[1] == "f64" or product.types[0] in ("f16", "f32")
        self._value = "double" if self._is_real else "i32"
        rows, inner, products = product.layout.a.shape
        self._rows, self._inner, self._products = rows, inner, products
        self._columns = product.layout.b.shape[1]

    def text(self) -> str:
        """Return the whole text."""
        layout, types = self._product.layout, self._product.types
        counts = self._product.registers
        first = counts[0]
        for name, numbers, kind, count in zip(
            "abc", (layout.a, layout.b, layout.c), types[1:], counts[1:], strict=True
        ):
            self._take(name, np.moveaxis(numbers, 2, 0), kind, range(first, first + count))
            first += count
        self._allocate("d", layout.c.size)
        if types[1] == "f64":
            self._chains()
        elif self._is_real:
            self._sums()
        else:
            self._integers()
        self._give()
        parameters = "".join(f", i64 %o{k}" for k in range(sum(counts)))
        return (
            self._fragments.text()
            + _INTRINSICS
            + "\n".join(self._tables)
            + f"\ndefine void @product(ptr %frame, i64 %mask{parameters}) {{\nentry:\n"
            + "\n".join((*self._rooms, *self._lines))
            + "\n  ret void\n}\n"
        )

    # lines

    def _emit(self, statement: str) -> str:
        self._count += 1
        self._lines.append(f"  %v{self._count} = {statement}")
        return f"%v{self._count}"

    def _add(self, line: str) -> None:
        self._lines.append(f"  {line}")

    def _allocate(self, name: str, size: int) -> None:
        """Allocate a matrix `%NAME` on the stack."""
        self._rooms.append(f"  %{name} = alloca [{size} x {self._value}], align 64")

    @contextmanager
    def _loop(self, count: int, step: int = 1) -> Iterator[str]:
        """Emit a loop over 0, `step`, ... below `count` around the lines of the context."""
        self._count += 1
        n = self._count
        self._lines += [f"  br label %before{n}", f"before{n}:", f"  br label %loop{n}"]
        self._lines += [f"loop{n}:", f"  %i{n} = phi i64 [0, %before{n}], [%next{n}, %last{n}]"]
        yield f"%i{n}"
        self._lines += [f"  br label %last{n}", f"last{n}:", f"  %next{n} = add i64 %i{n}, {step}"]
        self._lines.append(f"  %more{n} = icmp ult i64 %next{n}, {count}")
        self._lines += [f"  br i1 %more{n}, label %loop{n}, label %end{n}", f"end{n}:"]

    def _at(self, array: str, index: str, kind: str) -> str:
        return self._emit(f"getelementptr {kind}, ptr {array}, i64 {index}")

    def _load(self, array: str, index: str, kind: str, loaded: str = "") -> str:
        return self._emit(f"load {loaded or kind}, ptr {self._at(array, index, kind)}, align 4")

    def _table(self, name: str, numbers: NDArray[np.intp]) -> None:
        listed = ", ".join(f"i16 {number}" for number in numbers.reshape(-1).tolist())
        size = f"[{numbers.size} x i16]"
        self._tables.append(f"@{name} = internal constant {size} [{listed}]")

    def _index(self, table: str, place: str) -> str:
        return self._emit(f"zext i16 {self._load(f'@{table}', place, 'i16')} to i64")

    def _splat(self, value: str, kind: str) -> str:
        one = self._emit(f"insertelement <8 x {kind}> poison, {kind} {value}, i64 0")
        zeros = "<8 x i32> zeroinitializer"
        return self._emit(f"shufflevector <8 x {kind}> {one}, <8 x {kind}> poison, {zeros}")

    def _call(self, function: object, arguments: Sequence[str]) -> str:
        fragment = _fragment(function)
        types = fragment.types((*fragment.sources, *fragment.results))
        listed = ", ".join(f"{t} {v}" for t, v in zip(types, arguments, strict=False))
        return self._emit(f"call {types[-1]} @{self._fragments.name(fragment)}({listed})")

    # registers to matrices

    def _take(self, name: str, numbers: NDArray[np.intp], kind: str, registers: range) -> None:
        """Emit the unpacking of an operand's registers into the matrix `%NAME`."""
        count = each(kind)
        elements = len(registers) * count * 32
        self._allocate(f"{name}.e", elements)
        self._allocate(name, numbers.size)
        bits = 64 if BITS[kind] == 64 else 32
        for place, register in enumerate(registers):
            source = self._at("%frame", f"%o{register}", "i8")
            to = self._at(f"%{name}.e", str(place * count * 32), self._value)
            with self._loop(32) as lane:
                word = self._load(source, lane, f"i{bits}")
                for part in range(count):
                    value = self._element(word, part, kind)
                    at = self._emit(f"add i64 {lane}, {part * 32}")
                    self._add(f"store {self._value} {value}, ptr {self._at(to, at, self._value)}")
        self._table(f"table.{name}", numbers)
        with self._loop(numbers.size) as place_:
            value = self._load(f"%{name}.e", self._index(f"table.{name}", place_), self._value)
            self._add(
                f"store {self._value} {value}, ptr {self._at(f'%{name}', place_, self._value)}"
            )

    def _element(self, word: str, part: int, kind: str) -> str:
        """Return the value of an element of a register."""
        bits = width(kind)
        if bits == 64:
            return self._emit(f"bitcast i64 {word} to double")
        if part:
            word = self._emit(f"lshr i32 {word}, {part * bits}")
        if not self._is_real:
            if bits == 32:
                return word
            narrow = self._emit(f"trunc i32 {word} to i{bits}")
            return self._emit(f"{'sext' if kind[0] == 's' else 'zext'} i{bits} {narrow} to i32")
        if kind == "tf32":
            word, kind = self._emit(f"and i32 {word}, {0xFFFF_E000}"), "f32"
        elif bits < 32:
            word = self._emit(f"trunc i32 {word} to i{bits}")
        value = self._call(reformat(Reformat(kind, "f64")), [word])
        return self._emit(f"bitcast i64 {value} to double")

    # products

    @contextmanager
    def _tiles(self) -> Iterator[tuple[str, str, str]]:
        """Emit a loop over eight columns of each row; yield the start of the row of A, the start of
        those columns of B, and the place in C and D."""
        across = self._columns
        with self._loop(self._products) as number, self._loop(self._rows) as row:
            line = self._emit(f"mul i64 {number}, {self._rows}")
            line = self._emit(f"add i64 {line}, {row}")
            a = self._emit(f"mul i64 {line}, {self._inner}")
            c = self._emit(f"mul i64 {line}, {across}")
            b = self._emit(f"mul i64 {number}, {self._inner * across}")
            with self._loop(across, _ABREAST) as column:
                yield a, self._emit(f"add i64 {b}, {column}"), self._emit(f"add i64 {c}, {column}")

    def _pair(self, suffix: str, kind: str, a: str, b: str, k: int) -> tuple[str, str]:
        """Return element k of a row of A, broadcast to eight lanes, and row k of eight columns of
        B."""
        first = self._load(f"%a{suffix}", self._emit(f"add i64 {a}, {k}"), kind)
        row = self._emit(f"add i64 {b}, {k * self._columns}")
        return self._splat(first, kind), self._load(f"%b{suffix}", row, kind, f"<8 x {kind}>")

    def _keep(self, value: str, place: str) -> None:
        self._add(
            f"store <8 x {self._value}> {value}, ptr {self._at('%d', place, self._value)}, align 4"
        )

    def _integers(self) -> None:
        product = self._product
        with self._tiles() as (a, b, c):
            total = "zeroinitializer"
            for k in range(self._inner):
                first, second = self._pair("", "i32", a, b, k)
                if product.types[1] == "b1":
                    how = "and" if product.both else "xor"
                    bits = self._emit(f"{how} <8 x i32> {first}, {second}")
                    term = self._emit(f"call <8 x i32> @llvm.ctpop.v8i32(<8 x i32> {bits})")
                else:
                    term = self._emit(f"mul <8 x i32> {first}, {second}")
                total = self._emit(f"add <8 x i32> {total}, {term}")
            start = self._load("%c", c, "i32", "<8 x i32>")
            if not product.saturate:
                self._keep(self._emit(f"add <8 x i32> {total}, {start}"), c)
            else:
                wide = [self._emit(f"sext <8 x i32> {x} to <8 x i64>") for x in (total, start)]
                sum_ = self._emit(f"add <8 x i64> {wide[0]}, {wide[1]}")
                for how, limit in (("smax", -(1 << 31)), ("smin", (1 << 31) - 1)):
                    limits = self._splat(str(limit), "i64")
                    arguments = f"<8 x i64> {sum_}, <8 x i64> {limits}"
                    sum_ = self._emit(f"call <8 x i64> @llvm.{how}.v8i64({arguments})")
                self._keep(self._emit(f"trunc <8 x i64> {sum_} to <8 x i32>"), c)

    def _chains(self) -> None:
        """Emit a chain of fused multiply-adds."""
        fma = arithmetic("fma", "f64")
        with self._tiles() as (a, b, c), self._loop(_ABREAST) as column:
            place = self._emit(f"add i64 {c}, {column}")
            total = self._load("%c", place, "double")
            for k in range(self._inner):
                first = self._load("%a", self._emit(f"add i64 {a}, {k}"), "double")
                row = self._emit(f"add i64 {b}, {k * self._columns}")
                second = self._load("%b", self._emit(f"add i64 {row}, {column}"), "double")
                total = self._call(fma, [first, second, total])
            self._add(f"store double {total}, ptr {self._at('%d', place, 'double')}")

    def _sums(self) -> None:
        """Emit sums of floats, stage by stage, or those of two bytes of every four."""
        product = self._product
        to = product.types[0]
        size = product.layout.c.size
        self._exponents("a", product.layout.a.size)
        self._exponents("b", product.layout.b.size)
        if product.octets:
            half = [k for k in range(self._inner) if k % 4 < 2]
            stages = [half, [k for k in range(self._inner) if k % 4 >= 2]]
            self._allocate("start", size)
            self._copy("%start", "%c", size)
            with self._loop(size) as place:
                self._add(f"store double 0.0, ptr {self._at('%c', place, 'double')}")
        else:
            step = product.terms
            stages = [list(range(k, k + step)) for k in range(0, self._inner, step)]
        for number, terms in enumerate(stages):
            self._exponents("c", size, again=number > 0)
            self._stage(terms)
            self._round(size, to, last=number + 1 == len(stages))
            if number + 1 < len(stages):
                self._copy("%c", "%d", size)

    def _copy(self, to: str, source: str, size: int) -> None:
        with self._loop(size) as place:
            value = self._load(source, place, "double")
            self._add(f"store double {value}, ptr {self._at(to, place, 'double')}")

    def _exponents(self, name: str, size: int, again: bool = False) -> None:
        """Emit the exponents of a matrix as `%NAME.x`."""
        if not again:
            self._allocate(f"{name}.x", size)
        with self._loop(size) as place:
            bits = self._load(f"%{name}", place, "i64")
            twice = self._emit(f"shl i64 {bits}, 1")
            high = self._emit(f"lshr i64 {twice}, 53")
            narrow = self._emit(f"trunc i64 {high} to i32")
            exponent = self._emit(f"sub i32 {narrow}, 1023")
            is_zero = self._emit(f"icmp eq i64 {twice}, 0")
            entry = self._emit(f"select i1 {is_zero}, i32 {_NOTHING}, i32 {exponent}")
            self._add(f"store i32 {entry}, ptr {self._at(f'%{name}.x', place, 'i32')}")

    def _stage(self, terms: Sequence[int]) -> None:
        """Emit exact sums of the products and C, truncated below their largest exponent.

        Where an element is an infinity or NaN, emit a plain sum.
        """
        with self._tiles() as (a, b, c):
            # The tensor core aligns all products and C to the largest exponent: scale by it,
            # truncate each term to an integer, add exactly, and scale back.
            largest = self._load("%c.x", c, "i32", "<8 x i32>")
            for k in terms:
                first, second = self._pair(".x", "i32", a, b, k)
                both = self._emit(f"add <8 x i32> {first}, {second}")
                largest = self._emit(
                    f"call <8 x i32> @llvm.smax.v8i32(<8 x i32> {largest}, <8 x i32> {both})"
                )
            scale, back = self._scales(largest)
            start = self._load("%c", c, "double", "<8 x double>")
            total, plain = self._cut(self._emit(f"fmul <8 x double> {start}, {scale}")), start
            for k in terms:
                first, second = self._pair("", "double", a, b, k)
                term = self._emit(f"fmul <8 x double> {first}, {second}")
                plain = self._emit(f"fadd <8 x double> {plain}, {term}")
                whole_term = self._cut(self._emit(f"fmul <8 x double> {term}, {scale}"))
                total = self._emit(f"fadd <8 x double> {total}, {whole_term}")
            total = self._emit(f"fmul <8 x double> {total}, {back}")
            size = self._emit(f"call <8 x double> @llvm.fabs.v8f64(<8 x double> {plain})")
            infinity = self._splat("0x7FF0000000000000", "double")
            finite = self._emit(f"fcmp olt <8 x double> {size}, {infinity}")
            total = self._emit(
                f"select <8 x i1> {finite}, <8 x double> {total}, <8 x double> {plain}"
            )
            self._keep(self._overflowed(total), c)

    def _cut(self, value: str) -> str:
        return self._emit(f"call <8 x double> @llvm.trunc.v8f64(<8 x double> {value})")

    def _scales(self, largest: str) -> tuple[str, str]:
        """Return the powers of two that scale sums of these exponents to integers, and back."""
        for how, limit in (("smax", _LEAST), ("smin", _LARGEST)):
            limits = self._splat(str(limit), "i32")
            arguments = f"<8 x i32> {largest}, <8 x i32> {limits}"
            largest = self._emit(f"call <8 x i32> @llvm.{how}.v8i32({arguments})")
        wide = self._emit(f"sext <8 x i32> {largest} to <8 x i64>")
        up = self._emit(f"sub <8 x i64> {self._splat(str(1023 + KEPT_BITS), 'i64')}, {wide}")
        down = self._emit(f"add <8 x i64> {self._splat(str(1023 - KEPT_BITS), 'i64')}, {wide}")
        scales = []
        for exponent in (up, down):
            shifted = self._emit(f"shl <8 x i64> {exponent}, {self._splat('52', 'i64')}")
            scales.append(self._emit(f"bitcast <8 x i64> {shifted} to <8 x double>"))
        return scales[0], scales[1]

    def _overflowed(self, total: str) -> str:
        """Return the sum with infinity where it exceeds float32, although sums are truncated."""
        size = self._emit(f"call <8 x double> @llvm.fabs.v8f64(<8 x double> {total})")
        limit = self._splat("0x47F0000000000000", "double")  # 2 ** 128
        beyond = self._emit(f"fcmp oge <8 x double> {size}, {limit}")
        infinity = self._splat("0x7FF0000000000000", "double")
        signed = self._emit(
            f"call <8 x double> @llvm.copysign.v8f64(<8 x double> {infinity}, <8 x double> {total})"
        )
        return self._emit(f"select <8 x i1> {beyond}, <8 x double> {signed}, <8 x double> {total}")

    def _round(self, size: int, to: str, last: bool) -> None:
        """Emit the rounding of the sums to `to`: doubles of that value for the next stage; after
        the last stage its bits, in the low half of %d's elements."""
        octets = self._product.octets
        mode = "rn" if to == "f16" else "rz"
        bits = 16 if to == "f16" else 32
        with self._loop(size) as place:
            at = self._at("%d", place, "double")
            total = self._emit(f"load double, ptr {at}")
            whole = self._emit(f"bitcast double {total} to i64")
            result = self._call(reformat(Reformat("f64", to, mode)), [whole])
            if octets and last:
                result = self._added(result, place)
            elif not octets:
                is_nan = self._emit(f"fcmp uno double {total}, 0.0")
                nan = 0x7FFF if to == "f16" else 0x7FFF_FFFF
                result = self._emit(f"select i1 {is_nan}, i{bits} {nan}, i{bits} {result}")
            if last:
                result = self._emit(f"zext i{bits} {result} to i64")
            elif octets:
                single = self._emit(f"bitcast i32 {result} to float")
                result = self._emit(
                    f"bitcast double {self._emit(f'fpext float {single} to double')} to i64"
                )
            else:
                result = self._call(reformat(Reformat(to, "f64")), [result])
            self._add(f"store i64 {result}, ptr {at}")

    def _added(self, bits: str, place: str) -> str:
        """Return the bits of a sum of 8-bit floats plus the accumulator."""
        start = self._load("%start", place, "double")
        narrow = self._emit(f"fptrunc double {start} to float")
        single = self._emit(f"bitcast i32 {bits} to float")
        return self._emit(
            f"bitcast float {self._call(arithmetic('add', 'f32'), [single, narrow])} to i32"
        )

    # matrices to registers

    def _give(self) -> None:
        """Emit the packing of D into the registers of the active lanes."""
        layout, to = self._product.layout, self._product.types[0]
        registers, count = self._product.registers[0], each(to)
        bits = 64 if self._product.types[1] == "f64" else 32
        self._table("table.d", _by_products(layout.d, self._products, layout.c.size))
        stored = "i64" if self._is_real else "i32"
        for register in range(registers):
            target = self._at("%frame", f"%o{register}", "i8")
            with self._loop(32) as lane:
                word = ""
                for part in range(count):
                    at = self._emit(f"add i64 {lane}, {(register * count + part) * 32}")
                    element = self._load("%d", self._index("table.d", at), stored)
                    if stored == "i64" and bits == 32:
                        element = self._emit(f"trunc i64 {element} to i32")
                    if part:
                        element = self._emit(f"shl i32 {element}, {part * width(to)}")
                        element = self._emit(f"or i32 {word}, {element}")
                    word = element
                own = self._at(target, lane, f"i{bits}")
                old = self._emit(f"load i{bits}, ptr {own}")
                on = self._emit(f"trunc i64 {self._emit(f'lshr i64 %mask, {lane}')} to i1")
                blend = self._emit(f"select i1 {on}, i{bits} {word}, i{bits} {old}")
                self._add(f"store i{bits} {blend}, ptr {own}")


def _by_products(places: NDArray[np.intp], products: int, size: int) -> NDArray[np.intp]:
    """Return places in C (rows, columns, products) as those in products of rows and columns."""
    element, number = np.divmod(places, products)
    return number * (size // products) + element
