"""Run kernels whose lanes read others that are off on a GPU, and keep what comes out.

`python scripts/capture/lanes.py [OUT.parquet]` needs an NVIDIA driver, NumPy and pyarrow. It runs
each kernel of tests/validate/lanes/*.ptx with one block of each size. A row is a kernel, the
threads of its block, and the words that it left. Each kernel runs in a process of its own, since
one may fault or never end: such a kernel is listed and left out, and so is one that leaves
something else when the driver assembles without optimization.
"""

import ctypes
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from driver import Gpu, driver_version

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/validate/lanes"
sys.path.insert(0, str(ROOT / "tests"))

from cases.lanes_case import BLOCKS, WORDS, sources, untouched  # noqa: E402

SECONDS = 15


def run(file: Path, name: str) -> None:
    """Print what a kernel of a file leaves: threads, optimization, words."""
    gpu = Gpu()
    for level in (4, 0):
        module = gpu.load(file.read_text(), level)
        for threads in BLOCKS:
            print(threads, level, launch(gpu, module, name, threads).hex(), flush=True)


def launch(gpu: Gpu, module: ctypes.c_void_p, name: str, threads: int) -> bytes:
    """Run one kernel with one block; return its words."""
    function = ctypes.c_void_p()
    gpu("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    image = sources().tobytes() + untouched().tobytes()
    gpu("cuMemcpyHtoD_v2", ctypes.c_uint64(gpu.memory), image, ctypes.c_size_t(len(image)))
    values = [ctypes.c_uint64(gpu.memory), ctypes.c_uint64(gpu.memory + sources().nbytes)]
    pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
    gpu("cuLaunchKernel", function, 1, 1, 1, threads, 1, 1, 0, None, pointers, None)
    gpu("cuCtxSynchronize")
    return gpu.read(sources().nbytes, 4 * WORDS)


def ask(job: tuple[Path, str]) -> list[tuple[str, int, bytes]]:
    """Run a kernel in a process of its own; return its rows."""
    command = [sys.executable, __file__, "--one", str(job[0]), job[1]]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        lines = said.stdout.split("\n")[:-1]
    except subprocess.TimeoutExpired as late:
        lines = (late.stdout or b"").decode().split("\n")[:-1]
    found = {
        (int(t), int(level)): bytes.fromhex(words) for t, level, words in map(str.split, lines)
    }
    return list(_rows(job[1], found))


def _rows(name: str, found: dict[tuple[int, int], bytes]) -> Iterator[tuple[str, int, bytes]]:
    for threads in BLOCKS:
        words = found.get((threads, 4))
        if words is None or words != found.get((threads, 0)):
            print(f"left out: {name} with {threads} threads", flush=True)
        else:
            yield name, threads, words


def main() -> None:
    """Write a row for each kernel and block."""
    if sys.argv[1:2] == ["--one"]:
        run(Path(sys.argv[2]), sys.argv[3])
        return
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests/validate/lanes.parquet"
    jobs = [
        (file, name)
        for file in sorted(FOLDER.glob("*.ptx"))
        for name in re.findall(r"\.entry\s+(\w+)", file.read_text())
    ]
    with ThreadPoolExecutor(8) as pool:
        rows = [row for found in pool.map(ask, jobs) for row in found]
    names, threads, words = zip(*rows, strict=True)
    columns = {
        "kernel": list(names),
        "threads": pa.array(threads, pa.uint32()),
        "words": pa.array([np.frombuffer(each, "<u4").tolist() for each in words], _WORDS),
    }
    table = pa.table(columns)
    said = {"gpu": Gpu().name, "driver": driver_version()}
    pq.write_table(table.replace_schema_metadata(said), out, compression="zstd")
    print(f"{out}: {len(rows)} rows")


_WORDS = pa.list_(pa.uint32())


if __name__ == "__main__":
    main()
