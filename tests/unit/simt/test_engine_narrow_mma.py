"""`mma` of 8-, 6- and 4-bit floats with and without scales (capability 12.0), against fractions.

Fragments are laid out by the ISA's formulas (9.7.14.5), written here a second time.
"""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from narrow_floats import product_terms, sum_of, value
from numpy.typing import NDArray
from ptx.ptx_run import run_kernel

from cutrace.base.errors import CutraceError

HEAD = ".version 8.8\n.target sm_120a\n.address_size 64\n"
LANE = np.arange(32)


def kernel(mnemonic: str, registers: tuple[int, int, int], tail: str) -> str:
    """A warp that multiplies what lies in a, b and c, a row of lanes a register, into d."""
    counts = dict(zip("abc", registers, strict=True), d=registers[2])
    lines = [f".reg .b32 %{m}<{n}>;" for m, n in counts.items()]
    lines += [".reg .b64 %p<8>; .reg .b64 %q; .reg .b32 %t; .reg .b32 %s<3>;"]
    lines += [f"ld.param.u64 %p{k}, [p{k}];" for k in range(7)]
    lines += ["mov.u32 %t, %tid.x; mul.wide.u32 %q, %t, 4;"]
    lines += [f"add.u64 %p{k}, %p{k}, %q;" for k in range(7)]
    for place, m in enumerate("abc"):
        lines += [f"ld.global.b32 %{m}{k}, [%p{place}+{128 * k}];" for k in range(counts[m])]
    lines += [f"ld.global.b32 %s{k}, [%p{3 + k}];" for k in range(3)]
    vectors = (
        "{" + ", ".join(f"%{m}{k}" for k in range(counts[m])) + "}" for m in ("d", "a", "b", "c")
    )
    lines += [f"{mnemonic} {', '.join(vectors)}{tail};"]
    lines += [f"st.global.b32 [%p6+{128 * k}], %d{k};" for k in range(counts["d"])]
    parameters = ", ".join(f".param .u64 p{k}" for k in range(7))
    return f"{HEAD}.visible .entry k({parameters})\n{{\n" + "\n".join(lines) + "\nret;\n}\n"


def fragments(matrix: NDArray[np.int64], packed: bool, columns: int) -> NDArray[np.uint32]:
    """Registers of a factor's rows (of B: its columns): bytes, or 4-bit numbers two to a byte."""
    count, bits = (8, 4) if packed else (4, 8)
    rows = matrix.shape[0] // 8
    out = np.zeros((rows * matrix.shape[1] // columns, 32), np.uint32)
    for register in range(len(out)):
        row = LANE // 4 + 8 * (register % rows)
        for place in range(count):
            column = LANE % 4 * count + place + 4 * count * (register // rows)
            out[register] |= (matrix[row, column] << bits * place).astype(np.uint32)
    return out


def run(mnemonic: str, a: Any, b: Any, c: Any, extra: list[Any], tail: str) -> NDArray[np.float32]:
    """D (16, 8) of fragments and of C (16, 8) f32."""
    rows, columns = np.arange(16)[:, None], np.arange(8)[None]
    lane = 4 * (rows % 8) + columns // 2
    register = 2 * (rows // 8) + columns % 2
    given = np.zeros((4, 32), np.float32)
    given[register, lane] = c
    extra += [np.zeros(32, np.uint32)] * (3 - len(extra))
    out = np.zeros((4, 32), np.float32)
    text = kernel(mnemonic, (len(a), len(b), 4), tail)
    arrays = [array.reshape(-1) for array in (a, b, given, *extra, out)]
    found = run_kernel(text, "k", 32, arrays, 32)[-1].reshape(4, 32)
    result: NDArray[np.float32] = found[register, lane]
    return result


def codes(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> NDArray[np.int64]:
    """Random finite patterns; those of e5m2 without infinities and NaNs."""
    bits = {"e2m1": 4, "e2m3": 6, "e3m2": 6}.get(kind, 8)
    found = rng.integers(0, 1 << bits, shape)
    magnitude = found & (1 << bits - 1) - 1
    return np.where(magnitude >= {"e4m3": 0x7F, "e5m2": 0x7C}.get(kind, 256), 0, found)


SHIFT = {"e2m1": 2}
"""Bits below a 4-bit number in its byte; 6-bit ones begin at the lowest bit."""


@pytest.mark.parametrize(
    "kinds", [("e2m1", "e2m1"), ("e3m2", "e4m3"), ("e5m2", "e2m3"), ("e4m3", "e5m2")]
)
def test_a_product_of_narrow_floats_is_one_sum_of_32_terms(kinds: tuple[str, str]) -> None:
    rng = np.random.default_rng(7)
    a, b = codes(rng, kinds[0], (16, 32)), codes(rng, kinds[1], (8, 32))
    c = rng.standard_normal((16, 8)).astype(np.float32)
    form = f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{kinds[0]}.{kinds[1]}.f32"
    left, right = (m << SHIFT.get(k, 0) for m, k in zip((a, b), kinds, strict=True))
    found = run(form, fragments(left, False, 16), fragments(right, False, 16), c, [], "")
    wanted = [
        [sum_of(product_terms(kinds, a[i], b[j]), c[i, j], 25) for j in range(8)] for i in range(16)
    ]
    assert found.tolist() == np.array(wanted).tolist()


@pytest.mark.parametrize("kinds", [("e2m1", "e2m1"), ("e4m3", "e3m2"), ("e2m3", "e5m2")])
@pytest.mark.parametrize("places", [(0, 0, 0, 0), (3, 1, 2, 3)])
def test_a_scale_multiplies_each_row_and_column(
    kinds: tuple[str, str], places: tuple[int, int, int, int]
) -> None:
    byte_a, pair, byte_b, thread = places
    rng = np.random.default_rng(sum(places))
    a, b = codes(rng, kinds[0], (16, 32)), codes(rng, kinds[1], (8, 32))
    c = rng.standard_normal((16, 8)).astype(np.float32)
    of_a, of_b = rng.integers(117, 137, 16), rng.integers(117, 137, 8)  # 2^-10 to 2^9
    words = rng.integers(0, 255, (2, 32, 4))
    row, column = np.arange(16), np.arange(8)
    words[0, 4 * (row % 8) + 2 * pair + row // 8, byte_a] = of_a
    words[1, 4 * column + thread, byte_b] = of_b
    scales = [w.astype(np.uint8).view(np.uint32).reshape(32) for w in words]
    form = (
        "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X"
        f".f32.{kinds[0]}.{kinds[1]}.f32.ue8m0"
    )
    tail = f", %s0, {{{byte_a}, {pair}}}, %s1, {{{byte_b}, {thread}}}"
    left, right = (m << SHIFT.get(k, 0) for m, k in zip((a, b), kinds, strict=True))
    found = run(form, fragments(left, False, 16), fragments(right, False, 16), c, scales, tail)
    wanted = [
        [
            sum_of(
                product_terms(kinds, a[i], b[j], Fraction(2) ** int(of_a[i] + of_b[j] - 254)),
                c[i, j], 25,
            )
            for j in range(8)
        ]
        for i in range(16)
    ]  # fmt: skip
    assert found.tolist() == np.array(wanted).tolist()


@pytest.mark.parametrize(
    ("kind", "vector", "scale"),
    [("mxf4", 2, "ue8m0"), ("mxf4nvf4", 2, "ue8m0"), ("mxf4nvf4", 4, "ue4m3")],
)
def test_groups_of_16_products_of_4_bits_are_scaled(kind: str, vector: int, scale: str) -> None:
    rng = np.random.default_rng(vector)
    a, b = codes(rng, "e2m1", (16, 64)), codes(rng, "e2m1", (8, 64))
    c = rng.standard_normal((16, 8)).astype(np.float32)
    low, high = (120, 135) if scale == "ue8m0" else (1, 126)
    of_a, of_b = rng.integers(low, high, (16, vector)), rng.integers(low, high, (8, vector))
    words = rng.integers(0, 255, (2, 32, 4))
    first = 4 - vector
    for i in range(16):
        words[0, 4 * (i % 8) + 2 + i // 8, first:] = of_a[i]
    for j in range(8):
        words[1, 4 * j + 3, first:] = of_b[j]
    scales = [w.astype(np.uint8).view(np.uint32).reshape(32) for w in words]
    form = (
        f"mma.sync.aligned.m16n8k64.row.col.kind::{kind}.block_scale.scale_vec::{vector}X"
        f".f32.e2m1.e2m1.f32.{scale}"
    )
    tail = f", %s0, {{{first}, 1}}, %s1, {{{first}, 3}}"
    found = run(form, fragments(a, True, 32), fragments(b, True, 32), c, scales, tail)

    def number(code: int) -> tuple[Fraction, int]:
        if scale == "ue8m0":
            return Fraction(2) ** (code - 127), code - 127
        exact = value("e4m3", code)
        return exact, max((code >> 3) - 7, -6)

    wanted = np.zeros((16, 8), np.float32)
    for i in range(16):
        for j in range(8):
            terms = []
            for group in range(4):
                at = slice(16 * group, 16 * group + 16)
                products = product_terms(("e2m1", "e2m1"), a[i, at], b[j, at])
                exact = sum((t for t, _ in products), Fraction(0))
                (x, e), (y, f) = (number(int(s[group * vector // 4])) for s in (of_a[i], of_b[j]))
                terms.append((exact * x * y, e + f))
            wanted[i, j] = sum_of(terms, c[i, j], 35)
    assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("metadata", ["%s0", "{%s0}"])
def test_a_sparse_row_with_scales_has_its_numbers_where_the_metadata_says(metadata: str) -> None:
    # Each group of four has its numbers 1 and 2 at columns 1 and 3: metadata 0b1101 in every group.
    # B's row k is k % 4, so a group adds 1 * 1 + 2 * 3 = 7, 16 groups 112; scales 2 and 4: 896.
    one, two = 0x38, 0x40  # e4m3
    a = np.array([[one, two] * 16] * 16)
    b = np.array([[(0, 0x38, 0x40, 0x44)[k % 4] for k in range(64)]] * 8)
    c = np.zeros((16, 8), np.float32)
    meta = np.full(32, 0xDDDDDDDD, np.uint32)
    scales = [np.full(32, 0x80808080, np.uint32), np.full(32, 0x81818181, np.uint32)]
    form = (
        "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale"
        ".scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0"
    )
    tail = f", {metadata}, 0, %s1, {{0, 0}}, %s2, {{0, 0}}"
    found = run(form, fragments(a, False, 16), fragments(b, False, 16), c, [meta, *scales], tail)
    assert found.tolist() == np.full((16, 8), 896.0).tolist()


def test_a_scale_that_is_no_number_makes_its_row_none() -> None:
    a, b = np.full((16, 32), 8), np.full((8, 32), 8)  # 1.0 in bits 2 to 5
    scales = [np.full(32, 127, np.uint32), np.full(32, 127, np.uint32)]
    scales[0][4] = 255  # of row 1
    form = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    c = np.zeros((16, 8), np.float32)
    found = run(form, fragments(a, False, 16), fragments(b, False, 16), c, scales,
                ", %s0, {0, 0}, %s1, {0, 0}")  # fmt: skip
    assert np.isnan(found[1]).all()
    assert (np.delete(found, 1, axis=0) == 32).all()


def test_scales_without_their_places_are_refused() -> None:
    form = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
    text = kernel(form, (4, 2, 4), ", %s0, {0}, %s1, {0, 0}")
    with pytest.raises(CutraceError, match="expected scales, and the numbers of their byte"):
        run_kernel(text, "k", 32, [np.zeros(128, np.uint32)] * 7, 32)
