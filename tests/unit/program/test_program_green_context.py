"""A program divides the multiprocessors of its device among green contexts."""

from pathlib import Path

import pytest
from program_run import record

SOURCE = r"""
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
__global__ void k(int *out) { out[threadIdx.x] = threadIdx.x; }
int main()
{
    CUdevResource all, parts[3], rest, got;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUcontext context, current;
    CUstream stream;
    CUevent event;
    int *out, host[32];
    unsigned groups = 0;
    cudaFree(0);
    cuCtxGetCurrent(&current);
    printf("%d", cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    printf(" %u %u %u\n", all.sm.smCount, all.sm.minSmPartitionSize, all.sm.smCoscheduledAlignment);
    printf("%d", cuDevSmResourceSplitByCount(NULL, &groups, &all, NULL, 0, 10));
    printf(" %u\n", groups);
    groups = 2;
    printf("%d", cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 10));
    printf(" %u %u %u\n", groups, parts[1].sm.smCount, rest.sm.smCount);
    printf("%d", cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 1000));
    printf(" %d\n", cuDevResourceGenerateDesc(&description, parts, 2));
    printf("%d ", cuGreenCtxCreate(&green, description, 0, 0)); // no default stream
    printf("%d", cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    printf(" %d", cuGreenCtxGetDevResource(green, &got, CU_DEV_RESOURCE_TYPE_SM));
    printf(" %u\n", got.sm.smCount);
    printf("%d ", cuCtxFromGreenCtx(&context, green));
    cuCtxGetDevResource(context, &got, CU_DEV_RESOURCE_TYPE_SM);
    printf("%u ", got.sm.smCount);
    cuCtxGetDevResource(current, &got, CU_DEV_RESOURCE_TYPE_SM);
    printf("%u\n", got.sm.smCount);
    cuCtxGetCurrent(&context);
    printf("%d %d\n", context == current,
           cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
    cudaMalloc(&out, 128);
    k<<<1, 32, 0, stream>>>(out);
    cuEventCreate(&event, 0);
    printf("%d %d\n", cuGreenCtxRecordEvent(green, event), cuEventSynchronize(event));
    cudaMemcpy(host, out, 128, cudaMemcpyDeviceToHost);
    printf("%d %d %d\n", host[31], cuStreamDestroy(stream), cuGreenCtxDestroy(green));
    return 0;
}
"""


@pytest.mark.parametrize(
    ("device", "all_", "groups", "size"),
    [("h100", (132, 8, 8), 8, 16), ("a100", (108, 4, 2), 10, 10)],
)
def test_multiprocessors_are_divided_in_whole_partitions(
    tmp_path: Path, device: str, all_: tuple[int, ...], groups: int, size: int
) -> None:
    done = record(tmp_path, SOURCE, options=("-d", device, "--nvcc-flags", "-lcuda"))
    count = all_[0]
    wanted = [
        f"0 {' '.join(map(str, all_))}",
        f"0 {groups}",  # parts of 10 multiprocessors, rounded up
        f"0 2 {size} {count - 2 * size}",
        "1 0",  # more than there are; what was divided before
        f"1 0 0 {2 * size}",
        f"0 {2 * size} {count}",
        "1 0",  # a green context does not become current
        "0 0",
        "31 0 0",
    ]
    assert done.out.splitlines() == wanted, done.err
    assert len(done.trace.launches) == 1
