"""Kernels that launch kernels: run when they have ended, in the order of the calls."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import assert_same_under_both
from program_run import HEAD, record, record_built

import cutrace
from cutrace.tracer.simt.memory.device_runtime import DeviceLaunch

TREE = """
__global__ void note(int *order, int what) { order[atomicAdd(order, 1) + 1] = what; }

struct Pair { char first; double second; };
__global__ void add(double *sum, Pair pair) { atomicAdd(sum, pair.first + pair.second); }

__global__ void grow(int depth, int *order, double *sum)
{
    if (threadIdx.x) return;
    note<<<1, 1, 0, cudaStreamTailLaunch>>>(order, 10 + depth);
    if (depth) grow<<<1, 32>>>(depth - 1, order, sum);
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    note<<<1, 1, 0, stream>>>(order, depth);
    cudaStreamDestroy(stream);
    add<<<2, 3>>>(sum, Pair{1, 0.5});
    add<<<0, 3>>>(sum, Pair{1, 0.5});
}

int main()
{
    int *order;
    double *sum;
    CHECK(cudaMallocManaged(&order, 64));
    CHECK(cudaMallocManaged(&sum, 8));
    memset(order, 0, 64);
    *sum = 0;
    grow<<<1, 32>>>(2, order, sum);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < order[0]; ++i) printf("%d ", order[i + 1]);
    printf("%.1f", *sum);
}
"""


def test_kernels_launch_kernels_and_tail_launches_come_last(tmp_path: Path) -> None:
    done = record(tmp_path, TREE, options=("--nvcc-flags=-rdc=true",))
    # depth 0 notes itself and then its tail, before depth 1 goes on; 3 grids of 6 threads add 1.5
    assert (done.status, done.out) == (0, "0 10 1 11 2 12 27.0"), done.err
    names = [each.launch.signature.partition("(")[0] for each in done.trace.launches]
    assert names == [
        *("grow", "grow", "grow", "note", "add", "note"),
        *("note", "add", "note", "note", "add", "note"),
    ]


PARENT = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2
(.param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2 (.param .b64 p, .param .b64 s);
.visible .entry child(.param .u64 out, .param .u32 n) { ret; }
.visible .entry parent(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %a<4>; .reg .pred %p<2>;
    .param .b64 f; .param .align 4 .b8 g[12]; .param .align 4 .b8 b[12]; .param .b32 s;
    .param .b64 p; .param .b64 q; .param .b64 t; .param .b32 e;
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra DONE;
    mov.u64 %a1, child;
    st.param.b64 [f], %a1;
    st.param.b32 [g], %r1; st.param.b32 [g+4], 1; st.param.b32 [g+8], 1;
    st.param.b32 [b], 32; st.param.b32 [b+4], 1; st.param.b32 [b+8], 1;
    st.param.b32 [s], 0;
    call (p), __cudaCDP2GetParameterBufferV2, (f, g, b, s);
    ld.param.b64 %a2, [p];
    st.u32 [%a2+8], %r1;
    st.param.b64 [q], %a2; st.param.b64 [t], 0;
    call (e), __cudaCDP2LaunchDeviceV2, (q, t);
    ld.param.b32 %r3, [e];
    ld.param.u64 %a3, [out];
    mad.wide.u32 %a3, %r1, 4, %a3;
    st.global.u32 [%a3], 7;
DONE:
    ret;
}
"""


def test_lanes_launch_in_order_under_both_engines(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[Any]:
        out = gpu.device_array(64, np.int32)
        gpu.load_ptx(PARENT).get_function("parent")[1, 64](out)
        taken = gpu._recording.memory.device_launches.take()
        asked = [each for each in taken if isinstance(each, DeviceLaunch)]
        assert [each.grid[0] for each in asked] == list(range(1, 64, 2))
        assert {(each.kernel, each.block, each.shared) for each in asked} == {
            ("child", (32, 1, 1), 0)
        }
        assert len({each.buffer for each in asked}) == 32
        return [out.copy_to_host()]

    assert_same_under_both(tmp_path, run)


def test_a_call_of_the_device_runtime_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    source = (
        "__global__ void k(int *n) { cudaDeviceGetAttribute(n, cudaDevAttrWarpSize, 0); }\n"
        "int main() { int *n; CHECK(cudaMalloc(&n, 4)); k<<<1, 1>>>(n);"
        " puts(cudaGetErrorName(cudaDeviceSynchronize())); }\n"
    )
    done = record(tmp_path, source, options=("--nvcc-flags=-rdc=true",))
    assert "cutrace does not have the function `__cudaCDP2DeviceGetAttribute`" in done.err


NINE = """
__global__ void c() {}
__global__ void forget() { for (int i = 0; i < 9; ++i) c<<<1, 1, 0, cudaStreamFireAndForget>>>(); }
__global__ void wait() { for (int i = 0; i < 9; ++i) c<<<1, 1, 0, 0>>>(); }
int main(int, char **words)
{
    if (words[1][0] == 'f') forget<<<1, 1>>>(); else wait<<<1, 1>>>();
    cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize("stream", ["forget", "wait"])
def test_a_launch_keeps_to_the_limit_on_launches(stream: str, tmp_path: Path) -> None:
    options = ("--launches", "3")
    done = record_built(tmp_path, HEAD + NINE, stream, words=["-rdc=true"], options=options)
    assert len(done.trace.launches) == 3, done.err


KEEPER = """
__global__ void fill(int *to) { to[threadIdx.x] = 10 + threadIdx.x; }
__global__ void add(int *to, int *from) { to[threadIdx.x] += from[threadIdx.x]; }
__global__ void give_back(int *data) { cudaFree(data); }

__global__ void work(int *out)
{
    int *own = NULL, *none = NULL;
    if (cudaMalloc(&own, 8 * sizeof(int)) || !own) return;
    if (cudaMalloc(&none, 1ull << 40) != cudaErrorMemoryAllocation || none) return;
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaMemsetAsync(out, 1, 8 * sizeof(int), stream);
    fill<<<1, 8, 0, stream>>>(own);
    add<<<1, 8, 0, stream>>>(out, own);
    cudaMemcpyAsync(out + 8, out, 4 * sizeof(int), cudaMemcpyDeviceToDevice, stream);
    give_back<<<1, 1, 0, stream>>>(own);
}

int main()
{
    int *out;
    CHECK(cudaMallocManaged(&out, 16 * sizeof(int)));
    memset(out, 0, 16 * sizeof(int));
    work<<<1, 1>>>(out);
    CHECK(cudaDeviceSynchronize());
    printf("%d %d %d %d", out[0] - 0x01010101, out[7] - 0x01010101, out[11] - 0x01010101, out[12]);
}
"""


def test_kernels_allocate_set_and_copy_in_the_order_of_their_calls(tmp_path: Path) -> None:
    done = record(tmp_path, KEEPER, options=("--nvcc-flags=-rdc=true",))
    # each int is 0x01010101 of the set plus 10 + its place; 4 of them are copied behind
    assert (done.status, done.out) == (0, "10 17 13 0"), done.err
    events = done.trace.manifest.events
    assert [(e.kind, e.bytes) for e in events if e.kind != "launch"] == [("set", 32), ("copy", 16)]
