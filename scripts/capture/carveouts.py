"""Record how much of an SM the driver sets apart for shared memory, launch by launch.

    python scripts/capture/carveouts.py OUT.csv [--preferred]

Needs an NVIDIA GPU whose counters may be read, `ncu` and CuPy. Blocks of many sizes with many
amounts of dynamic shared memory are launched, of a kernel with few registers and of one with many;
the result has a row for each launch: what was asked for, and what the profiler says was chosen.
`--preferred` launches some of them with what a program may prefer: a share of shared memory in
percent, as `cudaFuncAttributePreferredSharedMemoryCarveout`, or a cache configuration of the
function (`L1`, `shared`, `equal`) or of the context (`all L1`, ...), as `cudaFuncSetCacheConfig`.
"""

import csv
import ctypes
import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = r"""
extern "C" __global__ void few(float *out)
{
    extern __shared__ float s[];
    if (out) { s[threadIdx.x] = out[threadIdx.x]; __syncthreads(); out[1] = s[threadIdx.x ^ 1]; }
}
#define MANY(NAME, N) \
    extern "C" __global__ void __launch_bounds__(256) NAME(float *out) \
    { \
        extern __shared__ float s[]; \
        float v[N]; \
        if (!out) return; \
        for (int k = 0; k < N; k++) v[k] = out[threadIdx.x + 1024 * k]; \
        __syncthreads(); \
        for (int k = 0; k < N; k++) v[k] = v[k] * v[(k + 7) % N] + 1.0f; \
        float sum = 0; \
        for (int k = 0; k < N; k++) sum += v[k]; \
        s[threadIdx.x] = sum; \
        __syncthreads(); \
        out[threadIdx.x] = s[threadIdx.x ^ 1]; \
    }
MANY(many, 48)
MANY(most, 120)
"""
CARVEOUT = 9
"""CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT."""
THREADS = (32, 64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024)
SMALL = range(0, 3072, 128)
LARGE = (4096, 5120, 6144, 7168, 8192, 10240, 12288, 16384, 20480, 24576, 32768, 49152)
MANY_THREADS = (32, 64, 96, 128, 192, 256)
GRIDS = (16, 132, 1056)
COLUMNS = {
    "blocks": "launch__grid_size",
    "threads": "launch__block_size",
    "registers": "launch__registers_per_thread",
    "shared": "launch__shared_mem_per_block_dynamic",
    "carveout": "launch__shared_mem_config_size",
}


SHARES = (-1, 0, 1, 10, 20, 25, 33, 50, 60, 75, 90, 100)
CONFIGS = {"none": 0, "shared": 1, "L1": 2, "equal": 3}
"""The driver's numbers, CU_FUNC_CACHE_PREFER_..."""


KERNELS = (("few", 32), ("few", 128), ("few", 256), ("few", 1024), ("most", 128))


def preferences() -> list[str]:
    """Each of what may be preferred."""
    wide = [f"all {name}" for name in CONFIGS]
    return [*map(str, SHARES), *CONFIGS, *wide, "L1 50", "50 L1", "all L1 50"]


def preferred_cases() -> Iterator[tuple[str, str, int, int]]:
    """Yield what is preferred, kernel, threads a block and bytes of dynamic shared memory."""
    for preference in preferences():
        for kernel, threads in KERNELS:
            for shared in (0, 256, 1024, 4096, 16384, 40960):
                yield preference, kernel, threads, shared


def prefer(function: int, preference: str) -> None:
    """Say what is preferred, each word in turn."""
    driver, context = ctypes.CDLL("libcuda.so.1"), "all" in preference
    for word in preference.replace("all ", "").split():
        if word in CONFIGS and context:
            answer = driver.cuCtxSetCacheConfig(CONFIGS[word])
        elif word in CONFIGS:
            answer = driver.cuFuncSetCacheConfig(ctypes.c_void_p(function), CONFIGS[word])
        else:
            answer = driver.cuFuncSetAttribute(ctypes.c_void_p(function), CARVEOUT, int(word))
        assert answer == 0, (preference, answer)


def launch_preferred() -> None:
    """Launch each with its preference, of a module of its own."""
    import cupy
    import numpy as np

    for number, (preference, kernel, threads, shared) in enumerate(preferred_cases()):
        module = cupy.RawModule(code=f"// {number}\n{SOURCE}")
        function = module.get_function(kernel)
        prefer(int(function.kernel.ptr), preference)
        function((1,), (threads,), (np.uint64(0),), shared_mem=shared)
        prefer(int(function.kernel.ptr), "all none")
    cupy.cuda.runtime.deviceSynchronize()


def cases() -> Iterator[tuple[str, int, int, int]]:
    """Yield kernel, blocks, threads a block and bytes of dynamic shared memory."""
    for threads in THREADS:
        for shared in (*SMALL, *LARGE):
            yield "few", 1, threads, shared
    for kernel in ("many", "most"):
        for threads in MANY_THREADS:
            for shared in (*SMALL[::3], *LARGE[::2]):
                yield kernel, 1, threads, shared
    for blocks in GRIDS:
        for threads in (32, 128, 256):
            for shared in (0, 128, 1024, 4096):
                yield "few", blocks, threads, shared


def launch_all() -> None:
    """Launch every case: what the profiler watches."""
    import cupy
    import numpy as np

    module = cupy.RawModule(code=SOURCE)
    for kernel, blocks, threads, shared in cases():
        function = module.get_function(kernel)
        function((blocks,), (threads,), (np.uint64(0),), shared_mem=shared)
    cupy.cuda.runtime.deviceSynchronize()


def main(arguments: list[str]) -> None:
    """Launch under the profiler's eyes, or ask it."""
    if arguments[0] == "--launch":
        (launch_preferred if "--preferred" in arguments else launch_all)()
        return
    command = [
        "ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
        "--metrics", ",".join(COLUMNS.values()), "--kernel-name", "regex:^(few|many|most)$",
        sys.executable, str(Path(__file__)), "--launch", *arguments[1:],
    ]  # fmt: skip
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = list(csv.reader(io.StringIO(said)))
    start = next(i for i, row in enumerate(rows) if row and row[0] == "ID")
    places = [rows[start].index(metric) for metric in COLUMNS.values()]
    with Path(arguments[0]).open("w", newline="") as target:
        written = csv.writer(target, lineterminator="\n")
        found = [[row[at].replace(",", "") for at in places] for row in rows[start + 2 :]]
        if "--preferred" in arguments:
            asked = [preference for preference, *_ in preferred_cases()]
            written.writerow((*COLUMNS, "preferred"))
            written.writerows([*row, each] for row, each in zip(found, asked, strict=True))
        else:
            written.writerow(COLUMNS)
            written.writerows(found)


if __name__ == "__main__":
    main(sys.argv[1:])
