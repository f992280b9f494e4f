"""Take the samples of tests/cases/texture_case.py on a GPU and keep what it answers.

`python scripts/capture/texture.py [OUT.parquet]` needs CuPy, NumPy and pyarrow, and nothing of
cutrace. A row a case: its name and 256 samples.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from cupy.cuda import runtime, texture

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from cases.texture_case import LANES, Case, texture_cases  # noqa: E402

SOURCE = r"""
extern "C" {
__global__ void dims1(cudaTextureObject_t t, const float *x, float *out)
{ int i = threadIdx.x; out[i] = tex1D<float>(t, x[i]); }
__global__ void dims2(cudaTextureObject_t t, const float *x, const float *y, float *out)
{ int i = threadIdx.x; out[i] = tex2D<float>(t, x[i], y[i]); }
__global__ void dims3(cudaTextureObject_t t, const float *x, const float *y, const float *z,
                      float *out)
{ int i = threadIdx.x; out[i] = tex3D<float>(t, x[i], y[i], z[i]); }
__global__ void fetch1(cudaTextureObject_t t, const int *x, float *out)
{ int i = threadIdx.x; out[i] = tex1Dfetch<float>(t, x[i]); }
}
"""
MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
KINDS = {
    "f": runtime.cudaChannelFormatKindFloat,
    "u": runtime.cudaChannelFormatKindUnsigned,
    "i": runtime.cudaChannelFormatKindSigned,
}


def resource(case: Case) -> tuple[Any, Any]:
    """The memory under a case's texture, and what keeps it alive."""
    values = case.values
    channel = texture.ChannelFormatDescriptor(
        8 * values.dtype.itemsize, 0, 0, 0, KINDS[values.dtype.kind]
    )
    if case.memory == "array":
        width, height, depth = (*values.shape[::-1], 0, 0)[:3]
        array = texture.CUDAarray(channel, width, height, depth)
        array.copy_from(values)
        return texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=array), array
    memory = cp.asarray(values)
    if case.memory == "linear":
        kind, shape = runtime.cudaResourceTypeLinear, {"sizeInBytes": values.nbytes}
    else:
        height, width = values.shape
        kind = runtime.cudaResourceTypePitch2D
        shape = {"width": width, "height": height, "pitchInBytes": values.strides[0]}
    return texture.ResourceDescriptor(kind, arr=memory, chDesc=channel, **shape), memory


def samples(module: Any, case: Case) -> Any:
    """The 256 samples of a case."""
    described, kept = resource(case)
    count = len(case.shape)
    modes = (*[MODES[case.mode]] * count, *[MODES["clamp"]] * (3 - count))
    how = texture.TextureDescriptor(
        modes,
        int(case.filter_mode == "linear"),
        int(case.read_mode == "normalized_float"),
        normalizedCoords=int(case.normalized),
    )
    sampled = texture.TextureObject(described, how)
    kernel = module.get_function("fetch1" if case.memory == "linear" else f"dims{count}")
    out = cp.zeros(LANES, np.float32)
    kernel((1,), (LANES,), (sampled, *[cp.asarray(place) for place in case.places], out))
    answer = out.get()
    del kept
    return answer


def driver_version() -> str:
    """Return the driver's version as its own tool prints it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]


def main() -> None:
    """Write all samples to the file that the first argument names."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "tests/validate/texture.parquet")
    module = cp.RawModule(code=SOURCE)
    cases = list(texture_cases())
    answers = np.stack([samples(module, case) for case in cases])
    kept = pa.FixedSizeListArray.from_arrays(pa.array(answers.ravel()), LANES)
    gpu = runtime.getDeviceProperties(0)["name"].decode()
    table = pa.table({"case": [case.name for case in cases], "samples": kept})
    table = table.replace_schema_metadata({"gpu": gpu, "driver": driver_version()})
    pq.write_table(table, out, compression="zstd", use_dictionary=["case"])
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
