"""Kernels whose work can be turned up, launched in a session of their own."""

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cutrace

SOURCE = """
__global__ void stream(float *out, const float *in, int n, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int r = 0; r < rounds; ++r)
        sum += in[(i + r * 1024) % n];
    out[i % n] = sum;
}

__global__ void gather(float *out, const float *in, int n, int rounds)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = i * 2654435761u + 12345u;
    float sum = 0;
    for (int r = 0; r < rounds; ++r) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        sum += in[x % (unsigned)n];
    }
    out[i % n] = sum;
}

__global__ void wander(float *out, const float *in, int n, int rounds)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = i * 2654435761u + 12345u;
    float sum = 0;
    for (int r = 0; r < rounds; ++r) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        if (x & 1)
            sum += in[(i + r * 32) % n];
        else
            sum = sum * 0.5f + 1;
    }
    out[i % n] = sum;
}

__global__ void spmv(float *y, const int *row_ptr, const int *col, const float *val, const float *x,
                     int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n)
        return;
    float sum = 0;
    for (int j = row_ptr[row]; j < row_ptr[row + 1]; ++j)
        sum += val[j] * x[col[j]];
    y[row] = sum;
}

__global__ void transpose(float *out, const float *in, int n)
{
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
"""
ELEMENTS = 1 << 20
ROWS, LONGEST = 100_000, 5000

Record = Callable[..., float]


def record_loop(trace: Path, kernel: str, threads: int, rounds: int, **options: Any) -> float:
    """Launch `stream`, `gather` or `wander`; CPU seconds from the launch to the closed trace."""
    with cutrace.Session(trace, **options) as gpu:
        function = gpu.compile(SOURCE).get_function(kernel)
        source = gpu.to_device(np.ones(ELEMENTS, np.float32), name="in")
        result = gpu.device_array(ELEMENTS, np.float32, name="out")
        start = time.process_time()
        function[threads // 256, 256](result, source, ELEMENTS, rounds)
    return time.process_time() - start


def record_transpose(trace: Path, n: int = 4096, **options: Any) -> float:
    """Transpose an n x n matrix by 32 x 32 tiles; CPU seconds to the closed trace."""
    with cutrace.Session(trace, **options) as gpu:
        function = gpu.compile(SOURCE).get_function("transpose")
        source = gpu.to_device(np.zeros((n, n), np.float32), name="in")
        result = gpu.device_array((n, n), np.float32, name="out")
        start = time.process_time()
        function[(n // 32, n // 32), (32, 8)](result, source, n)
    return time.process_time() - start


def record_spmv(trace: Path, rows: int = ROWS, **options: Any) -> float:
    """Multiply a matrix with skewed rows, a thread each; CPU seconds to the closed trace."""
    pointers, columns = skewed_rows(rows)
    with cutrace.Session(trace, **options) as gpu:
        function = gpu.compile(SOURCE).get_function("spmv")
        arrays = [
            gpu.to_device(values, name=name)
            for name, values in (
                ("row_ptr", pointers),
                ("col", columns),
                ("val", np.ones(len(columns), np.float32)),
                ("x", np.ones(rows, np.float32)),
            )
        ]
        result = gpu.device_array(rows, np.float32, name="y")
        start = time.process_time()
        function[-(-rows // 256), 256](result, *arrays, rows)
        computed = result.copy_to_host()
    seconds = time.process_time() - start
    if not options:
        np.testing.assert_array_equal(computed, np.diff(pointers))
    return seconds


@cache
def skewed_rows(rows: int = ROWS) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Row pointers and columns: exponent 1.3, the longest row of 5000."""
    rng = np.random.default_rng(7)
    lengths = np.minimum(LONGEST, rng.pareto(1.3, rows) + 1).astype(np.int32)
    pointers = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pointers, rng.integers(0, rows, int(pointers[-1])).astype(np.int32)
