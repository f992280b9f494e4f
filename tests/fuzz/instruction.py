"""The instructions of random kernels, and what each gives, from the PTX ISA in plain Python.

A register is named by a letter and a number; the letter says what it holds: `r` 32 bits, `d` 64,
`h` 16, `f` f32, `g` f64, `p` a predicate.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from fuzz import number
from fuzz.number import Bits, mask, signed

WIDTHS: Mapping[str, int] = {"r": 32, "d": 64, "h": 16, "f": 32, "g": 64, "p": 1}


@dataclass(frozen=True)
class Form:
    """An instruction without its operands: the letters of its results and sources."""

    mnemonic: str
    result: str
    sources: str
    compute: Callable[..., Bits]


def _integers(letter: str, width: int) -> Iterator[Form]:
    """Arithmetic of one width."""
    yield from _of_sign(letter, width, "u")
    yield from _of_sign(letter, width, "s")
    ones = mask(width)
    for name, logic in _LOGIC.items():
        yield Form(f"{name}.b{width}", letter, letter * 2, logic)
    yield Form(f"not.b{width}", letter, letter, lambda a: a ^ ones)
    yield Form(f"cnot.b{width}", letter, letter, lambda a: int(a == 0))
    yield Form(f"shl.b{width}", letter, letter + "r", lambda a, n: a << min(n, width) & ones)
    yield Form(f"abs.s{width}", letter, letter, lambda a: abs(signed(a, width)) & ones)
    yield Form(f"neg.s{width}", letter, letter, lambda a: -a & ones)
    yield Form(f"selp.b{width}", letter, letter * 2 + "p", lambda a, b, p: a if p else b)
    yield Form(
        f"slct.b{width}.s32", letter, letter * 2 + "r", lambda a, b, c: a if c < 1 << 31 else b
    )


def _of_sign(letter: str, width: int, sign: str) -> Iterator[Form]:
    """Arithmetic that tells signed from unsigned."""
    ones = mask(width)

    def value(bits: Bits) -> int:
        return signed(bits, width) if sign == "s" else bits

    def two(name: str, compute: Callable[[int, int], int]) -> Form:
        def apply(a: Bits, b: Bits) -> Bits:
            return compute(value(a), value(b)) & ones

        return Form(f"{name}.{sign}{width}", letter, letter * 2, apply)

    def quotient(a: int, b: int) -> int:
        found = number.divide(a, b)
        return ones if found is None else found[0]

    def remainder(a: int, b: int) -> int:
        found = number.divide(a, b)
        return ones if found is None else found[1]

    def sad(a: Bits, b: Bits, c: Bits) -> Bits:
        return abs(value(a) - value(b)) + c & ones

    def shift_right(a: Bits, n: Bits) -> Bits:
        return value(a) >> min(n, width) & ones

    yield two("add", lambda a, b: a + b)
    yield two("sub", lambda a, b: a - b)
    yield two("mul.lo", lambda a, b: a * b)
    yield two("mul.hi", lambda a, b: a * b >> width)
    yield two("min", min)
    yield two("max", max)
    yield two("div", quotient)
    yield two("rem", remainder)
    yield Form(f"sad.{sign}{width}", letter, letter * 3, sad)
    yield Form(f"mad.lo.{sign}{width}", letter, letter * 3, lambda a, b, c: a * b + c & ones)
    yield Form(f"shr.{sign}{width}", letter, letter + "r", shift_right)


_LOGIC: Mapping[str, Callable[[Bits, Bits], Bits]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def _bit_fields(letter: str, width: int) -> Iterator[Form]:
    """Instructions of 32 and 64 bits only."""
    ones = mask(width)

    def extract(a: Bits, start: Bits, length: Bits, sign: bool) -> Bits:
        start, length = start & 255, length & 255
        top = min(start + length, width) - 1
        fill = a >> top & 1 if sign and length else 0
        taken = [a >> start + k & 1 if start + k < width else fill for k in range(length)]
        bits = sum(bit << k for k, bit in enumerate(taken[:width]))
        return bits | fill * (ones << min(length, width) & ones)

    def insert(a: Bits, b: Bits, start: Bits, length: Bits) -> Bits:
        start, length = start & 255, length & 255
        field = mask(length) << start & ones
        return b & ~field & ones | (a << start & field)

    def reverse(a: Bits) -> Bits:
        return int(f"{a:0{width}b}"[::-1], 2)

    if width == 32:  # of 64 bits the ISA leaves fields beyond 255 open
        for sign in "us":
            yield Form(
                f"bfe.{sign}32",
                "r",
                "rrr",
                lambda a, b, c, sign=sign: extract(a, b, c, sign == "s"),
            )
        yield Form("bfi.b32", "r", "rrrr", insert)
    yield Form(f"brev.b{width}", letter, letter, reverse)
    yield Form(f"popc.b{width}", "r", letter, lambda a: a.bit_count())
    yield Form(f"clz.b{width}", "r", letter, lambda a: width - a.bit_length())
    yield Form(f"bfind.u{width}", "r", letter, lambda a: (a.bit_length() - 1) & mask(32))


def _words() -> Iterator[Form]:
    """Instructions of 32 bits only."""
    for table in (0x96, 0xE8, 0x1B):

        def logic(a: Bits, b: Bits, c: Bits, table: int = table) -> Bits:
            index = [(a >> k & 1) << 2 | (b >> k & 1) << 1 | c >> k & 1 for k in range(32)]
            return sum((table >> i & 1) << k for k, i in enumerate(index))

        yield Form(f"lop3.b32 {table:#x}", "r", "rrr", logic)

    def permute(a: Bits, b: Bits, c: Bits) -> Bits:
        octets = (a | b << 32).to_bytes(8, "little")
        chosen = [c >> 4 * k & 15 for k in range(4)]
        taken = [octets[n & 7] for n in chosen]
        signs = [
            0xFF * (octet >> 7) if n & 8 else octet for n, octet in zip(chosen, taken, strict=True)
        ]
        return int.from_bytes(bytes(signs), "little")

    def funnel(a: Bits, b: Bits, n: Bits, left: bool, wrap: bool) -> Bits:
        n = n & 31 if wrap else min(n, 32)
        both = a | b << 32
        return (both << n >> 32 if left else both >> n) & mask(32)

    yield Form("prmt.b32", "r", "rrr", permute)
    for way in "lr":
        for mode in ("wrap", "clamp"):
            yield Form(
                f"shf.{way}.{mode}.b32", "r", "rrr",
                lambda a, b, n, w=way, m=mode: funnel(a, b, n, w == "l", m == "wrap"),
            )  # fmt: skip
    for sign in "us":
        yield Form(
            f"mul.wide.{sign}32", "d", "rr",
            lambda a, b, s=sign: (signed(a, 32) * signed(b, 32) if s == "s" else a * b) & mask(64),
        )  # fmt: skip
        yield Form(
            f"mul.wide.{sign}16", "r", "hh",
            lambda a, b, s=sign: (signed(a, 16) * signed(b, 16) if s == "s" else a * b) & mask(32),
        )  # fmt: skip


def _floats(letter: str, width: int) -> Iterator[Form]:
    kind, top = f"f{width}", 1 << width - 1

    def with_sign(bits: Bits, sign: Bits) -> Bits:
        if number.is_nan(bits, width):
            return number.no_number((bits,), width)
        return bits & ~top | sign

    yield Form(f"add.rn.{kind}", letter, letter * 2, lambda a, b: number.add(a, b, width))
    yield Form(f"sub.rn.{kind}", letter, letter * 2, lambda a, b: _difference(a, b, width))
    yield Form(f"mul.rn.{kind}", letter, letter * 2, lambda a, b: number.multiply(a, b, width))
    yield Form(f"fma.rn.{kind}", letter, letter * 3, lambda a, b, c: number.fuse(a, b, c, width))
    yield Form(f"min.{kind}", letter, letter * 2, lambda a, b: number.pick(a, b, True, width))
    yield Form(f"max.{kind}", letter, letter * 2, lambda a, b: number.pick(a, b, False, width))
    yield Form(f"abs.{kind}", letter, letter, lambda a: with_sign(a, 0))
    yield Form(f"neg.{kind}", letter, letter, lambda a: with_sign(a, ~a & top))
    yield Form(f"selp.{kind}", letter, letter * 2 + "p", lambda a, b, p: a if p else b)


def _difference(a: Bits, b: Bits, width: int) -> Bits:
    top = 1 << width - 1
    if number.is_nan(b, width):
        return number.no_number((a, b), width)
    return number.add(a, b ^ top, width)


def _conversions() -> Iterator[Form]:
    narrow = {"h": 16, "r": 32, "d": 64}
    for to, to_width in narrow.items():
        for source, width in narrow.items():
            for sign in "us":

                def convert(a: Bits, s: str = sign, w: int = width, t: int = to_width) -> Bits:
                    return (signed(a, w) if s == "s" else a) & mask(t)

                yield Form(f"cvt.{sign}{to_width}.{sign}{width}", to, source, convert)
    for letter, float_width in (("f", 32), ("g", 64)):
        for source, width in (("r", 32), ("d", 64)):
            for sign in "us":

                def to_float(a: Bits, s: str = sign, w: int = width, t: int = float_width) -> Bits:
                    exact = signed(a, w) if s == "s" else a
                    return number.rounded(Fraction(exact), False, t)

                def from_float(
                    a: Bits, s: str = sign, w: int = width, t: int = float_width
                ) -> Bits:
                    return number.whole(a, t, w, s == "s")

                yield Form(f"cvt.rn.f{float_width}.{sign}{width}", letter, source, to_float)
                yield Form(f"cvt.rzi.{sign}{width}.f{float_width}", source, letter, from_float)


_ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _comparisons() -> Iterator[Form]:
    for letter, width in (("h", 16), ("r", 32), ("d", 64)):
        for sign in "us":
            for name, order in _ORDERS.items():

                def compare(
                    a: Bits, b: Bits, o: Callable[[float, float], bool] = order,
                    s: str = sign, w: int = width,
                ) -> Bits:  # fmt: skip
                    return int(o(signed(a, w), signed(b, w)) if s == "s" else o(a, b))

                yield Form(f"setp.{name}.{sign}{width}", "p", letter * 2, compare)
    for letter, width in (("f", 32), ("g", 64)):
        for name, order in _ORDERS.items():
            for loose in (False, True):

                def compare_floats(
                    a: Bits, b: Bits, o: Callable[[float, float], bool] = order,
                    u: bool = loose, w: int = width,
                ) -> Bits:  # fmt: skip
                    if number.is_nan(a, w) or number.is_nan(b, w):
                        return int(u)
                    return int(o(number.to_float(a, w), number.to_float(b, w)))

                suffix = "u" if loose else ""
                yield Form(f"setp.{name}{suffix}.f{width}", "p", letter * 2, compare_floats)


def _predicates() -> Iterator[Form]:
    for name, logic in _LOGIC.items():
        yield Form(f"{name}.pred", "p", "pp", logic)
    yield Form("not.pred", "p", "p", lambda a: a ^ 1)


def _moves() -> Iterator[Form]:
    for letter, other, width in (("r", "f", 32), ("d", "g", 64)):
        yield Form(f"mov.b{width}", letter, other, lambda a: a)
        yield Form(f"mov.b{width}", other, letter, lambda a: a)


def forms() -> tuple[Form, ...]:
    """Every instruction."""
    return (
        *_integers("r", 32), *_integers("d", 64), *_integers("h", 16),
        *_bit_fields("r", 32), *_bit_fields("d", 64), *_words(),
        *_floats("f", 32), *_floats("g", 64), *_conversions(),
        *_comparisons(), *_predicates(), *_moves(),
    )  # fmt: skip


FORMS = forms()
