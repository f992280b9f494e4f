"""Record what Nsight Compute counts for the texture samples of tests/cases/footprint_case.py.

    python scripts/capture/footprints.py [OUT.json]
    python scripts/capture/footprints.py --edges [OUT.json]

Needs an NVIDIA GPU whose counters may be read, `ncu` and CuPy, and nothing of cutrace. The result
has the requests and the sectors of each case by its name. With `--edges` it is the samples of
tests/cases/edge_case.py.
"""

import csv
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from cases.edge_case import HIGH, WIDE, Edge, edge_cases  # noqa: E402
from cases.footprint_case import MASKS, Case, footprint_cases  # noqa: E402

KEPT = ROOT / "tests" / "validate" / "counters" / "h200_footprints.json"
EDGES = KEPT.with_name("h200_edges.json")
MODES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
METRICS = tuple(f"l1tex__t_{what}_pipe_tex_mem_texture.sum" for what in ("requests", "sectors"))
SOURCE = r"""
#define PLACES const float *x, const float *y, const float *z, const int *on, float *out
#define SAMPLE(NAME, T, CALL, SUM)                                                                \
    extern "C" __global__ void NAME(cudaTextureObject_t t, PLACES)                                \
    { int i = threadIdx.x; if (on[i]) { T v = CALL; out[i] = SUM; } }
#define BOTH(NAME, CALL1, CALL4)                                                                  \
    SAMPLE(NAME##1, float, CALL1, v) SAMPLE(NAME##4, float4, CALL4, v.x + v.y + v.z + v.w)
BOTH(fetch, tex1Dfetch<float>(t, (int)x[i]), tex1Dfetch<float4>(t, (int)x[i]))
BOTH(one, tex1D<float>(t, x[i]), tex1D<float4>(t, x[i]))
BOTH(two, (tex2D<float>(t, x[i], y[i])), (tex2D<float4>(t, x[i], y[i])))
BOTH(three, (tex3D<float>(t, x[i], y[i], z[i])), (tex3D<float4>(t, x[i], y[i], z[i])))
SAMPLE(layered1, float, (tex2DLayered<float>(t, x[i], y[i], (int)z[i])), v)
"""


def texture(case: Case) -> tuple[Any, Any]:
    """Make a case's texture; returns it and the memory under it."""
    import cupy as cp
    from cupy.cuda import runtime
    from cupy.cuda import texture as tx

    dtype, extent = np.dtype(case.element), case.extent[::-1]
    kind = "Float" if dtype.kind == "f" else "Unsigned"
    bits = [8 * dtype.itemsize * (channel < case.channels) for channel in range(4)]
    channel = tx.ChannelFormatDescriptor(*bits, getattr(runtime, f"cudaChannelFormatKind{kind}"))
    if case.memory == "array":
        sides = (*case.extent, *([case.layers] if case.layers else []), 0, 0)[:3]
        memory = tx.CUDAarray(channel, *sides, int(case.layers > 0))
        resource = tx.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=memory)
    else:
        memory = cp.zeros(int(np.prod(extent)) * case.channels, dtype)
        flat = case.memory == "linear"
        named = (
            {"sizeInBytes": memory.nbytes}
            if flat
            else {
                "width": extent[1],
                "height": extent[0],
                "pitchInBytes": memory.nbytes // extent[0],
            }
        )
        type_ = runtime.cudaResourceTypeLinear if flat else runtime.cudaResourceTypePitch2D
        resource = tx.ResourceDescriptor(type_, arr=memory, chDesc=channel, **named)
    clamp = (1, 1, 1)
    how = tx.TextureDescriptor(clamp, int(case.linear), int(dtype.kind == "u"), normalizedCoords=0)
    return tx.TextureObject(resource, how), memory


def launch_all() -> None:
    """Sample every case once: what the profiler watches."""
    import cupy as cp

    module = cp.RawModule(code=SOURCE, options=("-std=c++17",), backend="nvcc")
    out = cp.zeros(32, np.float32)
    for case in footprint_cases():
        sampled, memory = texture(case)
        name = ("one", "two", "three")[len(case.extent) - 1]
        name = {"linear": "fetch"}.get(case.memory, "layered" if case.layers else name)
        places = [cp.asarray(axis.astype(np.float32)) for axis in case.coordinates]
        on = cp.asarray(MASKS[case.mask].astype(np.int32))
        kernel = module.get_function(f"{name}{case.channels}")
        kernel((1,), (32,), (sampled, *places, on, out))
        cp.cuda.runtime.deviceSynchronize()
        del memory


def edge_texture(case: Edge) -> tuple[Any, Any]:
    """Make a case's texture over an array; returns it and the array."""
    from cupy.cuda import runtime
    from cupy.cuda import texture as tx

    bits = [32 * (channel < case.channels) for channel in range(4)]
    channel = tx.ChannelFormatDescriptor(*bits, runtime.cudaChannelFormatKindFloat)
    memory = tx.CUDAarray(channel, WIDE, 0 if case.row else HIGH)
    resource = tx.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=memory)
    how = tx.TextureDescriptor(
        (MODES[case.mode],) * 3, int(case.linear), 0, normalizedCoords=int(case.normalized)
    )
    return tx.TextureObject(resource, how), memory


def launch_edges() -> None:
    """Sample every case at the edges once."""
    import cupy as cp

    module = cp.RawModule(code=SOURCE, options=("-std=c++17",), backend="nvcc")
    out, nothing, on = cp.zeros(32, np.float32), cp.zeros(32, np.float32), cp.ones(32, np.int32)
    for case in edge_cases():
        sampled, memory = edge_texture(case)
        places = [*map(cp.asarray, case.coordinates), nothing, nothing][:3]
        kernel = module.get_function(f"{'one' if case.row else 'two'}{case.channels}")
        kernel((1,), (32,), (sampled, *places, on, out))
        cp.cuda.runtime.deviceSynchronize()
        del memory


def count(edges: bool) -> dict[str, list[int]]:
    """Return the metrics of every case, by name."""
    with tempfile.TemporaryDirectory() as folder:
        report = str(Path(folder) / "report")
        watched = ["--kernel-name-base", "function", "--kernel-name", "regex:[14]$"]
        command = ["ncu", "--export", report, "--metrics", ",".join(METRICS), *watched]
        launch = "--launch-edges" if edges else "--launch"
        subprocess.run([*command, sys.executable, __file__, launch], check=True)
        shown = ["ncu", "--import", f"{report}.ncu-rep", "--csv", "--page", "raw"]
        text = subprocess.run(shown, capture_output=True, text=True, check=True).stdout
    lines = list(csv.reader(io.StringIO(text)))
    start = next(number for number, line in enumerate(lines) if line and line[0] == "ID")
    rows = [dict(zip(lines[start], line, strict=True)) for line in lines[start + 2 :]]
    names = [case.name for case in (edge_cases() if edges else footprint_cases())]
    both = zip(names, rows, strict=True)
    return {name: [int(row[m].replace(",", "")) for m in METRICS] for name, row in both}


def main(arguments: list[str]) -> None:
    """Sample under the profiler's eyes, or capture all."""
    if arguments[:1] in (["--launch"], ["--launch-edges"]):
        (launch_all if arguments == ["--launch"] else launch_edges)()
        return
    edges = arguments[:1] == ["--edges"]
    lines = (f"{json.dumps(name)}: {counted}" for name, counted in count(edges).items())
    target = arguments[edges] if len(arguments) > edges else EDGES if edges else KEPT
    Path(target).write_text("{\n" + ",\n".join(lines) + "\n}\n")


main(sys.argv[1:])
