"""Matrix products as the tensor cores of compute capability 9.0 compute them.

The rules were measured bit for bit on the hardware. One instruction aligns all products and the
accumulator to the largest exponent among them (that of a product is the sum of its factors'
exponents), truncates them 25 bits below it, adds them exactly, and truncates the sum to float32, or
rounds it to nearest as f16. It sums 8-bit floats two bytes of every four at a time (of a sparse
factor four columns of every eight), starting from zero, and adds the accumulator at the end.
`wgmma` truncates all products of 8-bit floats and the accumulator 13 bits below, and so the sum, if
it is f32. Double precision is a chain of fused multiply-adds; integers are exact. Narrow floats of
compute capability 12.0 are added at once, as ops/tile.py says.

`jit` compiles these loops for each form of a product (matrix/product.py).
"""

from ....jit.structure import I32, I64, U32, Struct
from ....jit.value import bits_of, double_of, multiply_add, truncate, unroll
from .format import FORMATS

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
    """The elements of a matrix: `width` bits above `shift` others, every `pitch` bits; signed,
    unsigned or real.

    Of a real one `fraction` bits are stored, `infinity` is one more than the largest finite number,
    and no exponent counts less than `least`.
    """

    width: int
    shift: int
    pitch: int
    kind: int
    fraction: int
    bias: int
    infinity: int
    nan: int
    least: int


class Matrix(Struct):
    """A, B or C: element `numbers[k]` of the `size` in registers is element k of `count`, product
    by product, row by row.

    Each of its `registers` holds 2 ** `places` elements; the first one is `register` of the
    instruction's. A matrix that `is_given` is not in registers; one that `is_negated` changes its
    sign.
    """

    format: Format
    numbers: I32
    size: int
    count: int
    register: int
    registers: int
    places: int
    is_given: int
    is_negated: int


class Form(Struct):
    """A form of D = A B + C: `lines` rows of A, in products of `rows` by `inner` by `columns`.

    `stage` columns of A at a time are added to the sum of the earlier ones. `d` is the element of D
    for each number of an element of its `registers`.
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
    stage: int
    kept: int
    saturates: int
    adds_last: int
    cuts_sum: int
    drops_sign: int


class Work(Struct):
    """The matrices of a warp (A in the order of its registers), the exponents of its factors, a row
    of sums, and a matrix in the order of its registers."""

    a: I64
    b: I64
    c: I64
    d: I64
    a_exponents: I64
    b_exponents: I64
    sums: I64
    elements: I64


def work_sizes(form: Form) -> dict[str, int]:
    """Return the numbers in each array of the Work of a form."""
    a, b, c = form.a.size, form.b.count, form.c.count
    sizes = {"a": a, "b": b, "c": c, "d": c, "a_exponents": a, "b_exponents": b}
    return {**sizes, "sums": form.columns, "elements": max(form.b.size, form.c.size)}


def multiply_warps(
    form: Form, words: U32, starts: I64, given: I64, mask: int, warps: int, work: Work
) -> None:
    """Multiply the matrices of some warps; a register has a row of their lanes, one warp's after
    another's."""
    lanes = 64 if form.a.format.width == 64 else 32
    for warp in range(warps):
        own = given[warp * (form.a.count + form.b.count) :]
        multiply(form, words[warp * lanes :], starts, own, mask, work)


def multiply(form: Form, words: U32, starts: I64, given: I64, mask: int, work: Work) -> None:
    """Multiply the matrices of a warp, and write D to the lanes `mask` of its registers.

    Register k, of D, A, B and C in turn, is in `words` from `starts[k]` on.
    """
    load(form.a, words, starts, given, work.a)
    load(form.b, words, starts, given[form.a.count :], work.elements)
    arrange(form.b, work.elements, work.b)
    load(form.c, words, starts, given, work.elements)
    arrange(form.c, work.elements, work.c)
    if form.arithmetic == FLOATS:
        multiply_floats(form, work)
    elif form.arithmetic == DOUBLES:
        multiply_doubles(form, work)
    else:
        multiply_integers(form, work)
    store(form, words, starts, mask, work.d)


def load(matrix: Matrix, words: U32, starts: I64, given: I64, elements: I64) -> None:
    """Load the elements of a matrix, in the order of its registers, as integers or as the bits of
    doubles."""
    form = matrix.format
    if matrix.is_given:
        for k in range(matrix.count):
            bits = given[k] >> form.shift
            elements[k] = number_of(matrix, bits & (1 << form.width) - 1)
    for slot in range(matrix.registers):
        own = words[starts[matrix.register + slot] :]
        for place in range(1 << matrix.places):
            to = elements[32 * ((slot << matrix.places) + place) :]
            shift = form.shift + place * form.pitch
            for lane in range(32):
                if form.width == 64:
                    to[lane] = own[2 * lane] | own[2 * lane + 1] << 32
                else:
                    to[lane] = number_of(matrix, own[lane] >> shift & (1 << form.width) - 1)


def arrange(matrix: Matrix, elements: I64, values: I64) -> None:
    """Put the elements of a matrix in order, row by row."""
    for k in range(matrix.count):
        values[k] = elements[matrix.numbers[k]]


def number_of(matrix: Matrix, bits: int) -> int:
    """Return an element of at most 32 bits as an integer, or as the bits of a double."""
    form = matrix.format
    if form.kind == SIGNED:
        top = 1 << form.width - 1
        return (bits ^ top) - top
    if form.kind == REAL:
        return widen(form, bits) ^ matrix.is_negated << 63
    return bits


def real_format(kind: str) -> Format:
    """Return the format of floats of at most 32 bits, alone in their words."""
    form, real = Format(), FORMATS[kind]
    form.width = form.pitch = real.bits
    form.shift, form.kind, form.least = 0, REAL, -2000
    form.fraction, form.bias = real.fraction, real.bias
    form.infinity, form.nan = real.infinity, real.nan
    return form


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
    columns = form.columns
    c, d, sums = work.c, work.d, work.sums
    for k in range(form.a.size):
        work.a_exponents[k] = exponent_of(work.a[k], form.a.format.least)
    for k in range(form.b.count):
        work.b_exponents[k] = exponent_of(work.b[k], form.b.format.least)
    for line in range(form.lines):
        own = line * columns
        for j in range(columns):
            sums[j] = 0 if form.adds_last else c[own + j]
        for first in range(0, form.inner, form.stage):
            left = line * form.inner + first
            right = (line // form.rows * form.inner + first) * columns
            for j in range(columns):
                d[own + j] = sum_of(form, work, left, right + j, sums[j])
            if form.adds_last or first + form.stage < form.inner:
                for j in range(columns):
                    sums[j] = widen(form.to, d[own + j])
        if form.adds_last:
            for j in range(columns):
                value = double_of(sums[j]) + double_of(c[own + j])
                d[own + j] = narrow(form.to, bits_of(value), 1)
        if form.drops_sign:
            for j in range(columns):
                d[own + j] = 0 if d[own + j] << 65 - form.to.width == 0 else d[own + j]


def sum_of(form: Form, work: Work, left: int, right: int, start: int) -> int:
    """Return the bits of the sum of `start` and a stage of a row of A, from `left` on, times a
    column of B, from `right` on."""
    numbers, columns = form.a.numbers, form.columns
    largest = exponent_of(start, form.c.format.least)
    for n in unroll(form.stage):
        exponent = work.a_exponents[numbers[left + n]] + work.b_exponents[right + n * columns]
        largest = max(largest, exponent)
    largest = min(max(largest, LEAST), LARGEST)
    scale = double_of(1023 + form.kept - largest << 52)
    plain = double_of(start)
    total = truncate(plain * scale)
    for n in unroll(form.stage):
        factor = double_of(work.a[numbers[left + n]])
        term = factor * double_of(work.b[right + n * columns])
        plain = plain + term
        total = total + truncate(term * scale)
    exact = bits_of(total * double_of(1023 - form.kept + largest << 52))
    if form.cuts_sum:
        exact = cut(exact, form.kept)
    is_finite = bits_of(plain) >> 52 & 0x7FF != 0x7FF
    return narrow(form.to, exact if is_finite else bits_of(plain), form.to.width == 16)


def cut(bits: int, kept: int) -> int:
    """Return a double truncated `kept` bits below its exponent."""
    exponent = max(exponent_of(bits, LEAST), LEAST)
    whole = truncate(double_of(bits) * double_of(1023 + kept - exponent << 52))
    return bits_of(whole * double_of(1023 - kept + exponent << 52))


def multiply_doubles(form: Form, work: Work) -> None:
    """Multiply doubles: a chain of fused multiply-adds."""
    columns, inner = form.columns, form.inner
    for line in range(form.lines):
        right = line // form.rows * inner * columns
        for j in range(columns):
            total = work.c[line * columns + j]
            for k in unroll(inner):
                factor = work.a[form.a.numbers[line * inner + k]]
                total = fused(factor, work.b[right + k * columns + j], total)
            work.d[line * columns + j] = total


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


def multiply_integers(form: Form, work: Work) -> None:
    """Multiply integers, or count the common or the different bits of words; wrap or clamp."""
    columns, inner = form.columns, form.inner
    for line in range(form.lines):
        right = line // form.rows * inner * columns
        for j in range(columns):
            total = work.c[line * columns + j]
            for k in unroll(inner):
                factor = work.a[form.a.numbers[line * inner + k]]
                other = work.b[right + k * columns + j]
                if form.arithmetic == AND:
                    total += (factor & other).bit_count()
                elif form.arithmetic == XOR:
                    total += (factor ^ other).bit_count()
                else:
                    total += factor * other
            if form.saturates:
                total = min(max(total, -(1 << 31)), (1 << 31) - 1)
            work.d[line * columns + j] = total


def store(form: Form, words: U32, starts: I64, mask: int, d: I64) -> None:
    """Store D to the lanes `mask` of its registers."""
    for register in range(form.registers):
        own = words[starts[register] :]
        numbers = form.d[32 * (register << form.places) :]
        for lane in range(32):
            is_on = mask >> lane & 1
            word = d[numbers[lane]]
            if form.to.width == 64:
                own[2 * lane] = word if is_on else own[2 * lane]
                own[2 * lane + 1] = word >> 32 if is_on else own[2 * lane + 1]
            else:
                if form.places:  # two f16
                    word = word | d[numbers[lane + 32]] << form.to.width
                own[lane] = word if is_on else own[lane]
