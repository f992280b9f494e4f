"""Matrix products as the tensor cores of compute capability 9.0 compute them.

The rules were measured bit for bit on the hardware. One instruction aligns all products and the
accumulator to the largest exponent among them (that of a product is the sum of its factors'
exponents), truncates them 25 bits below it, adds them exactly, and truncates the sum to float32, or
rounds it to nearest as f16. It sums 8-bit floats two bytes of every four at a time (of a sparse
factor four columns of every eight), starting from zero, and adds the accumulator at the end.
`wgmma` truncates all products of 8-bit floats and the accumulator 13 bits below, and so the sum, if
it is f32. Double precision is a chain of fused multiply-adds; integers are exact.

`jit` compiles these loops: `multiply_warps` for the interpreter, `multiply` for machine code, which
calls it with the registers of one warp.
"""

from ....jit.structure import I32, I64, U32, Struct
from ....jit.value import bits_of, double_of, multiply_add, truncate

FLOATS, DOUBLES, INTEGERS, AND, XOR = range(5)
SIGNED, UNSIGNED, REAL = range(3)

KEPT_BITS = 25
"""Bits below the largest exponent that a sum keeps."""

OCTET_BITS = 13
"""The same for a sum of `wgmma` over 8-bit floats."""

NOTHING = -4096
"""The exponent of zero."""

LEAST, LARGEST = -900, 1000
"""Bounds of the exponents that scale a sum: no number has a larger one, and sums of zeros have the
least."""

INFINITY = 0x7FF << 52


class Format(Struct):
    """The elements of a matrix: `width` bits above `shift` others, signed, unsigned or real.

    Of a real one `fraction` bits are stored, `infinity` is one more than the largest finite number,
    and no exponent counts less than `least`.
    """

    width: int
    shift: int
    kind: int
    fraction: int
    bias: int
    infinity: int
    nan: int
    least: int


class Matrix(Struct):
    """A, B or C: element `numbers[k]` of the registers is element k, product by product, row by
    row.

    A register holds 2 ** `places` elements; the first one is `register` of the instruction's.
    `is_given` is true for a matrix that is not in registers, `is_negated` for one whose sign
    changes.
    """

    format: Format
    numbers: I32
    count: int
    register: int
    places: int
    is_given: int
    is_negated: int


class Form(Struct):
    """A form of D = A B + C: `lines` rows of A, in products of `rows` by `inner` by `columns`.

    `order` are the columns of A as they are added, `stage` of them at a time to the sum of the
    earlier ones. `d` is the element of D for each number of an element of its `registers`.
    """

    a: Matrix
    b: Matrix
    c: Matrix
    to: Format
    d: I32
    registers: int
    places: int
    arithmetic: int
    lines: int
    rows: int
    inner: int
    columns: int
    order: I32
    stage: int
    kept: int
    saturates: int
    adds_last: int
    cuts_sum: int
    drops_sign: int


class Work(Struct):
    """The matrices of a warp, exponents of the factors, and a row of the sums."""

    a: I64
    b: I64
    c: I64
    d: I64
    a_exponents: I64
    b_exponents: I64
    largest: I64
    scale: I64
    total: I64
    plain: I64
    sums: I64


def work_sizes(form: Form) -> dict[str, int]:
    """Return the numbers in each array of the Work of a form."""
    a, b, c = form.a.count, form.b.count, form.c.count
    sizes = {"a": a, "b": b, "c": c, "d": c, "a_exponents": a, "b_exponents": b}
    return sizes | dict.fromkeys(("largest", "scale", "total", "plain", "sums"), form.columns)


def multiply_warps(form: Form, warps: int, words: U32, starts: I64, given: I64, work: Work) -> None:
    """Multiply the matrices of some warps; a register has a row of their lanes."""
    lanes = 64 if form.a.format.width == 64 else 32
    for warp in range(warps):
        own = given[warp * (form.a.count + form.b.count) :]
        multiply(form, words[warp * lanes :], starts, own, -1, work)


def multiply(form: Form, words: U32, starts: I64, given: I64, mask: int, work: Work) -> None:
    """Multiply the matrices of a warp, and write D to the lanes `mask` of its registers.

    Register k, of D, A, B and C in turn, is in `words` from `starts[k]` on.
    """
    load(form.a, words, starts, given, work.a)
    load(form.b, words, starts, given[form.a.count :], work.b)
    load(form.c, words, starts, given, work.c)
    if form.arithmetic == FLOATS:
        multiply_floats(form, work)
    elif form.arithmetic == DOUBLES:
        multiply_doubles(form, work.a, work.b, work.c, work.d)
    else:
        multiply_integers(form, work.a, work.b, work.c, work.d)
    store(form, words, starts, mask, work.d)


def load(matrix: Matrix, words: U32, starts: I64, given: I64, values: I64) -> None:
    """Load a matrix as integers, or as the bits of doubles."""
    form = matrix.format
    for k in range(matrix.count):
        if matrix.is_given:
            values[k] = given[k] >> form.shift
            continue
        number = matrix.numbers[k]
        lane, slot = number & 31, number >> 5
        if form.width == 64:
            at = starts[matrix.register + slot] + 2 * lane
            values[k] = words[at] | words[at + 1] << 32
        else:
            word = words[starts[matrix.register + (slot >> matrix.places)] + lane]
            place = slot & ((1 << matrix.places) - 1)
            values[k] = word >> form.shift + place * form.width & (1 << form.width) - 1
    if form.kind == SIGNED:
        top = 1 << form.width - 1
        for k in range(matrix.count):
            values[k] = (values[k] ^ top) - top
    elif form.kind == REAL and form.width < 64:
        for k in range(matrix.count):
            values[k] = widen(form, values[k]) ^ matrix.is_negated << 63


def widen(form: Format, bits: int) -> int:
    """Return a number of a format as the bits of a double."""
    sign = 1 << form.width - 1
    magnitude = bits & sign - 1
    # As the fraction of a double it is too small by the ratio of the two formats' scales.
    value = double_of(magnitude << 52 - form.fraction) * double_of(2046 - form.bias << 52)
    wide = bits_of(value)
    if magnitude >= form.infinity:
        wide = INFINITY
        if magnitude > form.infinity or form.infinity == form.nan:
            wide = INFINITY | 1
    return wide | (bits & sign) << 64 - form.width


def narrow(form: Format, bits: int, is_nearest: int) -> int:
    """Return a double as the bits of a format: rounded to the nearest or to zero, but to infinity
    beyond the largest number."""
    magnitude = bits & (1 << 63) - 1
    exponent = (magnitude >> 52) - 1023 + form.bias
    drop = 52 - form.fraction
    if exponent < 1:
        drop = drop + min(1 - exponent, 54 - drop)
        exponent = 1
    digits = magnitude & (1 << 52) - 1 | 1 << 52
    number = digits >> drop
    rest = digits & (1 << drop) - 1
    half = 1 << drop - 1
    if is_nearest and (rest > half or (rest == half and number & 1)):
        number = number + 1
    number = min(number + (exponent - 1 << form.fraction), form.infinity)
    if magnitude > INFINITY:
        return form.nan
    return number | (bits >> 63 & 1) << form.width - 1


def exponent_of(bits: int, least: int) -> int:
    """Return the exponent of a double, at least `least`; that of zero is NOTHING."""
    exponent = max((bits >> 52 & 0x7FF) - 1023, least)
    return NOTHING if bits << 1 == 0 else exponent


def multiply_floats(form: Form, work: Work) -> None:
    """Multiply floats: exact sums of truncated products, stage by stage."""
    columns, inner = form.columns, form.inner
    a, b, c, d, sums = work.a, work.b, work.c, work.d, work.sums
    a_exponents, b_exponents, largest = work.a_exponents, work.b_exponents, work.largest
    scale, total, plain = work.scale, work.total, work.plain
    for k in range(form.a.count):
        a_exponents[k] = exponent_of(a[k], form.a.format.least)
    for k in range(form.b.count):
        b_exponents[k] = exponent_of(b[k], form.b.format.least)
    for line in range(form.lines):
        left = line * inner
        right = line // form.rows * inner * columns
        own = line * columns
        for j in range(columns):
            sums[j] = 0 if form.adds_last else c[own + j]
        for first in range(0, inner, form.stage):
            for j in range(columns):
                largest[j] = exponent_of(sums[j], form.c.format.least)
            for n in range(first, first + form.stage):
                exponent = a_exponents[left + form.order[n]]
                row = right + form.order[n] * columns
                for j in range(columns):
                    largest[j] = max(largest[j], exponent + b_exponents[row + j])
            for j in range(columns):
                largest[j] = min(max(largest[j], LEAST), LARGEST)
                scale[j] = 1023 + form.kept - largest[j] << 52
                plain[j] = sums[j]
                total[j] = bits_of(truncate(double_of(sums[j]) * double_of(scale[j])))
            for n in range(first, first + form.stage):
                factor = double_of(a[left + form.order[n]])
                row = right + form.order[n] * columns
                for j in range(columns):
                    term = factor * double_of(b[row + j])
                    plain[j] = bits_of(double_of(plain[j]) + term)
                    whole = truncate(term * double_of(scale[j]))
                    total[j] = bits_of(double_of(total[j]) + whole)
            for j in range(columns):
                back = double_of(1023 - form.kept + largest[j] << 52)
                exact = bits_of(double_of(total[j]) * back)
                if form.cuts_sum:
                    exact = cut(exact, form.kept)
                is_finite = plain[j] >> 52 & 0x7FF != 0x7FF
                d[own + j] = narrow(form.to, exact if is_finite else plain[j], form.to.width == 16)
            if form.adds_last or first + form.stage < inner:
                for j in range(columns):
                    sums[j] = widen(form.to, d[own + j])
        if form.adds_last:
            for j in range(columns):
                value = double_of(sums[j]) + double_of(c[own + j])
                d[own + j] = narrow(form.to, bits_of(value), 1)
        if form.drops_sign:
            for j in range(columns):
                d[own + j] = 0 if d[own + j] << 65 - form.to.width == 0 else d[own + j]


def cut(bits: int, kept: int) -> int:
    """Return a double truncated `kept` bits below its exponent."""
    exponent = max(exponent_of(bits, LEAST), LEAST)
    whole = truncate(double_of(bits) * double_of(1023 + kept - exponent << 52))
    return bits_of(whole * double_of(1023 - kept + exponent << 52))


def multiply_doubles(form: Form, a: I64, b: I64, c: I64, d: I64) -> None:
    """Multiply doubles: a chain of fused multiply-adds."""
    columns, inner = form.columns, form.inner
    for line in range(form.lines):
        right = line // form.rows * inner * columns
        for j in range(columns):
            total = c[line * columns + j]
            for k in range(inner):
                total = fused(a[line * inner + k], b[right + k * columns + j], total)
            d[line * columns + j] = total


def fused(a: int, b: int, c: int) -> int:
    """Return a * b + c of doubles. Of several NaNs the second factor's payload is kept, then the
    summand's, then the first factor's, whichever the host would keep."""
    total = bits_of(multiply_add(double_of(a), double_of(b), double_of(c)))
    if not is_nan(total):
        return total
    if is_nan(b):
        return b | 1 << 51
    if is_nan(c):
        return c | 1 << 51
    return a | 1 << 51 if is_nan(a) else -1 << 51


def is_nan(bits: int) -> int:
    """Return whether a double is no number."""
    return bits & (1 << 63) - 1 > INFINITY


def multiply_integers(form: Form, a: I64, b: I64, c: I64, d: I64) -> None:
    """Multiply integers, or count the common or the different bits of words; wrap or clamp."""
    columns, inner = form.columns, form.inner
    for line in range(form.lines):
        right = line // form.rows * inner * columns
        own = line * columns
        for j in range(columns):
            d[own + j] = c[own + j]
        for k in range(inner):
            factor = a[line * inner + k]
            row = right + k * columns
            for j in range(columns):
                if form.arithmetic == AND:
                    d[own + j] += (factor & b[row + j]).bit_count()
                elif form.arithmetic == XOR:
                    d[own + j] += (factor ^ b[row + j]).bit_count()
                else:
                    d[own + j] += factor * b[row + j]
        if form.saturates:
            for j in range(columns):
                d[own + j] = min(max(d[own + j], -(1 << 31)), (1 << 31) - 1)


def store(form: Form, words: U32, starts: I64, mask: int, d: I64) -> None:
    """Store D to the lanes `mask` of its registers."""
    for register in range(form.registers):
        for lane in range(32):
            if mask >> lane & 1:
                number = (register << form.places) * 32 + lane
                word = d[form.d[number]]
                at = starts[register] + lane
                if form.to.width == 64:
                    words[at + lane] = word
                    words[at + lane + 1] = word >> 32
                else:
                    if form.places:  # two f16
                        word = word | d[form.d[number + 32]] << form.to.width
                    words[at] = word
