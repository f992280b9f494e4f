"""Bounds beside the times that a founding document has: seven reductions of 2^22 ints.

python scripts/measure/founding_times.py

Writes tests/validate/time/founding.csv, which a test compares with the bounds. Each kernel of the
gallery is launched as the document's table was taken, until one number is left: 128 threads a block
on a GeForce 8800 GTX (M. Harris, Optimizing Parallel Reduction in CUDA, 2007, as the course's
lecture quotes it).
"""

import csv
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cutrace

ROOT = Path(__file__).parents[2]
GALLERY = ROOT / "traces" / "gallery" / "reduction"
KEPT = ROOT / "tests" / "validate" / "time" / "founding.csv"
DEVICE, COUNT, THREADS, MANY = "8800gtx", 1 << 22, 128, 64
VERSIONS = (
    ("reduce1_divergent", "reduceDivergent", 1, 8.054),
    ("reduce2_strided", "reduceStrided", 1, 3.456),
    ("reduce3_sequential", "reduceSequential", 1, 1.722),
    ("reduce4_first_add", "reduceFirstAdd", 2, 0.965),
    ("reduce5_last_warp", "reduceLastWarp", 2, 0.536),
    ("reduce6_unrolled", "reduceUnrolled<128>", 2, 0.381),
    ("reduce7_many", "reduceMany<128>", 0, 0.268),
)
"""Source, kernel, numbers that a thread loads (0: as many as there are), milliseconds."""


def launches(kernel: str, loads: int) -> Iterator[tuple[int, int]]:
    """Yield the blocks and the numbers of each launch, until one number is left."""
    count = COUNT
    while count > 1:
        blocks = -(-count // (THREADS * loads)) if loads else min(MANY, -(-count // THREADS))
        yield blocks, max(count, blocks * THREADS * max(1, loads))
        count = blocks


def least_ns(source: str, kernel: str, loads: int) -> tuple[float, str]:
    """The sum of the launches' bounds, and what limits the first."""
    total, limits = 0.0, []
    for blocks, count in launches(kernel, loads):
        more = "" if loads else f", {count}"
        asked = f"(sums:i32[{blocks}], in:i32[{count}]=arange{more})"
        launch = f"{kernel}<<<{blocks}, {THREADS}>>>{asked}"
        with tempfile.TemporaryDirectory() as folder:
            trace = cutrace.record(
                GALLERY / f"{source}.cu", [launch], out=Path(folder, "t.cutrace")
            )
            (profile,) = cutrace.analyze(trace, DEVICE).launches
        total += profile.bounds[0].ns
        limits.append(profile.limited_by)
    return total, limits[0]


def main() -> None:
    """Count all and write the table."""
    with KEPT.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("kernel", "measured_ms", "bound_ms", "limit"))
        for source, kernel, loads, measured in VERSIONS:
            least, limit = least_ns(source, kernel, loads)
            writer.writerow((kernel, measured, f"{least / 1e6:.3f}", limit))
            file.flush()


if __name__ == "__main__":
    main()
