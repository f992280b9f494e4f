"""Streams that wait for a value in memory: what is behind the wait runs when the value is there."""

from pathlib import Path

import pytest
from program_run import record

pytestmark = pytest.mark.slow

WAITS = r"""
#include <cuda.h>
#include <thread>
#include <unistd.h>
__global__ void add(int *x, int n) { *x += n; }
__global__ void scale(int *x, int n) { *x *= n; }
#define DO(call) do { int did = (call); if (did) { printf("line %d: %d\n", __LINE__, did); \
    exit(9); } } while (0)
int main() {
    int *x, *host; cudaStream_t a, b, c; cudaEvent_t after; CUdeviceptr flag;
    CHECK(cudaMalloc(&x, 64)); CHECK(cudaMemset(x, 0, 64)); CHECK(cudaMallocHost(&host, 64));
    CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking)); CHECK(cudaEventCreate(&after));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
    flag = (CUdeviceptr)(x + 4);
    DO(cuStreamWaitValue32(b, flag, 7, CU_STREAM_WAIT_VALUE_EQ));
    add<<<1, 1, 0, b>>>(x, 5); CHECK(cudaEventRecord(after, b));
    CHECK(cudaStreamWaitEvent(c, after)); scale<<<1, 1, 0, c>>>(x, 10);
    CHECK(cudaMemcpy(host, x, 4, cudaMemcpyDeviceToHost));
    printf("%d %d %d\n", *host, cudaStreamQuery(b) == cudaErrorNotReady,
           cudaEventQuery(after) == cudaErrorNotReady);
    DO(cuStreamWriteValue32(a, flag, 6, 0)); printf("%d\n", cudaStreamQuery(c) != cudaSuccess);
    DO(cuStreamWriteValue32(a, flag, 7, 0));
    CHECK(cudaStreamSynchronize(c)); CHECK(cudaMemcpy(host, x, 4, cudaMemcpyDeviceToHost));
    printf("%d\n", *host);
    volatile int *ready = host + 1; *ready = 0;
    DO(cuStreamWaitValue32(b, (CUdeviceptr)ready, 3, CU_STREAM_WAIT_VALUE_GEQ));
    add<<<1, 1, 0, b>>>(x, 1);
    std::thread later([=] { usleep(100000); *ready = 4; });
    CHECK(cudaStreamSynchronize(b)); later.join();
    DO(cuStreamWriteValue64(b, flag + 8, 1ull << 40, 0));
    CUstreamBatchMemOpParams all[2] = {};
    all[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_64; all[0].waitValue.address = flag + 8;
    all[0].waitValue.value64 = 3ull << 40; all[0].waitValue.flags = CU_STREAM_WAIT_VALUE_AND;
    all[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32; all[1].writeValue.address = flag;
    all[1].writeValue.value = 9; DO(cuStreamBatchMemOp(a, 2, all, 0));
    CHECK(cudaDeviceSynchronize()); CHECK(cudaMemcpy(host, x, 32, cudaMemcpyDeviceToHost));
    printf("%d %d\n", host[0], host[4]);
}
"""


def test_what_waits_for_a_value_runs_when_it_is_written(tmp_path: Path) -> None:
    done = record(tmp_path, WAITS, options=["--nvcc-flags=-lcuda"])
    assert (done.status, done.out) == (0, "0 1 1\n1\n50\n51 9\n"), done.err
    names = [launch.launch.kernel for launch in done.trace.launches]
    assert names == ["_Z3addPii", "_Z5scalePii", "_Z3addPii"]
