"""Run random sequences of instructions on a GPU and keep what every register holds in the end.

`python scripts/capture/sequences.py [OUT.parquet] [--first N] [--count N]` needs an NVIDIA driver,
NumPy and pyarrow, and nothing of cutrace. A row is a sequence: its PTX, what its operands are drawn
from, and for each register a hash of what all threads have in it, and the value of a few threads.
A register whose hash the driver's optimization changes is left out: there the ISA leaves room.
"""

import argparse
import ctypes
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from driver import HEADER, Gpu, driver_version
from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from cases.sequence_case import SHOWN, digest  # noqa: E402
from fuzz.sequence import LANES, Sequence, draw, rows  # noqa: E402
from fuzz.sequence_text import BLOCK, write  # noqa: E402

TOGETHER = 20
OUT = 1 << 22
"""Where the results lie; the operands lie at the start."""


@cache
def gpu() -> Gpu:
    """The GPU of this process."""
    return Gpu()


def run(module: ctypes.c_void_p, name: str, sequence: Sequence) -> NDArray[np.uint64]:
    """Run one sequence of a module; return (registers, threads)."""
    function, device = ctypes.c_void_p(), gpu()
    device("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    image = rows(sequence).tobytes()
    count = len(sequence.registers)
    device("cuMemcpyHtoD_v2", ctypes.c_uint64(device.memory), image, ctypes.c_size_t(len(image)))
    size = ctypes.c_size_t(8 * LANES * count)
    device("cuMemsetD8_v2", ctypes.c_uint64(device.memory + OUT), 0, size)
    values = [ctypes.c_uint64(device.memory), ctypes.c_uint64(device.memory + OUT)]
    pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
    device("cuLaunchKernel", function, LANES // BLOCK, 1, 1, BLOCK, 1, 1, 0, None, pointers, None)
    device("cuCtxSynchronize")
    found = np.frombuffer(device.read(OUT, size.value), np.uint64)
    return found.reshape(count, LANES)


def captured(numbers: range) -> list[dict[str, Any]]:
    """Return the rows of some sequences, which are one module."""
    sequences = [draw(number) for number in numbers]
    text = HEADER + "".join(write(each, f"k{each.number}") for each in sequences)
    modules = [gpu().load(text, level) for level in (4, 0)]
    return [_row(sequence, *modules) for sequence in sequences]


def _row(sequence: Sequence, optimized: ctypes.c_void_p, plain: ctypes.c_void_p) -> dict[str, Any]:
    found, other = (run(m, f"k{sequence.number}", sequence) for m in (optimized, plain))
    same = (found == other).all(axis=1)
    return {
        "number": sequence.number,
        "ptx": write(sequence, "k"),
        "kinds": [kind for _, kind in sequence.first],
        "registers": list(sequence.registers),
        "hashes": [digest(c) if kept else None for c, kept in zip(found, same, strict=True)],
        "values": [column[:SHOWN].tolist() for column in found],
    }


def every(first: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield all rows; several processes assemble."""
    numbers = range(first, first + count)
    parts = [numbers[k : k + TOGETHER] for k in range(0, count, TOGETHER)]
    with ProcessPoolExecutor() as pool:
        for found in pool.map(captured, parts):
            yield from found


def main() -> None:
    """Write all rows to the file that the first argument names."""
    parser = argparse.ArgumentParser(description=__doc__)
    kept = ROOT / "tests/validate/sequences.parquet"
    parser.add_argument("out", nargs="?", type=Path, default=kept)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    asked = parser.parse_args()
    found = list(every(asked.first, asked.count))
    table = pa.Table.from_pylist(found, schema=SCHEMA)
    table = table.replace_schema_metadata({"gpu": gpu().name, "driver": driver_version()})
    pq.write_table(table, asked.out, compression="zstd", compression_level=19)
    open_ones = sum(h is None for row in found for h in row["hashes"])
    print(f"{asked.out}: {len(found)} sequences, {open_ones} registers open")


SCHEMA = pa.schema(
    [
        ("number", pa.uint32()),
        ("ptx", pa.string()),
        ("kinds", pa.list_(pa.string())),
        ("registers", pa.list_(pa.string())),
        ("hashes", pa.list_(pa.uint64())),
        ("values", pa.list_(pa.list_(pa.uint64()))),
    ]
)


if __name__ == "__main__":
    main()
