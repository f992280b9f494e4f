"""`mma.h`: every shape, type and order gives NumPy's product, by the accesses that ptxas makes."""

import re

import numpy as np
import pytest
from numpy.typing import DTypeLike, NDArray

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.tracer.front import cuda
from cutrace.tracer.front.source import Options, Source

TEXT = """
#include <mma.h>
using namespace nvcuda::wmma;
template <int m, int n, int k, class T, class P, class R, class A, class B, int shared>
__global__ void product(R *d, const P *a, const P *b, const R *c, int pa, int pb, int pc)
{
    __shared__ __align__(128) P s[2][512];
    for (int i = threadIdx.x; i < 512; i += 32) {
        s[0][i] = i < m * k ? a[i] : P(0);
        s[1][i] = i < k * n ? b[i] : P(0);
    }
    __syncwarp();
    layout_t order = PC == n ? mem_row_major : mem_col_major;
    fragment<matrix_a, m, n, k, T, A> x;
    fragment<matrix_b, m, n, k, T, B> y;
    fragment<accumulator, m, n, k, R> z;
    load_matrix_sync(x, shared ? s[0] : a, pa);
    load_matrix_sync(y, shared ? s[1] : b, pb);
    load_matrix_sync(z, c, pc, order);
    mma_sync(z, x, y, z);
    for (int i = 0; i < z.num_elements; ++i)
        z.x[i] = z.x[i] + z.x[i];
    store_matrix_sync(d, z, pc, order);
}
"""
TYPES: dict[str, tuple[str, str, DTypeLike, DTypeLike, int]] = {
    "half into float": ("half, half", "float", "f2", "f4", 16),
    "half into half": ("half, half", "half", "f2", "f2", 16),
    "signed bytes": ("signed char, signed char", "int", "i1", "i4", 16),
    "bytes": ("unsigned char, unsigned char", "int", "u1", "i4", 16),
    "tf32": ("nvcuda::wmma::precision::tf32, float", "float", "f4", "f4", 8),
    "bfloat16": ("__nv_bfloat16, __nv_bfloat16", "float", "u2", "f4", 16),
}
ORDERS = [(a, b) for a in ("row", "col") for b in ("row", "col")]


def instance(kind: str, m: int, n: int, orders: tuple[str, str], shared: bool) -> str:
    """The name of an instance."""
    factors, result, _, _, k = TYPES[kind]
    layouts = ", ".join(f"nvcuda::wmma::{order}_major" for order in orders)
    return f"product<{m}, {n}, {k}, {factors}, {result}, {layouts}, {int(shared)}>"


def laid_out(matrix: NDArray[np.generic], order: str) -> NDArray[np.generic]:
    """The matrix in memory."""
    return np.ascontiguousarray(matrix.T if order == "col" else matrix)


def stored(matrix: NDArray[np.float64], kind: str) -> NDArray[np.generic]:
    """Small integers as the factors' type; of a bfloat16 the upper half of a float."""
    if kind == "bfloat16":
        return (matrix.astype("<f4").view("<u4") >> 16).astype("<u2")
    return matrix.astype(TYPES[kind][2])


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("kind", "arch", "m", "n"),
    [
        ("half into float", "compute_75", 16, 16),
        ("half into float", "compute_80", 32, 8),
        ("half into half", "compute_80", 8, 32),
        ("signed bytes", "compute_75", 32, 8),
        ("bytes", "compute_80", 8, 32),
        ("tf32", "compute_80", 16, 16),
        ("bfloat16", "compute_80", 8, 32),
    ],
)
def test_the_product_is_numpys(kind: str, arch: str, m: int, n: int, shared: bool) -> None:
    k = TYPES[kind][4]
    numbers = np.random.default_rng(m)
    a, b = (numbers.integers(0, 4, shape).astype(float) for shape in ((m, k), (k, n)))
    a -= 0 if kind == "bytes" else 2
    c = numbers.integers(-5, 6, (m, n)).astype(TYPES[kind][3])
    results, pitch = ("col", m) if shared else ("row", n)
    text = TEXT.replace("PC", "0" if shared else "n")
    names = {orders: instance(kind, m, n, orders, shared) for orders in ORDERS}
    with cutrace.Session() as gpu:
        module = gpu.compile(text, arch, name_expressions=list(names.values()))
        for orders, name in names.items():
            factors = [
                gpu.to_device(laid_out(stored(matrix, kind), order))
                for matrix, order in zip((a, b), orders, strict=True)
            ]
            pitches = (k if orders[0] == "row" else m, n if orders[1] == "row" else k)
            d = gpu.device_array((n, m) if shared else (m, n), c.dtype)
            sums = gpu.to_device(laid_out(c, results))
            module.get_function(name)[1, 32](d, *factors, sums, *pitches, pitch)
            assert (laid_out(d.copy_to_host(), results) == 2 * (a @ b + c)).all(), name


@pytest.mark.parametrize(
    ("kind", "m", "n", "orders", "shared", "expected"),
    [
        # of 16 x 16 halves each lane has 8, two in a word: 4 loads a factor
        ("half into float", 16, 16, ("row", "col"), False, "8 loads"),
        # those that lie the other way are words, too, then transposed
        ("half into float", 16, 16, ("col", "row"), False, "8 loads, 8 movmatrix"),
        ("half into float", 16, 16, ("row", "row"), False, "8 loads, 4 movmatrix"),
        # 32 x 16 and 16 x 8: 8 words and 2
        ("half into float", 32, 8, ("row", "col"), False, "10 loads"),
        # from shared memory four matrices of 8 x 8 at once
        ("half into float", 16, 16, ("row", "col"), True, "2 ldmatrix.x4"),
        ("half into float", 16, 16, ("col", "row"), True, "2 ldmatrix.x4.trans"),
        ("half into float", 8, 32, ("row", "col"), True, "1 ldmatrix.x2, 2 ldmatrix.x4"),
        # 16 x 16 bytes: 8 a lane, four in a word, or one by one
        ("signed bytes", 16, 16, ("row", "col"), False, "4 loads"),
        ("signed bytes", 16, 16, ("col", "row"), False, "16 loads"),
        ("signed bytes", 16, 16, ("row", "col"), True, "2 ldmatrix.x2"),
        # 16 x 8 words: 4 a lane
        ("tf32", 16, 16, ("col", "row"), False, "8 loads"),
    ],
)
def test_factors_are_loaded_as_ptxas_loads_them(
    kind: str, m: int, n: int, orders: tuple[str, str], shared: bool, expected: str
) -> None:
    """Source: machine code for 9.0 that ptxas 12.9 made of NVIDIA's header."""
    text = TEXT[: TEXT.index("    for (int i = threadIdx.x")] + TEXT[TEXT.index("    layout_t") :]
    text = text.replace("load_matrix_sync(z, c, pc, order)", "fill_fragment(z, R(0))")
    name = instance(kind, m, n, orders, shared)
    options = Options(name_expressions=(name,))
    ptx = cuda.to_ptx(Source("t.cu", text.replace("PC", "n"), options), "compute_80").ptx
    counts = {
        "loads": len(re.findall(r"\tld\.(?:global|shared)\S* ", ptx)),
        "movmatrix": ptx.count("movmatrix.sync"),
        **{
            f"ldmatrix.{form}": len(re.findall(rf"ldmatrix\S*m8n8\.{form}\.shared", ptx))
            for form in ("x2", "x4", "x4.trans")
        },
    }
    assert ", ".join(f"{count} {what}" for what, count in counts.items() if count) == expected


def test_loads_bear_the_line_of_the_program() -> None:
    options = Options(name_expressions=(instance("half into half", 16, 16, ORDERS[0], False),))
    ptx = cuda.to_ptx(Source("t.cu", TEXT.replace("PC", "n"), options), "compute_80").ptx
    files = re.findall(r'\.file\s+(\d+)\s+"t\.cu"', ptx)
    assert {line.split()[1] for line in ptx.splitlines() if ".loc" in line} == set(files)


def test_a_type_that_a_device_does_not_multiply_is_refused_at_its_line() -> None:
    options = Options(name_expressions=(instance("tf32", 16, 16, ORDERS[0], False),))
    with pytest.raises(CutraceError, match=r"half and bytes from 7\.5 on") as raised:
        cuda.to_ptx(Source("t.cu", TEXT.replace("PC", "n"), options), "compute_75")
    assert str(raised.value).splitlines()[1].startswith("t.cu(14): error: static assertion")
