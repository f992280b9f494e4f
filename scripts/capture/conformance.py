"""Run every instruction of tests/validate/instructions on a GPU and keep what comes out.

`python scripts/capture/conformance.py [OUT.parquet]` needs an NVIDIA driver, NumPy and pyarrow, and
nothing of cutrace. Each case of the tables is a kernel of its own; what the driver's assembler
refuses for this GPU is listed and left out. The operands are made again by the tests, so that only
results are kept: a row a case, with its text, a checksum of its operands, and its results' bytes.
"""

import ctypes
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from driver import HEADER, Gpu, driver_version

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from ptx.ptx_case import SCRATCH, Case, kernel_text, read_cases, stored_dtype  # noqa: E402
from ptx.ptx_values import checksum, operands  # noqa: E402

TOGETHER = 50
BLOCK = 128


def run(gpu: Gpu, module: ctypes.c_void_p, kernel: str, case: Case) -> bytes:
    """Run one case of a module on its operands; return the bytes of its results."""
    function = ctypes.c_void_p()
    gpu("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
    sources = operands(case.sources)
    lanes = len(sources[0]) if sources else 32
    sizes = [lanes * stored_dtype(kind).itemsize for kind in case.results]
    pieces = [np.ascontiguousarray(s).tobytes() for s in sources]
    pieces += [bytes(size) for size in (*sizes, lanes * SCRATCH)]
    starts = np.cumsum([0, *(-(-len(piece) // 256) * 256 for piece in pieces)])
    image = b"".join(piece + bytes(-len(piece) % 256) for piece in pieces)
    gpu("cuMemcpyHtoD_v2", ctypes.c_uint64(gpu.memory), image, ctypes.c_size_t(len(image)))
    values = [ctypes.c_uint64(gpu.memory + int(start)) for start in starts[:-1]]
    pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    block = min(BLOCK, lanes)
    gpu("cuLaunchKernel", function, lanes // block, 1, 1, block, 1, 1, 0, None, pointers, None)
    gpu("cuCtxSynchronize")
    return b"".join(
        gpu.read(int(start), size)
        for start, size in zip(starts[len(sources) :], sizes, strict=False)
    )


def captured(gpu: Gpu, cases: Sequence[Case]) -> Iterator[tuple[Case, bytes]]:
    """Yield each case and its results; halve a module that the driver refuses."""
    text = HEADER + "".join(kernel_text(case, f"case{k}") for k, case in enumerate(cases))
    try:
        module = gpu.load(text)
    except OSError as refusal:
        if len(cases) == 1:
            print(f"refused: {cases[0].text} ({refusal})", flush=True)
            return
        half = len(cases) // 2
        yield from captured(gpu, cases[:half])
        yield from captured(gpu, cases[half:])
        return
    for number, case in enumerate(cases):
        yield case, run(gpu, module, f"case{number}", case)
    gpu("cuModuleUnload", module)


def main() -> None:
    """Write all results to the file that the first argument names."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "tests/validate/conformance.parquet")
    gpu = Gpu()
    found: list[tuple[Case, bytes]] = []
    for table in sorted((ROOT / "tests/validate/instructions").glob("*.txt")):
        cases = list(read_cases(table.read_text()))
        for first in range(0, len(cases), TOGETHER):
            found += captured(gpu, cases[first : first + TOGETHER])
        print(f"{table.stem}: {len(cases)} cases", flush=True)
    columns = {
        "instruction": [case.text for case, _ in found],
        "operands": pa.array([checksum(case.sources) for case, _ in found], pa.uint32()),
        "results": pa.array([result for _, result in found], pa.binary()),
    }
    rows = pa.table(columns)
    rows = rows.replace_schema_metadata({"gpu": gpu.name, "driver": driver_version()})
    pq.write_table(rows, out, compression="zstd", compression_level=19, use_dictionary=False)
    print(f"{out}: {len(found)} cases, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
