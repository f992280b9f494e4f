"""A matrix product as Hopper is meant to do it: a warp group loads boxes, another multiplies."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.tracer.simt.tma.tensor_map import TensorMap

REGISTERS = ", ".join(f"%{k}" for k in range(32))
OPERANDS = ", ".join(f'"+f"(d[{k}])' for k in range(32))
SOURCE = f"""
typedef unsigned long long u64; typedef unsigned u32;
struct alignas(64) Map {{ char bytes[128]; }};
constexpr int STAGES = 2, K = 320, TILE = 64 * 64 * 2;
__device__ u32 sh(const void *p) {{ return (u32)__cvta_generic_to_shared(p); }}
__device__ void init(u64 *g, u32 n)
{{ asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(sh(g)), "r"(n) : "memory"); }}
__device__ void await(u64 *g, u32 parity)
{{ asm volatile("{{ .reg .pred p; A: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;"
               " @!p bra A; }}" :: "r"(sh(g)), "r"(parity) : "memory"); }}
__device__ void load(void *to, const Map *map, int x, int y, u64 *g)
{{ asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%0], [%1, {{%2, %3}}], [%4];"
               :: "r"(sh(to)), "l"(map), "r"(x), "r"(y), "r"(sh(g)) : "memory"); }}
__device__ u64 rows(const char *p)
{{ return 1ull << 62 | (u64)64 << 32 | 1 << 16 | (sh(p) >> 4); }}

extern "C" __global__ void __launch_bounds__(256, 1)
product(const __grid_constant__ Map a, const __grid_constant__ Map b, float *c, int n)
{{
    extern __shared__ __align__(1024) char box[];
    __shared__ u64 full[STAGES], empty[STAGES];
    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES; s++) {{ init(full + s, 1); init(empty + s, 128); }}
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
    if (threadIdx.x < 128) {{
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            for (int i = 0; i < K / 64; i++) {{
                int s = i % STAGES;
                if (i >= STAGES) await(empty + s, (i / STAGES - 1) & 1);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                             :: "r"(sh(full + s)), "r"(2 * TILE) : "memory");
                load(box + 2 * s * TILE, &a, 64 * i, 64 * blockIdx.y, full + s);
                load(box + (2 * s + 1) * TILE, &b, 64 * i, 64 * blockIdx.x, full + s);
            }}
        return;
    }}
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float d[32] = {{}};
    for (int i = 0; i < K / 64; i++) {{
        int s = i % STAGES;
        await(full + s, i / STAGES & 1);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        for (int k = 0; k < 64; k += 16)
            asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{REGISTERS}}}, "
                         "%32, %33, 1, 1, 1, 0, 0;" : {OPERANDS}
                         : "l"(rows(box + 2 * s * TILE + 2 * k)),
                           "l"(rows(box + (2 * s + 1) * TILE + 2 * k)));
        asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
                     ::: "memory");
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(sh(empty + s)) : "memory");
    }}
    int t = threadIdx.x - 128;
    for (int k = 0; k < 32; k++) {{
        int row = 64 * blockIdx.y + 16 * (t / 32) + t % 32 / 4 + 8 * (k % 4 / 2);
        c[row * n + 64 * blockIdx.x + 8 * (k / 4) + 2 * (t % 4) + k % 2] = d[k];
    }}
}}
"""


CHIP = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 0,
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": 768,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": 6144,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 0,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": 0,
    "smsp__sass_inst_executed_op_global_st.sum": 768,
}
"""What Nsight Compute counted of it on an NVIDIA H200, where the product is NumPy's, too."""


@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_a_pipeline_of_boxes_and_products_gives_the_matrix_product(
    engine: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    a = rng.integers(-3, 4, (128, 320)).astype(np.float16)
    b = rng.integers(-3, 4, (192, 320)).astype(np.float16)  # by columns: K is contiguous
    trace = tmp_path / "product.cutrace"
    with cutrace.Session(trace, engine=engine) as gpu:
        module = gpu.compile(SOURCE, arch="compute_90a")
        places = [gpu.to_device(a), gpu.to_device(b)]
        c = gpu.device_array((128, 192), np.float32)
        maps = [
            replace(TensorMap(0, 0, 6, (320, len(m)), (640,), (64, 64), (1, 1), 3),
                    address=place.address).encode()
            for m, place in zip((a, b), places, strict=True)
        ]  # fmt: skip
        module.get_function("product")[(3, 2), 256, 0, 4 * 8192 + 1024](*maps, c, 192)
        assert (c.copy_to_host() == a.astype(np.float64) @ b.T).all()
    (launch,) = cutrace.analyze(trace, device="h200").launches
    assert {metric: launch.counters[metric] for metric in CHIP} == CHIP
