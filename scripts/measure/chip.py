"""What measures of a chip share: the file they write, the time of a launch, the SMs, the clock."""

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Row = tuple[str, str, int, float]
"""A line of the file: what was measured, of which instruction or pattern, at what, the value."""

SPIN = """extern "C" __global__ void spin(long long *cycles, int n)
{
    long long begin = clock64();
    float a = 1.5f;
    for (int i = 0; i < n; i++) asm volatile("fma.rn.f32 %0, %0, %0, %0;" : "+f"(a));
    long long end = clock64();
    if (blockIdx.x == 0 && threadIdx.x == 0) *cycles = end - begin + (a == 3);
}"""


def write(target: str, parts: Sequence[Callable[[], Iterator[Row]]]) -> None:
    """Measure each part, what was measured so far being kept."""
    with open(target, "w", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\n")
        writer.writerow(("what", "name", "at", "value"))
        for part in parts:
            try:
                for what, name, at, value in part():
                    writer.writerow((what, name, at, f"{value:.6g}"))
                    opened.flush()
            except Exception as refusal:  # one part that fails leaves the others
                print(f"{part.__name__}: {refusal!r}", file=sys.stderr)


def module(text: str, *options: str) -> Callable[[str], Any]:
    """Compile a source; what is returned finds a kernel in it."""
    import cupy

    made = cupy.RawModule(code=text, options=("-std=c++17", *options))
    return lambda name: made.get_function(name)


def seconds(
    kernel: Any, grid: int, block: int, arguments: tuple[Any, ...], times: int = 3
) -> float:
    """Time a launch between two events, the least of some; one before them warms up."""
    import cupy

    found = []
    for _ in range(1 + times):
        first, last = cupy.cuda.Event(), cupy.cuda.Event()
        first.record()
        kernel((grid,), (block,), arguments)
        last.record()
        last.synchronize()
        found.append(cupy.cuda.get_elapsed_time(first, last) / 1000)
    return float(min(found[1:]))


def processors() -> int:
    """Return the number of SMs."""
    import cupy

    return int(cupy.cuda.Device().attributes["MultiProcessorCount"])


def hertz() -> float:
    """Return the clock of the SMs under load: of a long and a short run the difference."""
    import cupy

    run, cycles = module(SPIN)("spin"), cupy.zeros(1, np.int64)
    told = []
    for times in (40000, 400000):
        took = seconds(run, processors(), 256, (cycles, np.int32(times)))
        told.append((float(cycles.get()[0]), took))
    return (told[1][0] - told[0][0]) / (told[1][1] - told[0][1])
