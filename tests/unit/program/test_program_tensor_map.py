"""Programs with tensor maps of their own: boxes sent to both blocks of a cluster, packed types."""

from pathlib import Path

import pytest
from program_run import record

from cutrace import analyze
from cutrace.tracer.simt.tma.tensor_map import TILED, TensorMap

SOURCE = r"""
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
typedef unsigned u32; typedef unsigned long long u64;
#define DO(call) do { cudaError_t e = (call); if (e) { printf("line %d: %s\n", __LINE__, \
    cudaGetErrorName(e)); exit(9); } } while (0)
__device__ u32 sh(const void *p) { return (u32)__cvta_generic_to_shared(p); }
__global__ void k(const __grid_constant__ CUtensorMap map, float *out)
{
    __shared__ alignas(128) float box[8 * 16];
    __shared__ u64 gate;
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(sh(&gate)) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 512;"
                     :: "r"(sh(&gate)) : "memory");
    }
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
    if (threadIdx.x == 0 && rank == 1)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
                     :: "r"(sh(box)), "l"(&map), "r"(36), "r"(3), "r"(sh(&gate)), "h"((short)3)
                     : "memory");
    asm volatile("{ .reg .pred p; A: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;"
                 " @!p bra A; }" :: "r"(sh(&gate)) : "memory");
    out[blockIdx.x * 128 + threadIdx.x] = box[threadIdx.x];
    asm volatile("barrier.cluster.arrive; barrier.cluster.wait;" ::: "memory");
}
int main()
{
    static float host[20 * 40], got[256];
    for (int i = 0; i < 800; i++) host[i] = i + 1;
    float *data, *out;
    DO(cudaMalloc(&data, sizeof host));
    DO(cudaMalloc(&out, sizeof got));
    DO(cudaMemcpy(data, host, sizeof host, cudaMemcpyHostToDevice));
    decltype(&cuTensorMapEncodeTiled) encode;
    cudaDriverEntryPointQueryResult found;
    DO(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode, 12000,
                                        cudaEnableDefault, &found));
    CUtensorMap map;
    cuuint64_t extents[] = {40, 20}, strides[] = {160};
    cuuint32_t box[] = {8, 16}, steps[] = {1, 1}, wide[] = {16, 16}, odd[] = {6, 16};
    auto make = [&](void *at, cuuint32_t *boxed, CUtensorMapSwizzle swizzle) {
        return encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, at, extents, strides, boxed, steps,
                      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    };
    printf("%d %d %d %d\n", make(data + 1, box, CU_TENSOR_MAP_SWIZZLE_NONE),
           make(data, odd, CU_TENSOR_MAP_SWIZZLE_NONE), make(data, wide, CU_TENSOR_MAP_SWIZZLE_32B),
           make(data, box, CU_TENSOR_MAP_SWIZZLE_NONE));
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 2;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = 2;
    config.blockDim = 128;
    config.attrs = &attribute;
    config.numAttrs = 1;
    DO(cudaLaunchKernelEx(&config, k, map, out));
    DO(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++) {
        int x = 36 + i % 8, y = 3 + i % 128 / 8;
        if (got[i] != (x < 40 && y < 20 ? host[y * 40 + x] : 0)) return printf("%d\n", i), 1;
    }
    config.gridDim = 3;
    printf("%s\n", cudaGetErrorName(cudaLaunchKernelEx(&config, k, map, out)));
    config.gridDim = attribute.val.clusterDim.x = 16; // more than 8 blocks are not portable
    printf("%s\n", cudaGetErrorName(cudaLaunchKernelEx(&config, k, map, out)));
    return 0;
}
"""


def test_a_program_sends_boxes_of_its_map_to_both_blocks_of_a_cluster(tmp_path: Path) -> None:
    done = record(tmp_path, SOURCE, options=("--nvcc-flags", "-arch=sm_90a"))
    refused = "cudaErrorInvalidClusterSize\n"  # as on an H200
    assert [each.launch.cluster for each in done.trace.launches] == [(2, 1, 1)]
    counters = analyze(done.trace, "h200").launches[0].counters
    assert [counters[f"launch__cluster_{name}"] for name in ("size", "dim_x", "dim_z")] == [2, 2, 1]
    assert done.out == f"1 1 1 0\n{refused}{refused}", done.err
    assert "a grid of 3 blocks is not made of whole clusters" in done.err


PACKED = r"""
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
static int make(void *data, int type, int swizzle, unsigned columns, unsigned wide)
{
    alignas(64) CUtensorMap map;
    cuuint64_t extents[] = {columns, 8}, strides[] = {192};
    cuuint32_t box[] = {wide, 8}, steps[] = {1, 1};
    int status = cuTensorMapEncodeTiled(
        &map, (CUtensorMapDataType)type, 2, data, extents, strides, box, steps,
        CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)swizzle,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    printf("%d", status);
    for (int i = 0; i < 16 && !status; i++) printf(" %llx", (unsigned long long)map.opaque[i]);
    printf("\n");
    return status;
}
int main()
{
    void *data;
    cudaMalloc(&data, 8192);
    printf("%llx\n", (unsigned long long)data);
    make(data, 13, 3, 256, 128);
    make(data, 14, 4, 256, 128);
    make(data, 15, 0, 256, 128);
    make(data, 0, 4, 192, 128);
    make(data, 0, 5, 192, 128);
    make(data, 0, 6, 192, 128);
    make(data, 15, 0, 192, 128); // no multiple of 128 numbers
    make(data, 14, 1, 256, 128); // a swizzle that padded numbers do not have
    make(data, 14, 0, 256, 64);  // not 128 numbers wide
    make(data, 13, 0, 255, 128); // half a byte
    make((char *)data + 16, 14, 0, 256, 128); // no multiple of 32 bytes
    return 0;
}
"""


@pytest.mark.parametrize("device", ["b200", "h100"])
def test_maps_of_packed_numbers_and_larger_atoms_are_of_10_0(tmp_path: Path, device: str) -> None:
    done = record(tmp_path, PACKED, options=("-d", device, "--nvcc-flags", "-lcuda"))
    address, *lines = done.out.splitlines()
    if device == "h100":
        assert lines == ["1"] * 11, done.err
        return
    made = [(13, 3, 256), (14, 4, 256), (15, 0, 256), (0, 4, 192), (0, 5, 192), (0, 6, 192)]
    for line, (element, swizzle, columns) in zip(lines, made, strict=False):
        status, *words = line.split()
        assert status == "0", done.err
        tensor = TensorMap(
            int(address, 16), TILED, element, (columns, 8), (192,), (128, 8), (1, 1), swizzle
        )
        found = b"".join(int(word, 16).to_bytes(8, "little") for word in words)
        assert found[:64] == tensor.encode()[:64]  # the last words describe the box
    assert lines[len(made) :] == ["1"] * 5
