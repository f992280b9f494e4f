"""Time an OpenCL kernel inside Oclgrind: `oclgrind python scripts/measure/bench_oclgrind.py NAME`.

Oclgrind preloads its OpenCL runtime into the program, so the calls are found in the process
itself. What is timed is the kernel: from clEnqueueNDRangeKernel to the return of clFinish; the
compilation and the copies are not in it. Prints the seconds of each run as a JSON list.
"""

import ctypes
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import bench_data
import numpy as np
from numpy.typing import NDArray

READ_WRITE_COPY = (1 << 0) | (1 << 5)  # CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR
ALL_DEVICES = 0xFFFFFFFF
cl = ctypes.CDLL(None)
Argument: TypeAlias = NDArray[Any] | np.int32


@dataclass(frozen=True)
class Twin:
    """A kernel of measure/bench_opencl: arrays and scalars in order, and what the first array
    should hold afterwards. With `steps` it runs once for each, given as its last argument."""

    file: str
    kernel: str
    arguments: list[Argument]
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    expected: Callable[[], NDArray[Any]]
    steps: tuple[int, ...] = ()


def reverse_array() -> Twin:
    values = np.arange(1 << 20, dtype=np.int32)
    arguments: list[Argument] = [np.zeros_like(values), values]
    return Twin(
        "reverse_array.cl",
        "reverseGlobal",
        arguments,
        (values.size,),
        (256,),
        lambda: values[::-1],
    )


def transpose() -> Twin:
    values = np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)
    arguments: list[Argument] = [np.zeros_like(values), values, np.int32(1024), np.int32(1024)]
    sizes = (1024, 1024), (16, 16)
    return Twin("transpose.cl", "transposeShared", arguments, *sizes, lambda: values.T)


def tiled_product() -> Twin:
    n = 256
    a = (np.arange(n * n, dtype=np.float32) % 7).reshape(n, n)
    b = (np.arange(n * n, dtype=np.float32) % 5).reshape(n, n)
    arguments: list[Argument] = [np.zeros_like(a), a, b, np.int32(n)]
    return Twin("tiled_product.cl", "productTiled", arguments, (n, n), (16, 16), lambda: a @ b)


def histogram() -> Twin:
    values = bench_data.keys(1 << 20)
    arguments: list[Argument] = [np.zeros(256, np.uint32), values, np.int32(values.size)]
    sizes = (1 << 16,), (256,)
    counted = np.bincount(values % 256, minlength=256).astype(np.uint32)
    return Twin("histogram.cl", "histogramStatic", arguments, *sizes, lambda: counted)


def bitonic_sort() -> Twin:
    values = bench_data.keys(1 << 20)
    ordered = np.sort(values.reshape(-1, 256), axis=1).reshape(-1)
    sizes = (values.size,), (256,)
    return Twin("bitonic_sort.cl", "bitonicSort", [values.copy()], *sizes, lambda: ordered)


def mandelbrot() -> Twin:
    counts = np.zeros((512, 512), dtype=np.int32)
    return Twin(
        "mandelbrot.cl",
        "mandelbrot",
        [counts, np.int32(512), np.int32(256)],
        (512, 512),
        (16, 16),
        lambda: bench_data.mandelbrot_counts(512, 256),
    )


def sparse_product() -> Twin:
    a, rows = bench_data.matrix(), bench_data.ROWS
    values = np.ones(a.column.size, np.float32)
    ones = np.ones(rows, np.float32)
    arguments: list[Argument] = [
        np.zeros_like(ones),
        a.start,
        a.column,
        values,
        ones,
        np.int32(rows),
    ]
    sizes = (-(-rows // 256) * 256,), (256,)
    return Twin("sparse_product.cl", "sparseProduct", arguments, *sizes, bench_data.row_sums)


def search() -> Twin:
    edges, nodes = bench_data.graph(), bench_data.NODES
    first = bench_data.first_levels()
    arguments: list[Argument] = [first, edges.start, edges.column, np.int32(nodes), np.int32(0)]
    sizes = (-(-nodes // 256) * 256,), (256,)
    steps = tuple(range(int(bench_data.levels().max()) + 1))
    return Twin("search.cl", "search", arguments, *sizes, bench_data.levels, steps)


def handle(function: str, *arguments: object) -> ctypes.c_void_p:
    """Call an OpenCL function that returns an object and writes its error code last."""
    error = ctypes.c_int32()
    call = getattr(cl, function)
    call.restype = ctypes.c_void_p
    made = ctypes.c_void_p(call(*arguments, ctypes.byref(error)))
    check(function, error.value)
    return made


def check(function: str, status: int) -> None:
    if status != 0:
        raise SystemExit(f"{function} failed with OpenCL error {status}")


def build(context: ctypes.c_void_p, twin: Twin) -> ctypes.c_void_p:
    text = (Path(__file__).parent / "bench_opencl" / twin.file).read_bytes()
    source = (ctypes.c_char_p * 1)(text)
    program = handle("clCreateProgramWithSource", context, 1, source, None)
    check("clBuildProgram", cl.clBuildProgram(program, 0, None, None, None, None))
    return handle("clCreateKernel", program, twin.kernel.encode())


def bind(
    context: ctypes.c_void_p, kernel: ctypes.c_void_p, twin: Twin
) -> list[ctypes.c_void_p | None]:
    """Set the kernel's arguments; a buffer a NumPy array, None for a scalar."""
    buffers: list[ctypes.c_void_p | None] = []
    for index, value in enumerate(twin.arguments):
        if isinstance(value, np.ndarray):
            size, data = ctypes.c_size_t(value.nbytes), value.ctypes.data_as(ctypes.c_void_p)
            flags = ctypes.c_uint64(READ_WRITE_COPY)
            buffer = handle("clCreateBuffer", context, flags, size, data)
            buffers.append(buffer)
            status = cl.clSetKernelArg(kernel, index, ctypes.c_size_t(8), ctypes.byref(buffer))
        else:
            buffers.append(None)
            set_number(kernel, index, int(value))
            continue
        check("clSetKernelArg", status)
    return buffers


def set_number(kernel: ctypes.c_void_p, index: int, value: int) -> None:
    """Set an argument of 32 bits."""
    size, number = ctypes.c_size_t(4), ctypes.c_int32(value)
    check("clSetKernelArg", cl.clSetKernelArg(kernel, index, size, ctypes.byref(number)))


def enqueue(queue: ctypes.c_void_p, kernel: ctypes.c_void_p, twin: Twin) -> None:
    """Start the kernel once."""
    rank = len(twin.global_size)
    sizes = ctypes.c_size_t * rank
    status = cl.clEnqueueNDRangeKernel(
        queue,
        kernel,
        rank,
        None,
        sizes(*twin.global_size),
        sizes(*twin.local_size),
        0,
        None,
        None,
    )
    check("clEnqueueNDRangeKernel", status)


def run(twin: Twin, times: int) -> list[float]:
    """Seconds of each run; the result of the last is compared with NumPy's."""
    platform, device = ctypes.c_void_p(), ctypes.c_void_p()
    check("clGetPlatformIDs", cl.clGetPlatformIDs(1, ctypes.byref(platform), None))
    kinds = ctypes.c_uint64(ALL_DEVICES)
    check("clGetDeviceIDs", cl.clGetDeviceIDs(platform, kinds, 1, ctypes.byref(device), None))
    context = handle("clCreateContext", None, 1, ctypes.byref(device), None, None)
    queue = handle("clCreateCommandQueue", context, device, ctypes.c_uint64(0))
    kernel = build(context, twin)
    buffers = bind(context, kernel, twin)
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        for step in twin.steps or (None,):
            if step is not None:
                set_number(kernel, len(twin.arguments) - 1, step)
            enqueue(queue, kernel, twin)
        check("clFinish", cl.clFinish(queue))
        seconds.append(time.perf_counter() - start)
    compare(queue, buffers[0], twin)
    return seconds


def compare(queue: ctypes.c_void_p, buffer: ctypes.c_void_p | None, twin: Twin) -> None:
    expected = np.ascontiguousarray(twin.expected())
    result = np.empty_like(expected)
    size, data = ctypes.c_size_t(result.nbytes), result.ctypes.data_as(ctypes.c_void_p)
    offset = ctypes.c_size_t(0)
    status = cl.clEnqueueReadBuffer(queue, buffer, 1, offset, size, data, 0, None, None)
    check("clEnqueueReadBuffer", status)
    np.testing.assert_array_equal(result, expected)


if __name__ == "__main__":
    TWINS = {
        twin.__name__: twin
        for twin in (
            *(mandelbrot, reverse_array, transpose, tiled_product),
            *(histogram, bitonic_sort, sparse_product, search),
        )
    }
    print(json.dumps(run(TWINS[sys.argv[1]](), int(sys.argv[2]))))
