"""Measure what the estimate of time knows of a chip: latencies, issue rates, bandwidths, atomics.

    python scripts/measure/latencies.py OUT.csv

Needs an NVIDIA GPU and CuPy; ends within a minute. Every line of OUT is `what,name,at,value`:

- `latency`: cycles from one instruction to the next that needs its result, in one warp;
- `rate`: cycles that an SM needs for a warp instruction of 32 warps that have four at hand;
- `chase`: cycles of a load whose address is the load before, `at` so many bytes of footprint;
- `barrier`: cycles of a barrier of `at` warps;
- `atomic`: operations of a warp that the chip does in a cycle, all at one address or `at` apart;
- `bytes`: bytes in a cycle that the chip reads, writes or copies with `at` bytes on the way per SM;
- `replay`: cycles of a load of constants with `at` addresses;
- `clock`: MHz.

What an empty kernel takes is asked of the profiler: `scripts/capture/times.py`.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from chip import Row, hertz, module, processors, seconds, write
from latency_kernels import ARITHMETIC, arithmetic_source, memory_source

GLOBAL_ATOMICS = (
    *("red_add_u32", "red_add_u64", "red_add_f32", "red_add_f64", "red_add_f16x2", "red_max_s32"),
    *("atom_add_u32", "atom_add_f32", "atom_cas", "atom_exch"),
)


def main(target: str) -> None:
    """Measure everything."""
    write(target, (clocks, latencies, chases, barriers, replays, near, atomics, bandwidths))


def clocks() -> Iterator[Row]:
    """The clock."""
    yield "clock", "sm", 0, hertz() / 1e6


def latencies() -> Iterator[Row]:
    """Latency and rate of each instruction of ARITHMETIC."""
    import cupy

    for name, operation in ARITHMETIC.items():
        get = module(arithmetic_source(operation))
        for what, kernel, grid, block, chains, warps in (
            ("latency", "chain", 1, 32, 1, 1),
            ("rate", "chains", processors(), 1024, 4, 32),
        ):
            cycles = cupy.zeros(grid, np.int64)
            sink = cupy.zeros(grid * block, np.float64)
            for _ in range(2):
                get(kernel)((grid,), (block,), (cycles, sink, np.int32(20)))
            each = np.median(cycles.get()) / (20 * operation.times * chains * warps)
            yield what, name, 0, float(each)


def ring(count: int, step: int, seed: int) -> Any:
    """Return offsets in bytes that visit `count` places `step` bytes apart in random order."""
    order = np.random.default_rng(seed).permutation(count).astype(np.int64) * step
    links = np.zeros(count * step // 8, np.int64)
    links[order // 8] = np.roll(order, -1)
    return links


def chases() -> Iterator[Row]:
    """Loads that wait for the one before, by footprint and by where they are kept."""
    import cupy

    get = module(memory_source())
    cycles, sink = cupy.zeros(1, np.int64), cupy.zeros(1, np.int64)
    for kernel, sizes, hops in (
        ("chase_ca", (2048, 16384, 65536, 131072, 196608), 2048),
        ("chase_cg", (16384, 131072, 1 << 20, 4 << 20, 16 << 20, 24 << 20, 40 << 20), 2048),
        ("chase_cg_far", (1 << 28, 1 << 30), 4096),
    ):
        for size in sizes:
            step = 128 if size <= 1 << 24 else 4096 if kernel.endswith("far") else 1024
            links = cupy.asarray(ring(size // step, step, 1))
            run = get(kernel.removesuffix("_far"))
            if kernel.endswith("far"):
                flush = cupy.zeros(1 << 25, np.float64)
                flush += 1
            else:
                run((1,), (1,), (links, cycles, sink, np.int32(min(size // step, 1 << 15))))
            run((1,), (1,), (links, cycles, sink, np.int32(hops)))
            yield "chase", kernel, size, float(cycles.get()[0]) / hops
    for kernel in (
        "chase_shared",
        "chase_const",
        "chase_atomic",
        "chase_cas",
        "chase_shared_atomic",
    ):
        links = cupy.zeros(1024, np.int64)
        for _ in range(2):
            get(kernel)((1,), (1,), (links, cycles, sink, np.int32(2048)))
        yield "chase", kernel, 0, float(cycles.get()[0]) / 2048


def barriers() -> Iterator[Row]:
    """A barrier of so many warps that do nothing else."""
    import cupy

    run, cycles = module(memory_source())("barriers"), cupy.zeros(1, np.int64)
    for warps in (1, 2, 4, 8, 16, 32):
        for _ in range(2):
            run((1,), (32 * warps,), (cycles, np.int32(1000)))
        yield "barrier", "bar.sync", warps, float(cycles.get()[0]) / 1000


def replays() -> Iterator[Row]:
    """Loads of constants at so many addresses, by 32 warps of an SM."""
    import cupy

    run = module(memory_source())("constants")
    cycles, sink = cupy.zeros(1, np.int64), cupy.zeros(1024, np.int32)
    for addresses in (1, 2, 4, 8, 16, 32):
        for warps in (1, 32):
            for _ in range(2):
                run((1,), (32 * warps,), (cycles, sink, np.int32(addresses), np.int32(200)))
            each = float(cycles.get()[0]) / (200 * 8 * warps)
            yield "replay", f"const_{warps}_warps", addresses, each


def near() -> Iterator[Row]:
    """Cycles of an SM for a load or store of 32 warps that L1 or shared memory serves."""
    import cupy

    get = module(memory_source())
    cycles, data = cupy.zeros(1, np.int64), cupy.zeros(1 << 16, np.float32)
    for space in ("global", "shared"):
        for access in ("load", "store"):
            for width in (4, 8, 16):
                for _ in range(2):
                    get(f"{access}_{space}_{width}")((1,), (1024,), (cycles, data, np.int32(100)))
                each = float(cycles.get()[0]) / (100 * 16 * 32)
                yield "near", f"{access}_{space}", width, each


def atomics() -> Iterator[Row]:
    """Warp instructions that the chip does in a cycle, by how far apart lanes are."""
    import cupy

    get, clock = module(memory_source()), hertz() / 1e6 * 1e6
    data = cupy.zeros(1 << 22, np.int64)
    cycles = cupy.zeros(1, np.int64)
    grid, block, n = processors() * 2, 256, 40
    for name in GLOBAL_ATOMICS:
        for apart, lanes in ((0, 1), (0, 32), (8, 32), (64, 32), (-1, 1), (-1, 32)):
            run = get(name)
            arguments = (data, np.int32(apart), np.int32(lanes), np.int32(n))
            took = seconds(run, grid, block, arguments)
            done = grid * block // 32 * n / (took * clock)
            where = {0: "one", 8: "line", 64: "spread", -1: "own"}[apart]
            yield "atomic", f"{name}_{where}", lanes, done
    for name in ("shared_add_u32", "shared_add_f32", "shared_cas"):
        for apart in (0, 8):
            for _ in range(2):
                get(name)((1,), (1024,), (cycles, np.int32(apart), np.int32(40)))
            yield "atomic", name, apart, 40 * 32 / float(cycles.get()[0])


def bandwidths() -> Iterator[Row]:
    """Bytes in a cycle by what is on the way: 16 bytes a lane, `deep` loads a lane."""
    import cupy

    get, clock = module(memory_source()), hertz() / 1e6 * 1e6
    data = cupy.zeros(1 << 29, np.float32)  # 2 GB
    for where, size in (("l2", 20 << 20), ("dram", 1 << 31)):
        for deep in (1, 4):
            for warps in (1, 2, 4, 8, 16, 32, 64):
                times = max(1, (1 << (26 if warps < 8 else 28)) // size)
                part = min(size, 1 << (27 if warps < 8 else 31))
                run = get(f"read_{deep}")
                per = max(1, warps // 16)
                grid, block = processors() * per, 32 * warps // per
                arguments = (data, np.int64(part // 16), np.int32(times))
                took = seconds(run, grid, block, arguments)
                reached = part * times / (took * clock)
                yield "bytes", f"read_{where}_{deep}", 512 * warps * deep, reached
    for name in ("write", "copy"):
        run = get(name)
        half = np.int64((1 << 31) // (32 if name == "copy" else 16))
        took = seconds(run, processors() * 8, 256, (data, half))
        yield "bytes", f"{name}_dram", 0, (1 << 31) / (took * clock)


if __name__ == "__main__":
    main(sys.argv[1])
