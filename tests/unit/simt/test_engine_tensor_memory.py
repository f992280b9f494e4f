"""`tcgen05`: tensor memory and its products, against layouts and sums written out here."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from narrow_floats import product_terms, sum_of, value
from numpy.typing import NDArray
from ptx.ptx_run import Rows, run_kernel
from tensor_memory import (
    COLUMNS,
    TEXT,
    arrivals_at_the_first,
    chunks,
    descriptor,
    empty,
    instruction_descriptor,
    of_chunks,
    run,
    text_of,
)

from cutrace.base.errors import KernelFault
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.simt.decode.load_module import load_module
from cutrace.tracer.simt.kernel.launch import Launch
from cutrace.tracer.simt.memory.memory import Memory
from cutrace.tracer.simt.ptx_code import PtxCode
from cutrace.tracer.simt.run import run as run_launch

RNG = np.random.default_rng(5)


def halves(rows: int, k: int = 16) -> NDArray[np.float16]:
    """Small whole numbers, whose sums are exact."""
    return RNG.integers(-8, 9, (rows, k)).astype(np.float16)


def singles(tensor: NDArray[np.uint32], columns: int) -> NDArray[np.float32]:
    return np.ascontiguousarray(tensor[:, :columns]).view(np.float32)


def numbers(matrix: NDArray[Any]) -> NDArray[np.uint32]:
    """A matrix of f32 in the first columns of tensor memory."""
    out = empty()
    out[: len(matrix), : matrix.shape[1]] = matrix.astype(np.float32).view(np.uint32)
    return out


F16 = "tcgen05.mma.cta_group::1.kind::f16 [%ta], %da, %db, %w0, "


def test_f16_is_added_to_what_is_there() -> None:
    a, b, d = halves(128), halves(16), RNG.integers(-9, 9, (128, 16))
    image = np.concatenate([chunks(a), chunks(b)])
    where = of_chunks(0, 128), of_chunks(4096, 16)
    words = [instruction_descriptor(128, 16, 1, 0, 0)]
    whole = a.astype(float) @ b.astype(float).T
    found = run(F16 + "%yes", image, where, words, numbers(d))
    assert singles(found, 16).tolist() == (whole + d).tolist()
    found = run(F16 + "%no", image, where, words, numbers(d))
    assert singles(found, 16).tolist() == whole.tolist()
    found = run(F16 + "%yes, 3", image, where, words, numbers(d))
    assert singles(found, 16).tolist() == (whole + d / 8).tolist()
    found = run(
        F16.replace("%w0, ", "%w0, {%w1, %w2, %w3, %w4}, ") + "%no", image, where,
        [*words, 1, 0, 0, 1 << 31], numbers(d),
    )  # fmt: skip
    whole[[0, 127]] = d[[0, 127]]
    assert singles(found, 16).tolist() == whole.tolist()


def test_machine_code_has_the_array_engine_multiply() -> None:
    a, b = halves(128), halves(16)
    image = np.concatenate([chunks(a), chunks(b)])
    where = of_chunks(0, 128), of_chunks(4096, 16)
    words = [instruction_descriptor(128, 16, 1, 0, 0)]
    found = run(F16 + "%no", image, where, words, empty(), "compiled")
    assert singles(found, 16).tolist() == (a.astype(float) @ b.astype(float).T).tolist()


def test_signs_change_and_results_are_halves() -> None:
    a, b = halves(128), halves(16)
    image = np.concatenate([chunks(a), chunks(b)])
    where = of_chunks(0, 128), of_chunks(4096, 16)
    words = [instruction_descriptor(128, 16, 0, 0, 0, 1 << 13)]  # D f16, A negated
    found = run(F16 + "%no", image, where, words, empty())[:, :16]
    wanted = -(a.astype(float) @ b.astype(float).T)
    assert found.astype(np.uint16).view(np.float16).tolist() == wanted.tolist()
    assert (found >> 16 == 0).all()


@pytest.mark.parametrize(("swizzle", "width"), [(2, 128), (4, 64), (6, 32)])
def test_swizzled_rows(swizzle: int, width: int) -> None:
    # A row of 32 bytes is the start of one of `width`; chunk c of row r is at c ^ a part of r.
    a, b = halves(128), halves(16)
    image = np.zeros(32768, np.uint8)
    for start, matrix in ((0, a), (16384, b)):
        octets = matrix.view(np.uint8)
        for row in range(len(matrix)):
            for chunk in range(2):
                at = start + row * width + 16 * chunk
                at ^= (at >> 7 & width // 16 - 1) << 4
                image[at : at + 16] = octets[row, 16 * chunk : 16 * chunk + 16]
    where = tuple(descriptor(start, 16, 8 * width, swizzle) for start in (0, 16384))
    words = [instruction_descriptor(128, 16, 1, 0, 0)]
    found = run(F16 + "%no", image, (where[0], where[1]), words, empty())
    assert singles(found, 16).tolist() == (a.astype(float) @ b.astype(float).T).tolist()


def test_columns_first() -> None:
    # Transposed without swizzle: 8 values of K of 16 bytes (8 rows) are 128 bytes, the next 8 rows
    # 128 bytes on, the next 8 values of K after all rows.
    a, b = halves(128), halves(16)
    image = np.zeros(8192, np.uint8)
    for start, matrix in ((0, a), (4096, b)):
        rows = len(matrix)
        for row in range(rows):
            for k in range(16):
                at = start + row // 8 * 128 + k % 8 * 16 + row % 8 * 2 + k // 8 * rows * 16
                image[at : at + 2] = matrix[row, k : k + 1].view(np.uint8)
    where = descriptor(0, 128 * 16, 128), descriptor(4096, 16 * 16, 128)
    words = [instruction_descriptor(128, 16, 1, 0, 0, 3 << 15)]
    found = run(F16 + "%no", image, where, words, empty())
    assert singles(found, 16).tolist() == (a.astype(float) @ b.astype(float).T).tolist()


def test_64_rows_have_half_of_the_lanes() -> None:
    a, b = halves(64), halves(24)
    image = np.concatenate([chunks(a), chunks(b)])
    where = of_chunks(0, 64), of_chunks(2048, 24)
    words = [instruction_descriptor(64, 24, 1, 0, 0)]
    upper = F16.replace("[%ta]", "[%ta+1048576]") + "%no"  # from lane 16 on
    found = singles(run(upper, image, where, words, empty()), 24)
    row = np.arange(64)
    wanted = np.zeros((128, 24))
    wanted[row % 16 + 32 * (row // 16) + 16] = a.astype(float) @ b.astype(float).T
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("rows", [32, 64])
def test_with_ws_columns_are_split_among_lanes(rows: int) -> None:
    a, b = halves(rows), halves(64)
    image = np.concatenate([chunks(a), chunks(b)])
    where = of_chunks(0, rows), of_chunks(32 * rows, 64)
    words = [instruction_descriptor(rows, 64, 1, 0, 0)]
    form = "tcgen05.mma.ws.cta_group::1.kind::f16.collector::b0::discard [%ta], %da, %db, %w0, %no"
    found = run(form, image, where, words, empty())
    whole = a.astype(float) @ b.astype(float).T
    wanted = np.concatenate(np.split(whole, 128 // rows, axis=1))
    assert singles(found, 64 * rows // 128).tolist() == wanted.tolist()


def test_a_factor_in_tensor_memory() -> None:
    a, b = halves(128), halves(16)
    before = empty()
    before[:, 40:48] = a.view(np.uint32)
    words = [instruction_descriptor(128, 16, 1, 0, 0)]
    form = F16.replace("%da", "[%ta+40]")
    found = run(form + "%no", chunks(b), (0, of_chunks(0, 16)), words, before)
    assert singles(found, 16).tolist() == (a.astype(float) @ b.astype(float).T).tolist()
    shifted = form.replace("f16", "f16.ashift.collector::a::lastuse", 1)
    found = run(shifted + "%no", chunks(b), (0, of_chunks(0, 16)), words, before)
    rows = [*range(1, 128), 127]
    assert singles(found, 16).tolist() == (a[rows].astype(float) @ b.astype(float).T).tolist()


def test_a_sum_is_cut_off_25_bits_below_the_largest_exponent() -> None:
    a = (RNG.standard_normal((128, 16)) * 2.0 ** RNG.integers(-12, 9, (128, 16))).astype(np.float16)
    b = (RNG.standard_normal((16, 16)) * 2.0 ** RNG.integers(-12, 9, (16, 16))).astype(np.float16)
    d = RNG.standard_normal((128, 16)).astype(np.float32)
    image = np.concatenate([chunks(a), chunks(b)])
    words = [instruction_descriptor(128, 16, 1, 0, 0)]
    found = run(F16 + "%yes", image, (of_chunks(0, 128), of_chunks(4096, 16)), words, numbers(d))
    for row in range(0, 128, 5):
        for column in range(16):
            terms = []
            for x, y in zip(a[row], b[column], strict=True):
                x, y = Fraction(float(x)), Fraction(float(y))
                exponent = int(np.frexp(float(x))[1] + np.frexp(float(y))[1]) - 2
                terms.append((x * y, exponent))
            assert singles(found, 16)[row, column] == sum_of(terms, d[row, column], 25)


def test_tf32_and_integers() -> None:
    a, b = (RNG.integers(-64, 65, (rows, 8)).astype(np.float32) for rows in (128, 16))
    image = np.concatenate([chunks(a), chunks(b)])
    where = of_chunks(0, 128), of_chunks(4096, 16)
    form = "tcgen05.mma.cta_group::1.kind::tf32 [%ta], %da, %db, %w0, %no"
    found = run(form, image, where, [instruction_descriptor(128, 16, 1, 2, 2)], empty())
    assert singles(found, 16).tolist() == (a.astype(float) @ b.astype(float).T).tolist()
    c = RNG.integers(-128, 128, (128, 32)).astype(np.int8)
    e = RNG.integers(0, 256, (16, 32)).astype(np.uint8)
    image = np.concatenate([chunks(c), chunks(e)])
    form = "tcgen05.mma.cta_group::1.kind::i8 [%ta], %da, %db, %w0, %yes"
    before = empty()
    before[:, :16] = 0x7FFFFFF0
    found = run(form, image, where, [instruction_descriptor(128, 16, 2, 1, 0, 1 << 3)], before)
    total = c.astype(np.int64) @ e.astype(np.int64).T + 0x7FFFFFF0
    wanted = np.minimum(total, 0x7FFFFFFF)  # saturated
    assert found[:, :16].view(np.int32).tolist() == wanted.tolist()


def narrow_image(codes: NDArray[np.int64], bits: int) -> NDArray[np.uint8]:
    """Rows of 32 numbers: 16 of them packed at the start of 16 bytes."""
    rows = []
    for row in codes:
        for half in (row[:16], row[16:]):
            word = sum(int(code) << bits * k for k, code in enumerate(half))
            rows.append(list(word.to_bytes(16, "little")))
    return chunks(np.array(rows, np.uint8).reshape(len(codes), 32))


@pytest.mark.parametrize(
    ("kinds", "types", "bits"),
    [(("e2m1", "e3m2"), (5, 4), (4, 6)), (("e2m3", "e4m3"), (3, 0), (6, 8))],
)
def test_narrow_floats_are_packed_in_chunks(
    kinds: tuple[str, str], types: tuple[int, int], bits: tuple[int, int]
) -> None:
    a, b = RNG.integers(0, 1 << bits[0], (128, 32)), RNG.integers(0, 1 << bits[1], (16, 32))
    b[b & 0x7F == 0x7F] = 0  # no NaN of e4m3
    image = np.concatenate([narrow_image(a, bits[0]), narrow_image(b, bits[1])])
    form = "tcgen05.mma.cta_group::1.kind::f8f6f4 [%ta], %da, %db, %w0, %no"
    words = [instruction_descriptor(128, 16, 1, *types)]
    found = run(form, image, (of_chunks(0, 128), of_chunks(4096, 16)), words, empty())
    for row in range(0, 128, 9):
        for column in range(16):
            terms = product_terms(kinds, a[row], b[column])
            assert singles(found, 16)[row, column] == sum_of(terms, np.float32(0), 25)


def scaled_descriptor(n: int, a: int, b: int, ue8m0: int, places: tuple[int, int]) -> int:
    """An instruction descriptor with scales: the places of A's and B's scales in their words."""
    return (
        a << 7 | b << 10 | n // 8 << 17 | ue8m0 << 23 | 8 << 24 | places[0] << 29 | places[1] << 4
    )


def test_scales_of_8_bit_floats_lie_in_tensor_memory() -> None:
    codes = RNG.integers(0, 0x77, (128 + 48, 32)).astype(np.uint8)
    a, b = codes[:128], codes[128:]
    of_a, of_b = RNG.integers(120, 134, 128), RNG.integers(120, 134, 48)
    before = RNG.integers(0, 1 << 32, (128, COLUMNS), dtype=np.uint32)
    octets = before.view(np.uint8).reshape(128, COLUMNS, 4)
    for m in range(128):
        octets[m % 32, 56 + m // 32, 2] = of_a[m]  # byte 2 of columns 56 to 59
    for n in range(48):
        octets[n % 32, 60 + n // 32, 1] = of_b[n]
    words = [scaled_descriptor(48, 0, 0, 1, (2, 1))]
    form = (
        "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X"
        " [%ta], %da, %db, %w0, [%ta+56], [%ta+60], %no"
    )
    image = np.concatenate([chunks(a), chunks(b)])
    found = run(form, image, (of_chunks(0, 128), of_chunks(4096, 48)), words, before)
    for m in range(0, 128, 7):
        for n in range(0, 48, 5):
            scale = Fraction(2) ** int(of_a[m] + of_b[n] - 254)
            terms = product_terms(("e4m3", "e4m3"), a[m], b[n], scale)
            assert singles(found, 48)[m, n] == sum_of(terms, np.float32(0), 25)


@pytest.mark.parametrize(
    ("kind", "vector"), [("mxf4", "2X"), ("mxf4nvf4", "4X"), ("mxf4nvf4", "2X")]
)
def test_scales_of_4_bit_floats(kind: str, vector: str) -> None:
    count, ue8m0 = int(vector[0]), int(vector == "2X")
    codes = RNG.integers(0, 16, (128 + 16, 64))
    octets_of = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    a, b = codes[:128], codes[128:]
    low, high = (122, 132) if ue8m0 else (8, 0x77)
    scales = RNG.integers(low, high, (144, count))
    before = empty()
    octets = before.view(np.uint8).reshape(128, COLUMNS, 4)
    first = 2 if count == 2 else 0
    for m in range(128):
        octets[m % 32, 56 + m // 32, first : first + count] = scales[m]
    for n in range(16):
        octets[n % 32, 60, first : first + count] = scales[128 + n]
    words = [scaled_descriptor(16, 1, 1, ue8m0, (first, first))]
    form = (
        f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale.scale_vec::{vector}"
        " [%ta], %da, %db, %w0, [%ta+56], [%ta+60], %no"
    )
    image = np.concatenate([chunks(octets_of[:128]), chunks(octets_of[128:])])
    found = run(form, image, (of_chunks(0, 128), of_chunks(4096, 16)), words, before)

    def number(code: int) -> tuple[Fraction, int]:
        if ue8m0:
            return Fraction(2) ** (code - 127), code - 127
        return value("e4m3", code), (code >> 3) - 7

    for m in range(0, 128, 11):
        for n in range(16):
            terms = []
            for group in range(4):
                at = slice(16 * group, 16 * group + 16)
                products = product_terms(("e2m1", "e2m1"), a[m, at], b[n, at])
                exact = sum((t for t, _ in products), Fraction(0))
                (x, e), (y, f) = (
                    number(int(s[group * count // 4])) for s in (scales[m], scales[128 + n])
                )
                terms.append((exact * x * y, e + f))
            assert singles(found, 16)[m, n] == sum_of(terms, np.float32(0), 35)


def swizzled(image: NDArray[np.uint8], at: int, octets: NDArray[np.uint8], column: int) -> None:
    """Write rows into the 128-byte rows of a buffer, from a column of it on."""
    for row, columns in enumerate(octets):
        for k, octet in enumerate(columns):
            address = at + 128 * row + column + k
            image[address ^ (address >> 7 & 7) << 4] = octet


def test_a_k_of_96_goes_on_in_the_next_buffer() -> None:
    codes = RNG.integers(0, 16, (128 + 16, 96))
    octets_of = (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8)
    image = np.zeros(20480, np.uint8)
    swizzled(image, 0, octets_of[:128], 48)
    swizzled(image, 16384, octets_of[128:, :32], 96)  # two of three chunks, then another buffer
    swizzled(image, 18432, octets_of[128:, 32:], 0)
    scales = RNG.integers(8, 0x77, (144, 6))
    before = empty()
    octets = before.view(np.uint8).reshape(128, COLUMNS, 4)
    for k in range(6):  # from byte 3 on
        byte, group = (3 + k) % 4, (3 + k) // 4
        for m in range(128):
            octets[m % 32, 32 + m // 32 + 4 * group, byte] = scales[m, k]
        octets[np.arange(16), 48 + 4 * group, byte] = scales[128:, k]
    bits = 1 << 52
    words = [scaled_descriptor(16, 1, 1, 0, (3, 3)) | 1 << 31]
    form = (
        "shl.b64 %q2, %q2, 16; add.u64 %da, %da, %q2; add.u64 %db, %db, %q2;"
        " tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16"
        " [%ta], %da, %db, %w0, [%ta+32], [%ta+48], %no"
    )
    of_a, of_b = descriptor(48, 0, 1024, 2) | bits, descriptor(16480, 18432, 1024, 2) | bits
    found = run(form, image, (of_a, of_b), words, before)
    for m in range(0, 128, 11):
        for n in range(16):
            terms = []
            for k in range(6):
                at = slice(16 * k, 16 * k + 16)
                products = product_terms(("e2m1", "e2m1"), codes[m, at], codes[128 + n, at])
                x, y = int(scales[m, k]), int(scales[128 + n, k])
                exact = sum((t for t, _ in products), Fraction(0))
                scaled = exact * value("e4m3", x) * value("e4m3", y)
                terms.append((scaled, (x >> 3) - 7 + (y >> 3) - 7))
            assert singles(found, 16)[m, n] == sum_of(terms, np.float32(0), 35)


CODES = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110])


def whole_of(stored: NDArray[Any], codes: NDArray[np.int64]) -> NDArray[Any]:
    """The sparse matrix: codes (rows, K / 4) say where the two of each four columns are."""
    out = np.zeros((len(stored), 2 * stored.shape[1]))
    for row in range(len(stored)):
        for group, code in enumerate(codes[row]):
            for place in range(2):
                column = 4 * group + (int(code) >> 2 * place & 3)
                out[row, column] = stored[row, 2 * group + place]
    return out


def test_a_sparse_factor_of_halves() -> None:
    stored, b = halves(128), halves(16, 32)
    codes = CODES[RNG.integers(0, 6, (128, 8))]
    before = empty()
    for m in range(128):
        for g in range(8):
            lane, shift = 16 * (m // 16) + m % 8 + 8 * (g // 4), 4 * (g % 4) + 16 * (m // 8 % 2)
            before[lane, 57] |= np.uint32(int(codes[m, g]) << shift)  # the second of two columns
    form = "tcgen05.mma.sp.cta_group::1.kind::f16 [%ta], %da, %db, [%ta+56], %w0, %no"
    image = np.concatenate([chunks(stored), chunks(b, 64)])
    words = [instruction_descriptor(128, 16, 1, 0, 0, 1 << 2 | 1)]
    found = run(form, image, (of_chunks(0, 128), of_chunks(4096, 16)), words, before)
    assert singles(found, 16).tolist() == (whole_of(stored, codes) @ b.astype(float).T).tolist()


def test_a_sparse_factor_of_bytes() -> None:
    stored = RNG.integers(-128, 128, (128, 32)).astype(np.int8)
    b = RNG.integers(-128, 128, (16, 64)).astype(np.int8)
    codes = CODES[RNG.integers(0, 6, (128, 16))]
    before = empty()
    for m in range(128):
        for g in range(16):
            before[m, 56 + g // 8] |= np.uint32(int(codes[m, g]) << 4 * (g % 8))
    form = "tcgen05.mma.sp.cta_group::1.kind::i8 [%ta], %da, %db, [%ta+56], %w0, %no"
    image = np.concatenate([chunks(stored), chunks(b, 64)])
    words = [instruction_descriptor(128, 16, 2, 1, 1, 1 << 2)]
    found = run(form, image, (of_chunks(0, 128), of_chunks(4096, 16)), words, before)
    wanted = whole_of(stored, codes) @ b.astype(float).T
    assert found[:, :16].view(np.int32).tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("shape", "lanes"),
    [("128x128b", [*range(128)]), ("64x128b.warpx2::02_13", [*range(64)] * 2),
     ("64x128b.warpx2::01_23", [*range(32)] * 2 + [*range(32, 64)] * 2),
     ("32x128b.warpx4", [*range(32)] * 4)],
)  # fmt: skip
def test_copies_from_shared_memory(shape: str, lanes: list[int]) -> None:
    rows = RNG.integers(0, 1 << 32, (max(lanes) + 1, 4), dtype=np.uint32)
    form = f"tcgen05.cp.cta_group::1.{shape} [%ta+8], %da"
    found = run(form, chunks(rows, 16), (of_chunks(0, len(rows)), 0), [], empty())
    wanted = empty()
    wanted[:, 8:12] = rows[lanes]
    assert found.tolist() == wanted.tolist()


def test_a_copy_unpacks_numbers_of_4_bits() -> None:
    codes = RNG.integers(0, 16, (128, 32))
    form = "tcgen05.cp.cta_group::1.128x256b.b8x16.b4x16_p64 [%ta], %da"
    found = run(form, narrow_image(codes, 4), (of_chunks(0, 128), 0), [], empty())
    wanted = (codes << 2).astype(np.uint8).view(np.uint32)  # as products read them
    assert found[:, :8].tolist() == wanted.tolist()


def test_a_shift_moves_each_lane_but_the_last_of_a_warp() -> None:
    before = np.arange(128 * COLUMNS, dtype=np.uint32).reshape(128, COLUMNS)
    found = run("tcgen05.shift.cta_group::1.down [%ta+2097160]", np.zeros(16, np.uint8), (0, 0), [],
                before)  # fmt: skip
    wanted = before.copy()
    wanted[32:63, 8:16] = before[33:64, 8:16]  # lanes 32 to 62, 8 columns from 8 on
    assert found.tolist() == wanted.tolist()


def arrays_of(before: NDArray[np.uint32]) -> list[NDArray[Any]]:
    """The arguments of a kernel that needs tensor memory alone."""
    image, after = np.zeros(8192, np.uint32), np.zeros(128 * COLUMNS, np.uint32)
    return [image, np.zeros(2, np.uint64), np.zeros(8, np.uint32), before.reshape(-1), after]


def place(shape: str, lane: int, register: int) -> tuple[int, int]:
    """The lane and column of a register, after the figures of PTX ISA 9.7.16.2."""
    if shape == "16x64b":  # two columns a block; odd lanes have rows 8 to 15
        return lane // 4 + 8 * (lane & 1), 2 * register + (lane >> 1 & 1)
    if shape == "16x128b":  # four columns; every second register has rows 8 to 15
        return lane // 4 + 8 * (register & 1), 4 * (register >> 1) + lane % 4
    if shape == "16x256b":  # eight columns, two next to each other in a lane
        half, pair = register >> 1 & 1, register & 1
        return lane // 4 + 8 * half, 8 * (register >> 2) + 2 * (lane % 4) + pair
    return lane % 16, register + 20 * (lane // 16)  # 16x32bx2, 20 apart


@pytest.mark.parametrize(
    ("shape", "times", "count"),
    [("16x64b", 4, 4), ("16x128b", 2, 4), ("16x256b", 1, 4), ("16x32bx2", 4, 4)],
)
def test_loads_and_stores_of_16_lanes(shape: str, times: int, count: int) -> None:
    offset = ", 20" if shape == "16x32bx2" else ""
    registers = "{%r2, %r3, %r4, %r5}"
    body = "ISSUED0: mov.u32 %r2, 0"
    text = (
        text_of(body)
        .replace("@%c1 bra ISSUED;\n", "")
        .replace(
            "ISSUED0: mov.u32 %r2, 0;\n",
            f"add.u32 %r6, %tw, 1048578;\n"
            f"tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {registers}, [%r6]"
            f"{offset};\nadd.u32 %r2, %r2, 5; add.u32 %r3, %r3, 5; add.u32 %r4, %r4, 5;"
            f" add.u32 %r5, %r5, 5; add.u32 %r6, %r6, 24;\n"
            f"tcgen05.st.sync.aligned.{shape}.x{times}.b32 [%r6]{offset}, {registers};\n"
            "tcgen05.wait::st.sync.aligned; @%c1 bra ISSUED;\n",
        )
    )
    before = RNG.integers(0, 1 << 20, (128, COLUMNS), dtype=np.uint32)
    found = run_kernel(text, "k", 128, arrays_of(before))[-1].reshape(128, COLUMNS)
    wanted = before.copy()
    for warp in range(4):  # from lane 16 of each warp and column 2 to column 26
        for lane in range(32):
            for register in range(count):
                row, column = place(shape, lane, register)
                at = 32 * warp + 16 + row
                wanted[at, 26 + column] = before[at, 2 + column] + 5
    assert found.tolist() == wanted.tolist()


def test_packed_halves_of_two_columns() -> None:
    text = text_of("mov.u32 %r2, 0").replace(
        "@%c1 bra ISSUED;\nmov.u32 %r2, 0;\n",
        "tcgen05.ld.sync.aligned.32x32b.x2.pack::16b.b32 {%r2, %r3}, [%tw]; add.u32 %r4, %tw, 8;\n"
        "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r4], {%r2, %r3}; add.u32 %r4, %tw, 16;\n"
        "tcgen05.st.sync.aligned.32x32b.x2.unpack::16b.b32 [%r4], {%r2, %r3};\n@%c1 bra ISSUED;\n",
    )
    before = RNG.integers(0, 1 << 32, (128, COLUMNS), dtype=np.uint32)
    found = run_kernel(text, "k", 128, arrays_of(before))[-1].reshape(128, COLUMNS)
    low = before[:, :4] & 0xFFFF
    assert found[:, 8:10].tolist() == (low[:, ::2] | low[:, 1::2] << 16).tolist()
    assert found[:, 16:20].tolist() == low.tolist()


def test_a_product_of_halves_may_have_8_columns() -> None:
    a, b = halves(128), halves(8)
    image = np.concatenate([chunks(a), chunks(b)])
    words = [instruction_descriptor(128, 8, 1, 0, 0)]
    found = run(F16 + "%no", image, (of_chunks(0, 128), of_chunks(4096, 8)), words, empty())
    assert singles(found, 8).tolist() == (a.astype(float) @ b.astype(float).T).tolist()


def test_a_warp_reaches_its_own_lanes_by_lane_0() -> None:
    text = text_of("mov.u32 %r2, 0").replace(
        "@%c1 bra ISSUED;\nmov.u32 %r2, 0;\n",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%ta]; add.u32 %r2, %r2, 7;\n"
        "add.u32 %r4, %ta, 8;\n"
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r4], {%r2};\n@%c1 bra ISSUED;\n",
    )
    before = np.arange(128 * COLUMNS, dtype=np.uint32).reshape(128, COLUMNS)
    found = run_kernel(text, "k", 128, arrays_of(before))[-1].reshape(128, COLUMNS)
    assert found[:, 8].tolist() == (before[:, 0] + 7).tolist()


def test_deallocated_columns_keep_what_they_had() -> None:
    text = text_of("mov.u32 %r2, 0").replace(
        "@%c1 bra ISSUED;\nmov.u32 %r2, 0;\n",
        "@%c2 bra FREED;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %ta, 64;\n"
        "FREED: bar.sync 0; @%c1 bra ISSUED;\n",
    )
    last = "@%c2 bra DONE;\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %ta, 64;\n"
    assert last in text
    before = np.arange(128 * COLUMNS, dtype=np.uint32).reshape(128, COLUMNS)
    arrays = arrays_of(before)
    found = run_kernel(text.replace(last, ""), "k", 128, arrays)[-1].reshape(128, COLUMNS)
    assert found.tolist() == before.tolist()


def test_the_lower_half_of_a_generic_address_is_the_shared_one() -> None:
    text = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p0)
{
.shared .align 16 .b8 first[48]; .shared .align 8 .b8 slot[8];
.reg .b64 %p<4>; .reg .b32 %r<8>;
ld.param.u64 %p0, [p0]; mov.u32 %r0, slot; mov.u64 %p1, slot; cvta.shared.u64 %p2, %p1;
cvt.u32.u64 %r1, %p2; sub.u32 %r2, %r1, %r0;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%p2], 64; bar.warp.sync -1;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%p2], 32; bar.warp.sync -1;
ld.shared.u32 %r3, [%r0]; mad.lo.u32 %r3, %r2, 1000, %r3; st.global.u32 [%p0], %r3;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 0, 64;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 64, 32; ret;
}
"""
    found = run_kernel(text, "k", 32, [np.full(1, 9, np.uint32)])[-1]
    assert found.tolist() == [64]  # no difference, and the second allocation's column


@pytest.mark.parametrize(
    ("body", "words", "said"),
    [
        ("tcgen05.mma.cta_group::1.kind::f16 [%ta+56], %da, %db, %w0, %no", [0x8040010],
         "reaches columns 56 to 71 of tensor memory at address 0x00000038, and columns 0 to 63 are "
         "allocated of 512"),
        (F16 + "%no", [0x8040020], "0x08040020 as its instruction descriptor, whose type of D, 2, "
         "kind::f16 does not have"),
        (F16 + "%no", [0x8000010], "whose shape is 128 x 0: M is one of 64, 128, N a multiple of"),
        (F16.replace("kind::f16", "kind::tf32") + "%no", [0x8020910],
         "whose shape is 128 x 8: M is one of 64, 128, N a multiple of 16"),
        (F16 + "%no", [0x8040014], "whose bit 2 says that A is sparse"),
        (F16 + "%no", [0x8040110], "whose types of A and B, 2 and 0, kind::f16 does not have"),
        (F16.replace("%da", "%q2") + "%no", [0x8040010],
         "0x0000000000000000 as the descriptor of a matrix, whose bits 46 to 48 are 0, not 1"),
        ("tcgen05.mma.cta_group::2.kind::f16 [%ta], %da, %db, %w0, %no", [0x10040010],
         "needs pairs of blocks, and clusters have 1"),
        ("tcgen05.shift.cta_group::1.down [%ta+65536]", [], "of lane 1, no multiple of 32"),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32", [],
         "after tcgen05.relinquish_alloc_permit"),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 48", [],
         "of 48 columns, no power of two from 32 to 512"),
        ("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %ta, 32", [],
         "of 32 columns at address 0x00000000, and columns 0 to 63 are allocated"),
        ("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%ta+1048576]", [],
         "takes 32 lanes from 16 on at address 0x00100000, and the warp reaches 32 lanes from a"),
    ],
)  # fmt: skip
def test_what_the_isa_does_not_allow_is_a_fault(body: str, words: list[int], said: str) -> None:
    where = of_chunks(0, 128), of_chunks(4096, 16)
    with pytest.raises(KernelFault) as raised:
        run(body, np.zeros(16, np.uint8), where, words, empty())
    assert said in str(raised.value)
    assert body.split()[0] in str(raised.value)


def test_more_columns_than_there_are_is_a_fault() -> None:
    text = text_of("mov.u32 %r2, 0").replace("[slot], 64;\n", "[slot], 64;\n"
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;\n", 1)  # fmt: skip
    with pytest.raises(
        KernelFault, match="of 512 columns never ends: columns 0 to 63 are allocated"
    ):
        run_kernel(text, "k", 128, arrays_of(empty()))


def run_pair(text: str, arrays: list[NDArray[Any]], threads: int = 128) -> list[NDArray[Any]]:
    """Run the kernel in a cluster of two blocks, the second with its own image and memory."""
    module = parse_module(text)
    memory = Memory()
    loaded = load_module(memory, module)
    places = [memory.allocate(a.nbytes, f"array{k}") for k, a in enumerate(arrays)]
    for at, array in zip(places, arrays, strict=True):
        memory.view(at)[:] = array.view(np.uint8)
    arguments = tuple(at.address.to_bytes(8, "little") for at in places)
    launch = Launch((2, 1, 1), (threads, 1, 1), 0, arguments, print, cluster=(2, 1, 1))
    run_launch(PtxCode(link_kernel(module, "k"), launch, memory, loaded), Rows())
    return [memory.view(at).view(a.dtype).copy() for at, a in zip(places, arrays, strict=True)]


PAIR = (
    "setp.ne.u32 %c3, %r9, 0; @%c3 bra ISSUED;\n{body};\nmov.b16 %h0, 3;\n"
    "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
    " [gate], %h0;"
)


@pytest.mark.parametrize("rows", [256, 128])
def test_a_pair_of_blocks_shares_a_product(rows: int) -> None:
    # Each block has half of the rows of A and half of the 32 columns of B in its shared memory.
    a, b = halves(rows), halves(32)
    half = rows // 2
    images = [
        np.concatenate([chunks(a[half * k :][:half]), chunks(b[16 * k :][:16])]) for k in range(2)
    ]
    image = np.zeros((2, 32768), np.uint8)
    for k in range(2):
        image[k, : len(images[k])] = images[k]
    where = of_chunks(0, half), of_chunks(32 * half, 16)
    body = "tcgen05.mma.cta_group::2.kind::f16 [%ta], %da, %db, %w0, %no"
    cluster = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
    text = TEXT.replace("BODY", PAIR.format(body=body))
    text = text.replace("GROUP", "2").replace("CLUSTER", cluster)
    words = np.array([instruction_descriptor(rows, 32, 1, 0, 0), *[0] * 7], np.uint32)
    before = np.zeros(2 * 128 * COLUMNS, np.uint32)
    first: list[NDArray[Any]] = [image.reshape(-1).view(np.uint32), np.array(where, np.uint64)]
    found = run_pair(text, [*first, words, before, np.zeros_like(before)])[-1].reshape(
        2, 128, COLUMNS
    )
    whole = a.astype(float) @ b.astype(float).T
    for k in range(2):
        own = whole[half * k :][:half]
        if half == 64:  # columns 16 to 31 in lanes 64 to 127
            own = np.concatenate([own[:, :16], own[:, 16:]])
        assert singles(found[k], own.shape[1]).tolist() == own.tolist()


def test_a_multicast_of_a_pair_signals_the_barrier_of_its_first_block() -> None:
    # The second block loads 4 words for both blocks. Its own barrier's address, with
    # .cta_group::2, means that of the first block, which expects 32 bytes: 16 of each.
    text = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .u64 p2)
{
.shared .align 128 .b8 box[128]; .shared .align 8 .b64 gate;
.reg .b64 %p<4>; .reg .b64 %q; .reg .b32 %r<16>; .reg .pred %c<4>; .reg .b16 %h;
ld.param.u64 %p0, [p0]; ld.param.u64 %p1, [p1]; ld.param.u64 %p2, [p2];
mov.u32 %r0, %tid.x; mov.u32 %r1, box; mov.u32 %r2, %ctaid.x; setp.ne.u32 %c0, %r0, 0;
setp.eq.u32 %c1, %r2, 0; mov.u32 %r3, 0; mad.lo.u32 %r4, %r0, 4, %r1; st.shared.u32 [%r4], %r3;
bar.warp.sync -1; @%c0 bra MADE;
tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %p0;
tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 0;
tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 0, 4;
tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 0, 32;
tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1], 0, 1;
tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 2;
mbarrier.init.shared.b64 [gate], 1;
@%c1 mbarrier.arrive.expect_tx.shared.b64 _, [gate], 32;
MADE: bar.warp.sync -1; mad.wide.u32 %p3, %r2, 128, %p1;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
 [%p3], [%r1], 128;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
@%c1 bra WAIT; @%c0 bra DONE; mov.b16 %h, 3; mov.u32 %r5, 8; mov.u32 %r6, gate;
and.b32 %r6, %r6, 0xfeffffff;
cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
.multicast::cluster.cta_group::2 [%r1], [%p3, {%r5}], [%r6], %h;
bra DONE;
WAIT: mbarrier.try_wait.parity.shared.b64 %c2, [gate], 0; @!%c2 bra WAIT;
DONE: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ld.shared.u32 %r7, [%r4]; mad.lo.u32 %r8, %r2, 32, %r0; mad.wide.u32 %q, %r8, 4, %p2;
st.global.u32 [%q], %r7; ret;
}
"""
    arrays: list[NDArray[Any]] = [
        np.arange(32, dtype=np.uint32), np.zeros(64, np.uint32), np.zeros(64, np.uint32)
    ]  # fmt: skip
    found = run_pair(text, arrays, 32)[-1].reshape(2, 32)
    assert found[:, :4].tolist() == [[8, 9, 10, 11]] * 2


@pytest.mark.parametrize("align", [8, 1024])
def test_an_address_without_the_bit_of_the_pair_is_the_first_blocks(align: int) -> None:
    # 128 lanes and a commit of each block: the 258 arrivals that the first barrier expects.
    found = run_pair(arrivals_at_the_first(align), [np.zeros(2, np.uint32)])[-1]
    assert found.tolist() == [1, 0]
