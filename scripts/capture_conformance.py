"""Run every instruction of tests/validate/instructions on a GPU and keep what comes out.

`python scripts/capture_conformance.py [OUT.parquet]` needs an NVIDIA driver, NumPy and pyarrow, and
nothing of cutrace. Each case of the tables is a kernel of its own; what the driver's assembler
refuses for this GPU is listed and left out. The operands are made again by the tests, so that only
results are kept: a row a case, with its text, a checksum of its operands, and its results' bytes.
"""

import ctypes
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from ptx_case import SCRATCH, Case, kernel_text, read_cases, stored_dtype  # noqa: E402
from ptx_values import checksum, operands  # noqa: E402

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
TOGETHER = 50
BLOCK = 128
MEMORY = 1 << 24


class Gpu:
    """The first GPU, through the driver's C functions."""

    def __init__(self) -> None:
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, context, name = ctypes.c_int(), ctypes.c_void_p(), ctypes.create_string_buffer(99)
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDeviceGetName", name, 99, device)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        self.name = name.value.decode()
        memory = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(MEMORY))
        self.memory = memory.value

    def __call__(self, function: str, *arguments: Any) -> None:
        status = getattr(self._cuda, function)(*arguments)
        if status:
            raise OSError(status, f"{function} failed with status {status}")

    def load(self, ptx: str) -> ctypes.c_void_p:
        """Assemble PTX; OSError if the driver refuses it."""
        module = ctypes.c_void_p()
        self("cuModuleLoadData", ctypes.byref(module), ptx.encode() + b"\0")
        return module

    def run(self, module: ctypes.c_void_p, kernel: str, case: Case) -> bytes:
        """Run one case of a module on its operands; return the bytes of its results."""
        function = ctypes.c_void_p()
        self("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        sources = operands(case.sources)
        lanes = len(sources[0]) if sources else 32
        sizes = [lanes * stored_dtype(kind).itemsize for kind in case.results]
        pieces = [np.ascontiguousarray(s).tobytes() for s in sources]
        pieces += [bytes(size) for size in (*sizes, lanes * SCRATCH)]
        starts = np.cumsum([0, *(-(-len(piece) // 256) * 256 for piece in pieces)])
        image = b"".join(piece + bytes(-len(piece) % 256) for piece in pieces)
        self("cuMemcpyHtoD_v2", ctypes.c_uint64(self.memory), image, ctypes.c_size_t(len(image)))
        values = [ctypes.c_uint64(self.memory + int(start)) for start in starts[:-1]]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        block = min(BLOCK, lanes)
        self("cuLaunchKernel", function, lanes // block, 1, 1, block, 1, 1, 0, None, pointers, None)
        self("cuCtxSynchronize")
        return b"".join(
            self.read(int(start), size)
            for start, size in zip(starts[len(sources) :], sizes, strict=False)
        )

    def read(self, start: int, size: int) -> bytes:
        """Copy bytes of device memory back."""
        into = ctypes.create_string_buffer(size)
        self("cuMemcpyDtoH_v2", into, ctypes.c_uint64(self.memory + start), ctypes.c_size_t(size))
        return into.raw


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
        yield case, gpu.run(module, f"case{number}", case)
    gpu("cuModuleUnload", module)


def driver_version() -> str:
    """Return the driver's version as its own tool prints it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[0]


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
