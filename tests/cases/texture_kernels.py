"""Kernels that sample textures, and what was recorded of one."""

from pathlib import Path

import numpy as np

from cutrace.traces.reader import LaunchTrace, read_trace
from cutrace.traces.verify import verify

FETCH = """
__global__ void fetch(float *out, cudaTextureObject_t in, int shift)
{
    out[threadIdx.x] = tex1Dfetch<float>(in, threadIdx.x + shift);
}
"""
SAMPLE = """
__global__ void image(float *out, cudaTextureObject_t in, const float *x, const float *y)
{
    out[threadIdx.x] = tex2D<float>(in, x[threadIdx.x], y[threadIdx.x]);
}
"""
REFERENCES = """
texture<float, 2, cudaReadModeElementType> picture;
texture<uchar4, 1, cudaReadModeNormalizedFloat> colours;
__constant__ float scale;

__global__ void both(float *out)
{
    out[threadIdx.x] = scale * tex2D(picture, threadIdx.x + 0.5f, 1.5f)
                     + tex1Dfetch(colours, threadIdx.x).z;
}
"""
OLD = """
.version 4.2
.target sm_20
.address_size 64
.global .texref picture;
.visible .entry old(.param .u64 out)
{
    .reg .u32 %r<2>;
    .reg .u64 %rd<4>;
    .reg .f32 %f<8>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [picture, {%r1}];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.f32 [%rd3], %f1;
    ret;
}
"""
EARLIEST = OLD.replace(".global .texref", ".tex .u64").replace("{%r1}]", "{%r1, %r1, %r1, %r1}]")
ROW = np.arange(10, 50, dtype=np.float32)


def launch_of(path: Path) -> LaunchTrace:
    """The only launch of a trace that keeps its promises."""
    trace = read_trace(path)
    assert verify(trace) == []
    (launch,) = trace.launches
    return launch
