"""Calls through pointers: tables, virtual functions, recursion, and pointers that lead nowhere."""

import numpy as np
import pytest
from cuda_run import run_kernel, run_under_both
from engines import compiled_where_known

from cutrace.base.errors import KernelFault


def test_lanes_call_what_their_pointers_say() -> None:
    source = """
    typedef int (*Operation)(int, int);
    __device__ int add(int a, int b) { return a + b; }
    __device__ int times(int a, int b) { return a * b; }
    __device__ Operation table[2] = {add, times};
    extern "C" __global__ void k(int *out, const int *which) {
        out[threadIdx.x] = table[which[threadIdx.x]](threadIdx.x, 3); }"""
    which = np.arange(32, dtype=np.int32) % 2
    out, _ = run_kernel(source, 1, 32, np.zeros(32, np.int32), which)
    assert out.tolist() == [3 * i if i % 2 else i + 3 for i in range(32)]


def test_virtual_functions_are_found_through_their_object() -> None:
    source = """
    struct Shape { __device__ virtual int area(int x) = 0; };
    struct Square : Shape { __device__ int area(int x) { return x * x; } };
    struct Strip : Shape { int height; __device__ Strip(int h) : height(h) {}
                           __device__ int area(int x) { return x * height; } };
    extern "C" __global__ void k(int *out) {
        Square square; Strip strip(10);
        Shape *shape = threadIdx.x & 1 ? (Shape *)&strip : (Shape *)&square;
        out[threadIdx.x] = shape->area(threadIdx.x); }"""
    (out,) = run_kernel(source, 1, 32, np.zeros(32, np.int32))
    assert out.tolist() == [10 * i if i % 2 else i * i for i in range(32)]


def test_a_function_calls_itself_through_a_pointer() -> None:
    source = """
    typedef int (*Function)(int);
    __device__ int factorial(int n);
    __device__ Function again = factorial;
    __device__ int factorial(int n) { return n < 2 ? 1 : n * again(n - 1); }
    extern "C" __global__ void k(int *out) { out[threadIdx.x] = factorial(threadIdx.x % 8); }"""
    (out,) = run_kernel(source, 1, 32, np.zeros(32, np.int32))
    assert out[:8].tolist() == [1, 1, 2, 6, 24, 120, 720, 5040]


def test_a_pointer_to_no_function_is_a_fault_at_its_call() -> None:
    source = """
    typedef int (*Function)(int);
    __device__ int same(int n) { return n; }
    __device__ Function table[2] = {same, 0};
    extern "C" __global__ void k(int *out, int which) { out[0] = table[which](1); }"""
    with pytest.raises(KernelFault, match="calls through a pointer that is not the address"):
        run_kernel(source, 1, 1, np.zeros(1, np.int32), 1)


def test_a_pointer_that_no_function_fits_is_a_fault_only_where_it_is_called() -> None:
    source = """
    typedef int (*Ending)(long long, int);
    extern "C" __global__ void k(int *out, long long ending) {
        out[threadIdx.x] = ending ? ((Ending)ending)(1, 2) : 5; }"""
    (out,) = run_under_both(source, 1, 32, np.zeros(32, np.int32), 0)
    assert out.tolist() == [5] * 32
    with (
        pytest.raises(KernelFault, match="calls through a pointer that is not the address"),
        compiled_where_known(),
    ):
        run_kernel(source, 1, 32, np.zeros(32, np.int32), 64)


def test_a_dense_switch_sends_each_lane_its_way() -> None:
    cases = "".join(f"case {k}: v = i * {k + 3} ^ {7 * k}; break;" for k in range(12))
    source = f"""
    extern "C" __global__ void k(int *out, const int *which) {{
        int i = threadIdx.x, v = -1;
        switch (which[i]) {{ {cases} }}
        out[i] = v; }}"""
    which = (np.arange(32, dtype=np.int32) * 5) % 14
    out, _ = run_kernel(source, 1, 32, np.zeros(32, np.int32), which)
    expected = [i * (w + 3) ^ 7 * w if w < 12 else -1 for i, w in enumerate(which.tolist())]
    assert out.tolist() == expected
