"""`mma.h`: 4-bit integers and bits give NumPy's product, in either order of the result."""

import numpy as np
import pytest
from numpy.typing import NDArray

import cutrace

TEXT = """
#include <mma.h>
using namespace nvcuda;
namespace ex = wmma::experimental;
template <class T, int k, class Sum> __global__ void product(
    int *d, const unsigned *a, const unsigned *b, const int *c, unsigned pitch, unsigned to)
{
    wmma::fragment<wmma::matrix_a, 8, 8, k, T, wmma::row_major> x;
    wmma::fragment<wmma::matrix_b, 8, 8, k, T, wmma::col_major> y;
    wmma::fragment<wmma::accumulator, 8, 8, k, int> z;
    wmma::layout_t order = to > 8 ? wmma::mem_col_major : wmma::mem_row_major;
    wmma::load_matrix_sync(x, a, pitch);
    wmma::load_matrix_sync(y, b, pitch);
    wmma::load_matrix_sync(z, c, to, order);
    Sum::of(z, x, y);
    wmma::store_matrix_sync(d, z, to, order);
}
struct wrap { template <class C, class A, class B> static __device__ void of(C &c, A &a, B &b)
{ wmma::mma_sync(c, a, b, c); } };
struct clamp { template <class C, class A, class B> static __device__ void of(C &c, A &a, B &b)
{ wmma::mma_sync(c, a, b, c, true); } };
struct exclusive { template <class C, class A, class B> static __device__ void of(C &c, A &a, B &b)
{ wmma::bmma_sync(c, a, b, c); } };
struct both { template <class C, class A, class B> static __device__ void of(C &c, A &a, B &b)
{ wmma::bmma_sync(c, a, b, c, ex::bmmaBitOpAND, ex::bmmaAccumulateOpPOPC); } };
template <class T, int k> __global__ void fill(int *d)
{
    wmma::fragment<wmma::matrix_a, 8, 8, k, T, wmma::row_major> x;
    wmma::fill_fragment(x, 5);
    d[0] = x.x[0], d[1] = x.num_elements, d[2] = x.num_storage_elements;
}
"""
PRECISION = "nvcuda::wmma::experimental::precision"


def elements(words: NDArray[np.uint32], kind: str) -> NDArray[np.int64]:
    """The elements (8, k) that rows of words hold, from the lowest bits on."""
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(np.int64)
    if kind == "b1":
        return bits
    fours: NDArray[np.int64] = (bits.reshape(8, -1, 4) << np.arange(4)).sum(2)
    if kind == "s4":
        fours -= 16 * (fours > 7)
    return fours


@pytest.mark.parametrize("order", ["row", "col"])
@pytest.mark.parametrize(
    ("kind", "how"),
    [
        *[(kind, how) for kind in ("s4", "u4") for how in ("wrap", "clamp")],
        *[("b1", "exclusive"), ("b1", "both")],
    ],
)
def test_the_product_is_numpys(kind: str, how: str, order: str) -> None:
    k = 128 if kind == "b1" else 32
    numbers = np.random.default_rng(3)
    # rows of 8 words, of which the matrix has the first 4
    a, b = (numbers.integers(0, 1 << 32, (8, 8), np.uint32) for _ in "ab")
    left, right = (elements(np.ascontiguousarray(x[:, :4]), kind) for x in (a, b))
    limits = np.iinfo(np.int32)
    start = numbers.choice([0, 7, limits.max - 20, limits.min + 20], (8, 8)).astype(np.int64)
    joined = {"exclusive": np.bitwise_xor, "both": np.bitwise_and}.get(how, np.multiply)
    wanted = start + joined(left[:, None], right).sum(2)
    if how == "clamp":
        wanted = wanted.clip(limits.min, limits.max)
    columns = 8 if order == "row" else 12
    c = np.zeros((8, columns), np.int32)
    c[:, :8] = start if order == "row" else start.T
    name = f"product<{PRECISION}::{kind}, {k}, {how}>"
    with cutrace.Session() as gpu:
        module = gpu.compile(TEXT, "compute_80", name_expressions=[name])
        out = gpu.to_device(c)
        arrays = [gpu.to_device(each) for each in (a, b, c)]
        pitch = 8 * k // 4
        module.get_function(name)[1, 32](out, *arrays, np.uint32(pitch), np.uint32(columns))
        got = out.copy_to_host()[:, :8]
    assert ((got if order == "row" else got.T) == wanted.astype(np.int32)).all()


# 5 is 101: its last bit in every bit of b1, all of it in every fourth of u4
@pytest.mark.parametrize(("kind", "k", "word", "count"),
                         [("b1", 128, -1, 32), ("u4", 32, 0x55555555, 8)])  # fmt: skip
def test_a_fragment_is_filled_element_by_element(kind: str, k: int, word: int, count: int) -> None:
    name = f"fill<{PRECISION}::{kind}, {k}>"
    with cutrace.Session() as gpu:
        module = gpu.compile(TEXT, "compute_80", name_expressions=[name])
        out = gpu.to_device(np.zeros(3, np.int32))
        module.get_function(name)[1, 32](out)
        assert out.copy_to_host().tolist() == [word, count, 1]
