"""Generic addresses in machine code: lanes in one state space, in several, among parameters."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import assert_same_under_both
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import KernelFault
from cutrace.traces.reader import read_trace
from cutrace.traces.verify import verify

SHAPES = [(3, 128), (2, 33), (5, 40), (1, 64)]

TREE = r"""
struct Node { Node *left, *right; int value; };
__noinline__ __device__ int sum(const Node *n)
{
    return n ? n->value + sum(n->left) + sum(n->right) : 0;
}
__global__ void build(Node *nodes, int n)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    nodes[i].left = 2 * i + 1 < n ? nodes + 2 * i + 1 : 0;
    nodes[i].right = 2 * i + 2 < n ? nodes + 2 * i + 2 : 0;
    nodes[i].value = i;
}
__global__ void walk(Node *nodes, int n, int *out)
{
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    out[i] = sum(nodes + i % n);
}
"""


def below(i: int, n: int) -> int:
    """The sum of the values of a node and all below it."""
    return i + below(2 * i + 1, n) + below(2 * i + 2, n) if i < n else 0


def test_a_walk_through_a_tree_runs_compiled(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[NDArray[Any]]:
        module = gpu.compile(TREE)
        nodes = gpu.device_array(24 * 50, np.uint8)
        module.get_function("build")[1, 64](nodes, 50)
        found = []
        for blocks, threads in SHAPES:
            out = gpu.device_array(blocks * threads, np.int32)
            module.get_function("walk")[blocks, threads](nodes, 50, out)
            found.append(out.copy_to_host())
            wanted = [below(i % 50, 50) for i in range(blocks * threads)]
            assert found[-1].tolist() == wanted
        return found

    assert_same_under_both(tmp_path, run)


SPACES = r"""
__constant__ int fixed[4] = {5, 6, 7, 8};
__global__ void spaces(int *g, int *out, int by)
{
    __shared__ int s[128];
    int l[4], t = threadIdx.x, i = t + blockIdx.x * blockDim.x, found = 0;
    s[t] = 1000 + t;
    for (int k = 0; k < 4; ++k) l[k] = 2000 + t;
    __syncthreads();
    int *own[4] = {g + i, s + t, l + (t & 3), fixed + (t & 3)};
    int *volatile *pointers = own;
    for (int k = 0; k < 4; ++k) {
        int *p = pointers[(k + t / by) % 4];
        found = 3 * found + *p;
        if (p != own[3]) { *p += 1; if (t & 1) atomicAdd(p, 10); }
    }
    out[i] = found;
}
"""


def spread(i: int, t: int, by: int) -> int:
    values, found = [i, 1000 + t, 2000 + t, 5 + (t & 3)], 0
    for k in range(4):
        found = 3 * found + values[(k + t // by) % 4]
    return found


@pytest.mark.parametrize("by", [1024, 32, 3])
def test_lanes_go_to_one_space_or_to_several(by: int, tmp_path: Path) -> None:
    """A launch whole, warp by warp, and lane by lane: then a row has several parts."""

    def run(gpu: cutrace.Session) -> list[NDArray[Any]]:
        kernel = gpu.compile(SPACES).get_function("spaces")
        found = []
        for blocks, threads in SHAPES:
            count = blocks * threads
            g = gpu.to_device(np.arange(count, dtype=np.int32))
            out = gpu.device_array(count, np.int32)
            kernel[blocks, threads](g, out, by)
            found += [g.copy_to_host(), out.copy_to_host()]
            assert found[-2].tolist() == [i + 1 + 10 * (i % threads & 1) for i in range(count)]
            assert found[-1].tolist() == [spread(i, i % threads, by) for i in range(count)]
        return found

    assert_same_under_both(tmp_path, run)


@pytest.mark.parametrize("by", [32, 3])
def test_parts_are_numbered_from_0_in_every_warp(by: int, tmp_path: Path) -> None:
    """Warp 0 reaches other spaces than warp 1: what one reaches does not count for the other."""
    trace = tmp_path / "t.cutrace"
    with cutrace.Session(trace) as gpu:
        g, out = gpu.device_array(128, np.int32), gpu.device_array(128, np.int32)
        gpu.compile(SPACES).get_function("spaces")[1, 128](g, out, by)
    found = read_trace(trace)
    assert list(verify(found)) == []
    parts = found.launches[0].accesses()["part"].to_pylist()
    assert max(parts) == (0 if by == 32 else 3)


TWO_OF_THREE = r"""
extern "C" __global__ void two(int *g)
{
    __shared__ int s[64];
    int l[2] = {0, 0};
    int t = threadIdx.x, odd = t & 1;
    int *p = odd ? g + t : t < 32 ? s + t : l + (g[0] & 1);
    *p = t;
    g[t] += l[0];
}
"""


def test_parts_of_a_warp_are_in_order_where_warps_share_their_second(tmp_path: Path) -> None:
    """Even lanes reach shared memory in warp 0 and local memory in warp 1, odd ones an array."""

    def run(gpu: cutrace.Session) -> list[NDArray[Any]]:
        g = gpu.to_device(np.zeros(64, np.int32))
        gpu.compile(TWO_OF_THREE).get_function("two")[1, 64](g)
        return [g.copy_to_host()]

    found = read_trace(assert_same_under_both(tmp_path, run))
    assert list(verify(found)) == []
    assert 1 in found.launches[0].accesses()["part"].to_pylist()


PARAMETERS = r"""
struct Big { int a[16]; float f; };
__noinline__ __device__ int pick(const int *p, int k) { return p[k & 15]; }
__global__ void fixed(const __grid_constant__ Big b, int *out)
{
    int t = threadIdx.x + blockIdx.x * blockDim.x;
    out[t] = pick(b.a, t) + pick(out, t) + b.a[(t * 3) & 15];
}
__global__ void beyond(const __grid_constant__ Big b, int *out, int n)
{
    out[threadIdx.x] = b.a[threadIdx.x * n];
}
"""


def big() -> Any:
    values = np.zeros(1, dtype=[("a", "i4", 16), ("f", "f4")])
    values["a"][0] = np.arange(16) * 3 + 1
    return values[0]


def test_parameters_are_read_through_pointers_of_both_kinds(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[NDArray[Any]]:
        out = gpu.device_array(16, np.int32)
        gpu.compile(PARAMETERS).get_function("fixed")[1, 16](big(), out)
        found = out.copy_to_host()
        assert found.tolist() == [3 * t + 1 + 3 * (t * 3 & 15) + 1 for t in range(16)]
        return [found]

    assert_same_under_both(tmp_path, run)


def test_a_lane_beyond_the_parameters_is_told_in_the_same_words(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> None:
        out = gpu.device_array(40, np.int32)
        gpu.compile(PARAMETERS).get_function("beyond")[1, 40](big(), out, 100)

    words = []
    for engine in ("array", "compiled"):
        session = cutrace.Session(tmp_path / "fault.cutrace", engine=engine)
        with pytest.raises(KernelFault, match="outside of its param") as caught, session as gpu:
            run(gpu)
        words.append(str(caught.value))
    assert words[0] == words[1]
