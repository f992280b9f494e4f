"""Clusters: blocks that are resident together, meet, and reach one another's shared memory."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import CutraceError, KernelFault

CG = "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n"
HEAD = """
__device__ unsigned rank()
{ unsigned r; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ int *at(int *p, unsigned rank)
{ int *q; asm("mapa.u64 %0, %1, %2;" : "=l"(q) : "l"(p), "r"(rank)); return q; }
__device__ void arrive() { asm volatile("barrier.cluster.arrive;" ::: "memory"); }
__device__ void wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }
"""


def launch(
    source: str, configuration: tuple[object, ...], *arrays: NDArray[Any]
) -> list[NDArray[Any]]:
    with cutrace.Session() as gpu:
        module = gpu.compile(source, arch="compute_90")
        devices = [gpu.to_device(a) for a in arrays]
        (name,) = module.kernels
        module.get_function(name)[configuration](*devices)
        return [d.copy_to_host() for d in devices]


HISTOGRAM = f"""{CG}
extern "C" __global__ void __cluster_dims__(4, 1, 1) k(const int *in, int *out) {{
    __shared__ int bins[64];
    cg::cluster_group cluster = cg::this_cluster();
    bins[threadIdx.x] = 0;
    cluster.sync();
    for (int i = blockIdx.x * 64 + threadIdx.x; i < 3000; i += gridDim.x * 64) {{
        int bin = in[i] & 255;
        atomicAdd(cluster.map_shared_rank(bins, bin >> 6) + (bin & 63), 1);
    }}
    cluster.sync();
    atomicAdd(&out[cluster.block_rank() * 64 + threadIdx.x], bins[threadIdx.x]);
}}"""


def test_a_histogram_over_the_shared_memory_of_four_blocks_counts_as_numpy_does() -> None:
    values = np.random.default_rng(1).integers(0, 1 << 20, 3000).astype(np.int32)
    _, bins = launch(HISTOGRAM, (8, 64), values, np.zeros(256, np.int32))
    assert bins.tolist() == np.bincount(values & 255, minlength=256).tolist()


def test_blocks_of_a_cluster_in_three_dimensions_have_rank_and_place_and_read_the_next() -> None:
    source = (
        CG
        + """
    extern "C" __global__ void k(int *out) {
        cg::cluster_group c = cg::this_cluster();
        unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        __shared__ unsigned mine;
        mine = block;
        c.sync();
        unsigned next = *c.map_shared_rank(&mine, (c.block_rank() + 1) % c.num_blocks());
        unsigned nclusters, cluster;
        asm("mov.u32 %0, %%nclusterid.y;" : "=r"(nclusters));
        asm("mov.u32 %0, %%clusterid.y;" : "=r"(cluster));
        c.sync();
        int *row = out + 5 * block;
        row[0] = c.block_rank();
        row[1] = c.block_index().x + 10 * c.block_index().y + 100 * c.block_index().z;
        row[2] = next;
        row[3] = c.dim_blocks().x + 10 * c.dim_blocks().y + 100 * c.dim_blocks().z;
        row[4] = 10 * nclusters + cluster;
    }"""
    )
    (out,) = launch(source, ((4, 6, 2), 64, 0, 0, (2, 3, 1)), np.zeros((48, 5), np.int32))
    for block in range(48):
        x, y, z = block % 4, block // 4 % 6, block // 24
        rank = x % 2 + 2 * (y % 3)
        after = (rank + 1) % 6
        following = (x - x % 2 + after % 2) + 4 * (y - y % 3 + after // 2) + 24 * z
        expected = [rank, x % 2 + 10 * (y % 3), following, 2 + 30 + 100, 10 * 2 + y // 3]
        assert out[block].tolist() == expected


def test_without_a_cluster_each_block_is_one_and_says_that_nobody_asked() -> None:
    source = """
    extern "C" __global__ void k(unsigned *out) {
        unsigned asked, rank, blocks;
        asm("{ .reg .pred p; mov.pred p, %%is_explicit_cluster; selp.u32 %0, 1, 0, p; }"
            : "=r"(asked));
        asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
        asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(blocks));
        out[blockIdx.x] = asked + 10 * rank + 100 * blocks;
    }"""
    assert launch(source, (4, 32), np.zeros(4, np.uint32))[0].tolist() == [100] * 4
    asked = launch(source, (4, 32, 0, 0, (2, 1, 1)), np.zeros(4, np.uint32))[0].tolist()
    assert asked == [201, 211, 201, 211]


def _bare(body: str) -> str:
    """A kernel in clusters of two; its body begins in line 10."""
    return (
        f'{HEAD}extern "C" __global__ void __cluster_dims__(2, 1, 1)\nk(int *out) {{\n{body}\n}}\n'
    )


def test_arrivals_go_on_and_only_the_wait_waits() -> None:
    body = """__shared__ int box;
    if (threadIdx.x == 0) box = 7 + blockIdx.x;
    arrive();
    out[2 * blockIdx.x] = 1;
    wait();
    if (threadIdx.x == 0) out[2 * blockIdx.x + 1] = *at(&box, 1 - rank());
    arrive(); wait();"""
    assert launch(_bare(body), (2, 96), np.zeros(4, np.int32))[0].tolist() == [1, 8, 1, 7]


def test_threads_that_have_exited_are_not_waited_for() -> None:
    body = """if (threadIdx.x >= 40 || (blockIdx.x == 1 && threadIdx.x >= 32)) return;
    arrive(); wait();
    out[blockIdx.x * 40 + threadIdx.x] = 1;"""
    (out,) = launch(_bare(body), (2, 96), np.zeros(80, np.int32))
    assert out.tolist() == [1] * 72 + [0] * 8


def test_lanes_of_one_warp_may_come_to_the_barrier_one_side_after_the_other() -> None:
    body = """if (threadIdx.x < 11) { arrive(); wait(); out[threadIdx.x] = 3; }
    else { arrive(); wait(); out[threadIdx.x] = 4; }"""
    assert launch(_bare(body), (2, 32), np.zeros(32, np.int32))[0].tolist() == [3] * 11 + [4] * 21


def test_sides_of_a_warp_that_both_wait_let_a_later_block_come() -> None:
    body = """int n = 0;
    if (rank()) { arrive(); wait(); n = 300; }
    else {
        arrive(); wait(); arrive();
        if (threadIdx.x < 11) { wait(); out[threadIdx.x] = 3; }
        else { wait(); out[threadIdx.x] = 4; }
    }
    #pragma unroll 1
    for (int i = 0; i < n; i++) asm volatile("nanosleep.u32 1;");
    if (n) { arrive(); wait(); }"""
    assert launch(_bare(body), (2, 32), np.zeros(32, np.int32))[0].tolist() == [3] * 11 + [4] * 21


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("arrive();\narrive();", r"source\.cu:6: .*block 0 arrives again, and has not waited"),
        ("wait();", r"source\.cu:7: a thread of block 0 waits without having arrived at the"),
        (
            'if (blockIdx.x) asm volatile("bar.sync 1, 64;");\narrive(); wait();',
            r"in block 0 warp 0 waits at the barrier of the cluster \(source\.cu:7\), and nobody",
        ),
        (
            """__shared__ int box;
            box = 1;
            arrive(); wait();
            if (blockIdx.x) return;
            #pragma unroll 1
            for (int i = 0; i < 300; i++) asm volatile("nanosleep.u32 1;");
            out[0] = *at(&box, 1);""",
            r"source\.cu:16: .*reads shared address 0x0 of block \(1, 0, 0\), which has ended",
        ),
        (
            """__shared__ int box[4];
            arrive(); wait();
            at(box, 1 - rank())[4 + threadIdx.x] = 5;
            arrive(); wait();""",
            r"source\.cu:12: .*writes 4 bytes outside at shared address",
        ),
        (
            "__shared__ int box;\nout[0] = *at(&box, 2);",
            r"source\.cu:\d+: .*reads 4 bytes outside at shared address",
        ),
    ],
)
def test_what_a_cluster_may_not_do_is_a_fault(body: str, said: str) -> None:
    with pytest.raises(KernelFault, match=said):
        launch(_bare(body), (2, 32), np.zeros(1, np.int32))


@pytest.mark.parametrize(
    ("cluster", "grid", "said"),
    [
        ((17, 1, 1), 17, "17 blocks a cluster, expected 1 to 16: no device has more"),
        ((3, 1, 1), 8, "a grid of 8 blocks is not made of whole clusters"),
        ((2, 2, 5), (2, 2, 5), "20 blocks a cluster"),
    ],
)
def test_cluster_sizes_that_no_device_has_are_refused(cluster, grid, said) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CutraceError, match=said):
        launch('extern "C" __global__ void k(int *a) {}', (grid, 32, 0, 0, cluster), np.zeros(1))


def test_a_cluster_other_than_the_kernel_demands_is_refused() -> None:
    with pytest.raises(CutraceError, match=r"demands clusters of \(2, 1, 1\) blocks"):
        launch(_bare(""), (4, 32, 0, 0, (4, 1, 1)), np.zeros(1, np.int32))


def test_an_address_of_a_block_that_the_cluster_has_not_may_be_computed() -> None:
    body = """__shared__ int box[1];
    box[0] = 3;
    int *other = at(box, threadIdx.x); // ranks 0 to 31 in a cluster of 2
    arrive(); wait();
    if (threadIdx.x < 2) out[2 * blockIdx.x + threadIdx.x] = *other + 10 * threadIdx.x;
    arrive(); wait();"""
    (found,) = launch(_bare(body), (2, 32), np.zeros(4, np.int32))
    assert found.tolist() == [3, 13, 3, 13]
