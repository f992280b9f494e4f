"""Record what NVIDIA's own calculator says: `python scripts/capture/occupancy.py`.

Compiles `cuda_occupancy.h` of nvidia-cuda-runtime-cu12 with the C++ compiler of this machine, asks
it about random launches on every capability from 3.0 on that it knows, and writes
`tests/validate/occupancy_header.csv`.
"""

import csv
import random
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from cutrace.models.replay.device.catalog import device_names
from cutrace.models.replay.device.device import Device, load_device

TARGET = Path(__file__).parents[2] / "tests" / "validate" / "occupancy_header.csv"
ASKED = ("device", "threads", "registers", "shared", "barriers", "cache_config")
TOLD = (
    "limit_warps",
    "limit_registers",
    "limit_shared",
    "limit_blocks",
    "limit_barriers",
    "blocks",
)
CACHE_CONFIGS = ("", "prefer_shared", "prefer_l1", "equal")
LAUNCHES = 40
UNKNOWN = ((11, 0),)
"""Capabilities that the header of 12.9 does not know yet."""

PROGRAM = r"""
#include <climits>
#include <cstdio>
#include <cstring>
#include "cuda_occupancy.h"

int main() {
    cudaOccDeviceProp p = cudaOccDeviceProp();
    cudaOccFuncAttributes f;
    cudaOccDeviceState s;
    cudaOccResult r;
    int threads, shared, config;
    p.maxThreadsPerBlock = f.maxThreadsPerBlock = 1024;
    p.warpSize = 32;
    p.numSms = 1;
    f.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    while (scanf("%d %d %d %d %d %zu %zu %zu %zu %d %d %d %d %d", &p.computeMajor, &p.computeMinor,
                 &p.maxThreadsPerMultiprocessor, &p.regsPerMultiprocessor, &p.regsPerBlock,
                 &p.sharedMemPerMultiprocessor, &p.sharedMemPerBlock, &p.sharedMemPerBlockOptin,
                 &p.reservedSharedMemPerBlock, &threads, &f.numRegs, &shared,
                 &f.numBlockBarriers, &config) == 14) {
        f.maxDynamicSharedSizeBytes = shared;
        s.cacheConfig = (cudaOccCacheConfig)config;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &f, &s, threads, shared)) return 1;
        printf("%d %d %d %d %d %d\n", r.blockLimitWarps, r.blockLimitRegs, r.blockLimitSharedMem,
               r.blockLimitBlocks, r.blockLimitBarriers, r.activeBlocksPerMultiprocessor);
    }
}
"""


def draw_launch(device: Device, rng: random.Random) -> tuple[int, int, int, int, str]:
    """Threads, registers, shared bytes, barriers and cache configuration of a random launch."""
    threads = rng.choice([32, 96, 100, 192, 256, 512, 768, 1000, 1024, rng.randint(1, 1024)])
    shared = rng.choice([0, rng.randint(1, 4096), rng.randint(1, device.limits.shared_per_block)])
    registers = rng.randint(1, device.limits.registers_per_thread)  # the header allows 255 on 3.0
    barriers = rng.choice([1, 1, 2, 5, 16])
    return threads, registers, shared, barriers, rng.choice(CACHE_CONFIGS)


def ask_header(questions: list[tuple[Device, tuple[int, int, int, int, str]]]) -> list[list[int]]:
    """Compile the header and put all questions to it."""
    lines = []
    for device, (threads, registers, shared, barriers, config) in questions:
        of = device.limits
        properties = [32 * of.warps_per_sm, of.registers_per_sm, of.registers_per_block]
        properties += [of.shared_per_sm, min(of.shared_per_block, 49152), of.shared_per_block]
        launch = [of.shared_reserved, threads, registers, shared, barriers]
        numbers = [*device.capability, *properties, *launch, CACHE_CONFIGS.index(config)]
        lines.append(" ".join(map(str, numbers)))
    package = find_spec("nvidia.cuda_runtime")
    folders = package.submodule_search_locations if package else None
    headers = Path((folders or ["."])[0]) / "include"
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "ask.cpp", Path(folder) / "ask"
        source.write_text(PROGRAM)
        subprocess.run(["c++", "-I", str(headers), str(source), "-o", str(program)], check=True)
        text = "\n".join(lines) + "\n"
        told = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return [[int(word) for word in line.split()] for line in told.stdout.splitlines()]


def main() -> None:
    """Write the file."""
    rng = random.Random(1)
    devices = [load_device(name) for name in device_names() if name.startswith("sm_")]
    late = [d for d in devices if d.limits.calculator == "header" and d.capability not in UNKNOWN]
    questions = [(device, draw_launch(device, rng)) for device in late for _ in range(LAUNCHES)]
    with TARGET.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*ASKED, *TOLD])
        for (device, asked), told in zip(questions, ask_header(questions), strict=True):
            writer.writerow([device.key, *asked, *told])


if __name__ == "__main__":
    main()
