"""Programs that include `mma.h`: matrices multiplied by a warp, against sums on the host."""

from pathlib import Path

import pytest
from program_run import record

from cutrace.analyzer.profile import analyze

PRODUCT = """
#include <mma.h>
using namespace nvcuda;

template <class T, class R, int m, int n, int k, class A, class B>
__global__ void multiply(const T *a, const T *b, R *c, wmma::layout_t order)
{
    wmma::fragment<wmma::matrix_a, m, n, k, T, A> left;
    wmma::fragment<wmma::matrix_b, m, n, k, T, B> right;
    wmma::fragment<wmma::accumulator, m, n, k, R> sum;
    bool by_rows = order == wmma::mem_row_major;
    wmma::load_matrix_sync(left, a, k);
    wmma::load_matrix_sync(right, b, n);
    wmma::load_matrix_sync(sum, c, by_rows ? n : m, order);
    wmma::mma_sync(sum, left, right, sum);
    for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] + R(1);
    wmma::store_matrix_sync(c, sum, by_rows ? n : m, order);
}

template <class T, class R, int m, int n, int k> int wrong(wmma::layout_t order)
{
    T *a, *b; R *c;
    CHECK(cudaMallocManaged(&a, m * k * sizeof(T)));
    CHECK(cudaMallocManaged(&b, k * n * sizeof(T)));
    CHECK(cudaMallocManaged(&c, m * n * sizeof(R)));
    for (int i = 0; i < m * k; ++i) a[i] = T(float(i % 7 - 3));
    for (int i = 0; i < k * n; ++i) b[i] = T(float(i % 5 - 2));
    for (int i = 0; i < m * n; ++i) c[i] = R(1);
    multiply<T, R, m, n, k, wmma::row_major, wmma::row_major><<<1, 32>>>(a, b, c, order);
    CHECK(cudaDeviceSynchronize());
    int wrong = 0;
    for (int y = 0; y < m; ++y)
        for (int x = 0; x < n; ++x) {
            float sum = 2;
            for (int z = 0; z < k; ++z) sum += float(a[y * k + z]) * float(b[z * n + x]);
            wrong += float(c[order == wmma::mem_row_major ? y * n + x : x * m + y]) != sum;
        }
    return wrong;
}

int main()
{
    for (wmma::layout_t order : {wmma::mem_row_major, wmma::mem_col_major}) {
        printf("%d ", wrong<half, float, 16, 16, 16>(order));
        printf("%d ", wrong<signed char, int, 32, 8, 16>(order));
        printf("%d ", wrong<double, double, 8, 8, 4>(order));
    }
}
"""


@pytest.mark.parametrize("device", ["h200", "a100"])
def test_matrices_multiplied_through_mma_h_are_right(device: str, tmp_path: Path) -> None:
    done = record(tmp_path, PRODUCT, options=("-std", "c++17", "-d", device))
    assert (done.status, done.out) == (0, "0 0 0 0 0 0 "), done.err
    assert len(done.trace.launches) == 6
    # A, B: a sector is a row of 16 halves, and a request has 16 bytes of each of 8 rows; C: floats
    counters = analyze(done.path, device).launches[0].counters
    assert counters["global_load_transactions"] == (2 * 512 + 2 * 512 + 1024) // 32
    assert counters["global_store_transactions"] == 1024 // 32
