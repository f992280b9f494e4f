"""Measure what many warps ask of one unit: atomics, textures, L1, L2, partial stores, new code.

    python scripts/measure/contention.py OUT.csv

Needs an NVIDIA GPU and CuPy. Every line of OUT is `what,name,at,value`, in cycles of the SMs:

- `contention`: the clock, in MHz;
- `atomics`: cycles of the chip for a warp's request, by where its lanes go: `random` words among
  `at`, the same word of `at` (`same`), or a whole line of `at` lines (`line`); `lane` is one lane;
- `shared`: the same of shared memory, cycles of an SM;
- `constant`: cycles of an SM for a load of constants at `at` addresses;
- `l1`: cycles of an SM for a load that L1 has, lanes `at` words apart;
- `texture`: the same of texels; `chain`: cycles from one fetch to the next that needs its result;
- `sectors`: sectors in a cycle that the chip loads (`gather`) or stores (`scatter`) in any order,
  or lines (`_lines`), or a word of each sector in turn (`_turn`), `at` sectors of footprint;
- `store_load`: cycles of a word's way into a store and back by a load, `at` warps of an SM;
- `code`: cycles of each of `at` instructions that run for the `first` time, or `again`;
- `retries`: in `at` blocks, how often a lane tries to add to a word that all want until its compare
  and swap succeeds (`tries_LANES_WARPS_THREADS`: of a block so many lanes of so many warps want
  it), and the nanoseconds of a try (`ns_...`); an H200's are in tests/validate/time.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from chip import Row, hertz, module, processors, seconds, write

PATTERNS = ((0, "random", 32), (1, "same", 32), (2, "line", 32), (0, "lane", 1))
FEW = (1, 64, 256, 4096, 1 << 24)
RIVALS = (
    (1, 1, 32, (16, 132, 1024, 4096)),
    (1, 1, 256, (132, 264, 1056, 3907, 16384)),
    (1, 1, 1024, (264, 3907)),
    (1, 8, 256, (1024, 3907)),
    (32, 1, 32, (1, 16, 132)),
    (32, 8, 256, (1, 8, 64)),
)
"""Lanes, warps and threads of a block, and how many blocks."""
MANY = (1, 8, 32, 64, 128, 256, 1024, 4096, 1 << 16, 1 << 20, 1 << 25)
SOURCE = Path(__file__).with_name("contention.cu")


def main(target: str) -> None:
    """Measure everything."""
    every = l1, constants, code, atomics, shared, textures, sectors, store_load, retries
    write(target, every)


def compiled(*options: str) -> Callable[[str], Any]:
    """Compile the kernels."""
    return module(SOURCE.read_text(), *options)


def slope(kernel: Any, grid: int, block: int, data: Any, size: int, *pattern: int) -> float:
    """Seconds of one more round, from two numbers of rounds that take 0.2 ms or more."""
    few, how = 4, [np.int32(each) for each in pattern]

    def time(rounds: int, times: int) -> float:
        arguments = (data, np.uint32(size), np.int32(rounds), *how)
        return seconds(kernel, grid, block, arguments, times)

    while few < 4096 and time(few, 1) < 2e-4:
        few *= 4
    took = [time(rounds, 2) for rounds in (few, 2 * few)]
    return max(took[1] - took[0], 1e-12) / few


def atomics() -> Iterator[Row]:
    """Requests of warps to global atomics."""
    import cupy

    get, clock, sms = compiled(), hertz(), processors()
    yield "contention", "mhz", 0, clock / 1e6
    data = cupy.zeros(1 << 26, np.int64)
    grid, block = sms * 2, 512
    for name in ("red_u32", "atom_u32", "red_f32", "cas_u32", "red_f64", "red_u64", "max_u32"):
        for way, where, lanes in PATTERNS:
            for bins in MANY if name in ("red_u32", "red_f32") else FEW:
                if where == "line" and bins > 1 << 20:
                    continue
                each = slope(get(name), grid, block, data, bins, way, lanes)
                yield "atomics", f"{name}_{where}", bins, each * clock / (grid * block // 32)


def retries() -> Iterator[Row]:
    """Compare and swap of one word, tried until it succeeds."""
    import cupy

    kernel, word, tries = compiled()("tried_again"), cupy.zeros(1, np.int32), cupy.zeros(1, "u8")
    for lanes, warps, threads, grids in RIVALS:
        for blocks in grids:
            how, name = (np.int32(lanes), np.int32(warps)), f"{lanes}_{warps}_{threads}"
            tries.fill(0)
            kernel((blocks,), (threads,), (word, tries, *how))
            tried = int(tries.get()[0])
            took = seconds(kernel, blocks, threads, (word, np.uint64(0), *how), 2)
            yield "retries", f"tries_{name}", blocks, tried / (blocks * warps * lanes)
            yield "retries", f"ns_{name}", blocks, took / tried * 1e9


def shared() -> Iterator[Row]:
    """Requests of warps to shared atomics."""
    import cupy

    get, cycles = compiled(), cupy.zeros(processors(), np.int64)
    for name in ("add_u32", "add_f32", "max_u32", "got_u32", "cas_u32"):
        for way, where in ((0, "random"), (1, "same"), (2, "line")):
            for bins in (1, 32, 256, 4096) if where != "line" else (1, 64):
                found = []
                for n in (8, 40):
                    for _ in range(2):
                        get(f"shared_{name}")(
                            (1,),
                            (1024,),
                            (cycles, np.uint32(bins), np.int32(n), np.int32(way), np.int32(32)),
                        )
                    found.append(float(cycles.get()[0]))
                yield "shared", f"{name}_{where}", bins, (found[1] - found[0]) / 32 / 32


def l1() -> Iterator[Row]:
    """Loads that L1 has."""
    import cupy

    get, cycles, data = (
        compiled(),
        cupy.zeros(processors(), np.int64),
        cupy.zeros(1 << 20, np.float32),
    )
    for width in (4, 8, 16):
        for stride in (0, 1, 2, 4, 8, 16, 32, 33):
            if stride * 4 % width and stride:
                continue
            found = []
            for n in (10, 30):
                get(f"load_{width}")(
                    (1,),
                    (1024,),
                    (data, cycles, np.int32(stride), np.int32(n), np.uint32((1 << 16) - width)),
                )
                found.append(float(cycles.get()[0]))
            yield "l1", f"load_{width}", stride, (found[1] - found[0]) / (20 * 8 * 32)


def constants() -> Iterator[Row]:
    """Loads of constants at several addresses."""
    import cupy

    get, cycles, sink = compiled(), cupy.zeros(processors(), np.int64), cupy.zeros(1024, np.int32)
    for addresses in (1, 2, 4, 8, 16, 32):
        found = []
        for n in (10, 30):
            get("constants")((1,), (1024,), (cycles, sink, np.int32(addresses), np.int32(n)))
            found.append(float(cycles.get()[0]))
        yield "constant", "load", addresses, (found[1] - found[0]) / (20 * 8 * 32)


def textures() -> Iterator[Row]:
    """Fetches of texels that the cache has."""
    import cupy
    from cupy.cuda import runtime, texture

    get, cycles = compiled(), cupy.zeros(processors(), np.int64)
    channel = texture.ChannelFormatDescriptor(32, 0, 0, 0, runtime.cudaChannelFormatKindFloat)
    flat = cupy.zeros(1 << 16, np.float32)
    where = texture.ResourceDescriptor(
        runtime.cudaResourceTypeLinear, arr=flat, chDesc=channel, sizeInBytes=4 << 16
    )
    how = texture.TextureDescriptor(
        (runtime.cudaAddressModeClamp,) * 3,
        runtime.cudaFilterModePoint,
        runtime.cudaReadModeElementType,
    )
    line = texture.TextureObject(where, how)
    plane = texture.CUDAarray(channel, 256, 256)
    plane.copy_from(cupy.zeros((256, 256), np.float32))
    held = texture.ResourceDescriptor(runtime.cudaResourceTypeArray, cuArr=plane)
    planes = {
        name: texture.TextureObject(
            held,
            texture.TextureDescriptor(
                (runtime.cudaAddressModeClamp,) * 2, mode, runtime.cudaReadModeElementType
            ),
        )
        for name, mode in (
            ("point", runtime.cudaFilterModePoint),
            ("linear", runtime.cudaFilterModeLinear),
        )
    }
    for stride in (0, 1, 2, 4, 8, 32, 33):
        found = []
        for n in (10, 30):
            get("fetch_line")(
                (1,), (1024,), (line, cycles, np.int32(stride), np.int32(n), np.int32(4095))
            )
            found.append(float(cycles.get()[0]))
        yield "texture", "line", stride, (found[1] - found[0]) / (20 * 4 * 32)
    for name, made in planes.items():
        for stride in (0, 1, 2, 8):
            found = []
            for n in (10, 30):
                get("fetch_plane")(
                    (1,), (1024,), (made, cycles, np.int32(stride), np.int32(n), np.int32(63))
                )
                found.append(float(cycles.get()[0]))
            yield "texture", f"plane_{name}", stride, (found[1] - found[0]) / (20 * 4 * 32)
    get("fetch_chain")((1,), (1,), (line, cycles, np.int32(512)))
    yield "texture", "chain", 0, float(cycles.get()[0]) / 512


def sectors() -> Iterator[Row]:
    """Sectors that the chip loads and stores."""
    import cupy

    get, clock, sms = compiled(), hertz(), processors()
    data = cupy.zeros(1 << 29, np.float32)  # 2 GB
    grid, block = sms * 2, 1024
    for footprint in (1 << 15, 1 << 18, 1 << 19, 1 << 20, 1 << 21, 1 << 23, 1 << 26):
        for name, kernel, way in (
            ("gather", "gather", 0),
            ("gather_lines", "gather", 1),
            ("scatter", "scatter", 0),
            ("scatter_lines", "scatter", 1),
            ("scatter_turn", "scatter", 2),
        ):
            each = slope(get(kernel), grid, block, data, footprint, way)
            per = 4 if name.endswith("lines") else 32
            yield "sectors", name, footprint, grid * block // 32 * per / (each * clock)


def store_load() -> Iterator[Row]:
    """Words stored and loaded again."""
    import cupy

    get, cycles, data = compiled(), cupy.zeros(1024, np.int64), cupy.zeros(1 << 20, np.float32)
    for warps in (1, 4, 8, 32):
        for grid in (1, processors()):
            for _ in range(2):
                get("store_load")((grid,), (32 * warps,), (data, cycles, np.int32(200)))
            yield (
                "store_load",
                "alone" if grid == 1 else "everywhere",
                warps,
                float(cycles.get()[0]) / 200,
            )
    for _ in range(2):
        get("store_load_shared")((1,), (32,), (cycles, np.int32(200)))
    yield "store_load", "shared", 1, float(cycles.get()[0]) / 200


def code() -> Iterator[Row]:
    """Instructions that no cache has, and that one has."""
    import cupy

    out, flush = cupy.zeros(1 << 20, np.float32), cupy.zeros(1 << 26, np.float64)
    for count in (64, 256, 1024, 4096, 16384):
        run = compiled(f"-DCOUNT=F{count}")("code")
        for grid, block in ((1, 32), (processors(), 256)):
            cycles = cupy.zeros(4 * grid, np.int64)
            run((grid,), (block,), (cycles, out, np.float32(0.5), np.float32(1)))
            flush += 1
            cupy.cuda.runtime.deviceSynchronize()
            run((grid,), (block,), (cycles, out, np.float32(0.5), np.float32(1)))
            told = cycles.get().reshape(grid, 4).mean(0) / count
            for name, value in (("first", told[0]), ("again", told[2])):
                yield "code", f"{name}_{block // 32}_warps", count, float(value)


if __name__ == "__main__":
    main(sys.argv[1])
