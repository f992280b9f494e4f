"""Measure recording against Oclgrind, and replay, in one run: medians, as a table and as JSON.

Recording is timed in a warm process from the launch to the closed trace on disk; Oclgrind, which
records nothing, from clEnqueueNDRangeKernel to clFinish, in a warm process too. Both check what
the kernel computed. Whole processes, from the shell and back, stand beside them without a bar.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import bench_data
import numpy as np
from numpy.typing import NDArray

import cutrace
from cutrace.models.replay.device import load_device
from cutrace.models.replay.options import ReplayOptions
from cutrace.models.replay.replay import replay

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "traces" / "gallery"
CUDA = ROOT / "scripts" / "bench_cuda"
HOST = ROOT / "scripts" / "bench_oclgrind.py"
ROUNDS = 3
Size: TypeAlias = int | tuple[int, int]


@dataclass(frozen=True)
class Case:
    """A kernel that cutrace records and Oclgrind runs; `bar` is the ratio to reach.

    `arrays` are given first, the result foremost; `launches` are grid, block and what follows.
    """

    name: str
    source: Path
    kernel: str
    arrays: Callable[[], dict[str, NDArray[Any]]]
    launches: Callable[[], list[tuple[Size, Size, tuple[int, ...]]]]
    expected: Callable[[], NDArray[Any]]
    line: str
    bar: float

    def record(self, trace: Path) -> float:
        """Return the seconds from the first launch to the closed trace."""
        templates = [self.kernel] if "<" in self.kernel else []
        with cutrace.Session(trace) as gpu:
            module = gpu.compile(self.source, name_expressions=templates)
            kernel = module.get_function(self.kernel)
            arrays = [gpu.to_device(values, name) for name, values in self.arrays().items()]
            launches = self.launches()
            start = time.perf_counter()
            for grid, block, numbers in launches:
                kernel[grid, block](*arrays, *numbers)
            computed = arrays[0].copy_to_host()
        seconds = time.perf_counter() - start
        np.testing.assert_array_equal(computed, self.expected())
        return seconds


@dataclass(frozen=True)
class Measurement:
    """One row of the table: medians in seconds, or rows a second."""

    what: str
    cutrace: float
    oclgrind: float | None
    bar: float | None

    @property
    def ratio(self) -> float | None:
        """How many times faster than Oclgrind, if that was measured."""
        return None if self.oclgrind is None else self.oclgrind / self.cutrace


def _reverse() -> dict[str, NDArray[Any]]:
    values = np.arange(1 << 20, dtype=np.int32)
    return {"out": np.zeros_like(values), "in": values}


def _transposed() -> dict[str, NDArray[Any]]:
    values = np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)
    return {"out": np.zeros_like(values), "in": values}


def _product() -> dict[str, NDArray[Any]]:
    n = 256
    a = (np.arange(n * n, dtype=np.float32) % 7).reshape(n, n)
    b = (np.arange(n * n, dtype=np.float32) % 5).reshape(n, n)
    return {"c": np.zeros_like(a), "a": a, "b": b}


def _counted() -> NDArray[Any]:
    return np.bincount(bench_data.keys(1 << 20) % 256, minlength=256).astype(np.uint32)


def _ordered() -> NDArray[Any]:
    return np.sort(bench_data.keys(1 << 20).reshape(-1, 256), axis=1).reshape(-1)


def _sparse() -> dict[str, NDArray[Any]]:
    a = bench_data.matrix()
    ones = np.ones(bench_data.ROWS, np.float32)
    values = np.ones(a.column.size, np.float32)
    return {"y": 0 * ones, "start": a.start, "column": a.column, "value": values, "x": ones}


def _searched() -> dict[str, NDArray[Any]]:
    edges = bench_data.graph()
    return {"levels": bench_data.first_levels(), "start": edges.start, "edges": edges.column}


CASES = (
    Case(
        "tiled_product",
        GALLERY / "matrix_product" / "product_tiled.cu",
        "productTiled<16>",
        _product,
        lambda: [((16, 16), (16, 16), (256,))],
        lambda: _product()["a"] @ _product()["b"],
        "productTiled<16><<<(16, 16), (16, 16)>>>"
        "(c:f32[256,256], a:f32[256,256]=random:1, b:f32[256,256]=random:2, 256)",
        80.0,
    ),
    Case(
        "reverse_array",
        GALLERY / "reverse_array" / "reverse_global.cu",
        "reverseGlobal",
        _reverse,
        lambda: [(4096, 256, ())],
        lambda: _reverse()["in"][::-1],
        "reverseGlobal<<<4096, 256>>>(out:i32[1048576], in:i32[1048576]=arange)",
        25.0,
    ),
    Case(
        "transpose",
        GALLERY / "transpose" / "transpose_shared.cu",
        "transposeShared<16>",
        _transposed,
        lambda: [((64, 64), (16, 16), (1024, 1024))],
        lambda: _transposed()["in"].T,
        "transposeShared<16><<<(64, 64), (16, 16)>>>"
        "(out:f32[1024,1024], in:f32[1024,1024]=arange, 1024, 1024)",
        25.0,
    ),
    Case(
        "histogram",
        GALLERY / "histogram" / "histogram_static.cu",
        "histogramStatic",
        lambda: {"bins": np.zeros(256, np.uint32), "in": bench_data.keys(1 << 20)},
        lambda: [(256, 256, (1 << 20,))],
        _counted,
        "histogramStatic<<<256, 256>>>(bins:u32[256], in:i32[1048576]=random:9, 1048576)",
        20.0,
    ),
    Case(
        "bitonic_sort",
        GALLERY / "bitonic_sort" / "bitonic_sort.cu",
        "bitonicSort",
        lambda: {"keys": bench_data.keys(1 << 20)},
        lambda: [(4096, 256, ())],
        _ordered,
        "bitonicSort<<<4096, 256>>>(keys:i32[1048576]=random:9)",
        20.0,
    ),
    Case(
        "mandelbrot",
        CUDA / "mandelbrot.cu",
        "mandelbrot",
        lambda: {"counts": np.zeros((512, 512), np.int32)},
        lambda: [((32, 32), (16, 16), (512, 256))],
        lambda: bench_data.mandelbrot_counts(512, 256),
        "mandelbrot<<<(32, 32), (16, 16)>>>(counts:i32[512,512], 512, 256)",
        20.0,
    ),
    Case(
        "sparse_product",
        CUDA / "sparse_product.cu",
        "sparseProduct",
        _sparse,
        lambda: [(391, 256, (bench_data.ROWS,))],
        bench_data.row_sums,
        "",
        20.0,
    ),
    Case(
        "search",
        CUDA / "search.cu",
        "search",
        _searched,
        lambda: [
            (391, 256, (bench_data.NODES, level)) for level in range(bench_data.levels().max() + 1)
        ],
        bench_data.levels,
        "",
        20.0,
    ),
)


def oclgrind(case: Case) -> float:
    """Seconds of the case's OpenCL twin inside Oclgrind."""
    command = ["oclgrind", sys.executable, str(HOST), case.name, "1"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    (seconds,) = json.loads(done.stdout)
    return float(seconds)


def whole_process(command: list[str]) -> float:
    """Seconds from starting a command to its end."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def measure_recording(case: Case, folder: Path, runs: int) -> list[Measurement]:
    """Kernel against kernel, then process against process, taking turns."""
    trace = folder / f"{case.name}.cutrace"
    program = shutil.which("cutrace") or "cutrace"
    record = [program, "record", str(case.source), "--launch", case.line, "-o", str(trace)]
    twin = ["oclgrind", sys.executable, str(HOST), case.name, "1"]
    case.record(trace)
    times: dict[str, list[float]] = {"ours": [], "theirs": [], "whole": [], "whole twin": []}
    for _ in range(ROUNDS):
        times["theirs"].append(oclgrind(case))
        times["ours"] += [case.record(trace) for _ in range(runs)]
        if case.line:
            times["whole twin"].append(whole_process(twin))
            times["whole"].append(whole_process(record))
    ours, theirs = median(times["ours"]), median(times["theirs"])
    measured = [Measurement(f"{case.name}: launch to closed trace, s", ours, theirs, case.bar)]
    if case.line:
        whole, other = median(times["whole"]), median(times["whole twin"])
        measured.append(Measurement(f"{case.name}: whole process, s", whole, other, None))
    return measured


def measure_replay(folder: Path, runs: int, device: str = "h200") -> Measurement:
    """Access rows a second through the models of one device."""
    launch = cutrace.read_trace(folder / "tiled_product.cutrace").launches[0]
    rows = sum(batch.num_rows for batch in launch.access_batches())
    seconds = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        replay(launch, [load_device(device)], ReplayOptions())
        seconds.append(time.perf_counter() - start)
    rate = rows / median(seconds[1:]) / 1e6
    return Measurement(f"replay of {rows} rows on {device}, million rows/s", rate, None, 5.0)


def show(measured: list[Measurement]) -> None:
    """Print the table; a row without Oclgrind is compared with its bar directly."""
    print(f"{'':58} {'cutrace':>9} {'Oclgrind':>9} {'ratio':>8} {'bar':>5}")
    for m in measured:
        theirs = "" if m.oclgrind is None else f"{m.oclgrind:.3f}"
        ratio = "" if m.ratio is None else f"{m.ratio:.1f}"
        bar = "" if m.bar is None else f"{m.bar:g}"
        print(f"{m.what:58} {m.cutrace:9.3f} {theirs:>9} {ratio:>8} {bar:>5}")


def main() -> None:
    """Measure all and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the results there too")
    parser.add_argument("--cases", nargs="*", help="only these: search mandelbrot ...")
    parser.add_argument("--runs", type=int, default=5, help="recordings a round, of three rounds")
    arguments = parser.parse_args()
    if not shutil.which("oclgrind"):
        raise SystemExit("Oclgrind is missing: apt install oclgrind")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases = [c for c in CASES if not arguments.cases or c.name in arguments.cases]
        measured = [m for case in cases for m in measure_recording(case, folder, arguments.runs)]
        if not arguments.cases:
            measured.append(measure_replay(folder, arguments.runs))
    show(measured)
    if arguments.json:
        arguments.json.write_text(
            json.dumps([asdict(m) | {"ratio": m.ratio} for m in measured], indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
