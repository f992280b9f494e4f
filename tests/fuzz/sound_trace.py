"""Small traces that are sound, for others to damage: of everything that a trace may hold."""

from pathlib import Path

import numpy as np

import cutrace

SOURCE = """\
__constant__ float weights[4] = {1, 2, 3, 4};
__device__ int total;

__global__ void mix(float *out, const float *in, int n)
{
    __shared__ float tile[64];
    float own[6];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    tile[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int k = 0; k < 6; k++) own[k] = weights[k % 4] * tile[(t * (k + 1)) % 64];
    for (int k = 0; k < t % 5; k++) tile[t] += own[(t + k) % 6];
    if (i % 3 == 0) atomicAdd(&total, 1);
    else if (i % 3 == 1) tile[t] = sqrtf(tile[t]);
    __syncthreads();
    if (i < n) out[i] = tile[63 - t];
}
__global__ void sample(float *out, cudaTextureObject_t picture)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex2D<float>(picture, i % 7 + 0.5f, i / 7 + 0.5f);
}
__global__ void past(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i + 5];
}
"""


def sound_traces(folder: Path) -> list[Path]:
    """Record one with everything, one of a sample of blocks, and one of parts."""
    parts = {"spaces": "global,shared", "lines": "9,16", "blocks": "0-1"}
    return [
        _record(folder / "all.cutrace"),
        _record(folder / "sample.cutrace", sample_blocks=3),
        _record(folder / "parts.cutrace", only=parts),
    ]


def _record(path: Path, **options: object) -> Path:
    with cutrace.Session(path, bounds="report", **options) as gpu:  # type: ignore[arg-type]
        module = gpu.compile(SOURCE)
        a = gpu.to_device(np.arange(300, dtype=np.float32), "a")
        out = gpu.device_array(320, np.float32, "out")
        module.get_function("mix")[5, 64](out, a, 300)
        picture = gpu.texture(np.ones((6, 7), np.float32), name="picture")
        module.get_function("sample")[2, 40](out, picture)
        module.get_function("past")[5, 64](out, a)
        out.copy_to_host()
    return path
