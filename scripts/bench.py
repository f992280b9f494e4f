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
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
from bench_oclgrind import mandelbrot_counts

import cutrace
from cutrace.models.replay.device import load_device
from cutrace.models.replay.options import ReplayOptions
from cutrace.models.replay.replay import replay

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "traces" / "gallery"
CUDA = ROOT / "scripts" / "bench_cuda"
HOST = ROOT / "scripts" / "bench_oclgrind.py"
ROUNDS = 3
MANDELBROT = cache(lambda: mandelbrot_counts(512, 256))


@dataclass(frozen=True)
class Case:
    """A kernel that cutrace records and Oclgrind runs; `bar` is the ratio to reach."""

    name: str
    source: Path
    launch: str
    record: Callable[[Path], float]
    bar: float


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


def record_reverse(trace: Path) -> float:
    """Reverse 1,048,576 ints; seconds from the launch to the closed trace."""
    values = np.arange(1 << 20, dtype=np.int32)
    with cutrace.Session(trace) as gpu:
        kernel = gpu.compile(GALLERY / "reverse_array" / "reverse_global.cu").get_function(
            "reverseGlobal"
        )
        source = gpu.to_device(values, name="in")
        result = gpu.device_array(values.size, np.int32, name="out")
        start = time.perf_counter()
        kernel[4096, 256](result, source)
        computed = result.copy_to_host()
    seconds = time.perf_counter() - start
    np.testing.assert_array_equal(computed, values[::-1])
    return seconds


def record_product(trace: Path) -> float:
    """Multiply two 256 x 256 matrices by 16 x 16 tiles; seconds from launch to closed trace."""
    n = 256
    a = (np.arange(n * n, dtype=np.float32) % 7).reshape(n, n)
    b = (np.arange(n * n, dtype=np.float32) % 5).reshape(n, n)
    with cutrace.Session(trace) as gpu:
        module = gpu.compile(
            GALLERY / "matrix_product" / "product_tiled.cu", name_expressions=["productTiled<16>"]
        )
        kernel = module.get_function("productTiled<16>")
        left, right = gpu.to_device(a, name="a"), gpu.to_device(b, name="b")
        result = gpu.device_array((n, n), np.float32, name="c")
        start = time.perf_counter()
        kernel[(16, 16), (16, 16)](result, left, right, n)
        computed = result.copy_to_host()
    seconds = time.perf_counter() - start
    np.testing.assert_array_equal(computed, a @ b)
    return seconds


def record_mandelbrot(trace: Path) -> float:
    """Escape times of 512 x 512 points, 256 iterations at most; launch to closed trace."""
    with cutrace.Session(trace) as gpu:
        kernel = gpu.compile(CUDA / "mandelbrot.cu").get_function("mandelbrot")
        counts = gpu.device_array((512, 512), np.int32, name="counts")
        start = time.perf_counter()
        kernel[(32, 32), (16, 16)](counts, 512, 256)
        computed = counts.copy_to_host()
    seconds = time.perf_counter() - start
    np.testing.assert_array_equal(computed, MANDELBROT())
    return seconds


CASES = (
    Case(
        "tiled_product",
        GALLERY / "matrix_product" / "product_tiled.cu",
        "productTiled<16><<<(16, 16), (16, 16)>>>"
        "(c:f32[256,256], a:f32[256,256]=random:1, b:f32[256,256]=random:2, 256)",
        record_product,
        40.0,
    ),
    Case(
        "reverse_array",
        GALLERY / "reverse_array" / "reverse_global.cu",
        "reverseGlobal<<<4096, 256>>>(out:i32[1048576], in:i32[1048576]=arange)",
        record_reverse,
        15.0,
    ),
    Case(
        "mandelbrot",
        CUDA / "mandelbrot.cu",
        "mandelbrot<<<(32, 32), (16, 16)>>>(counts:i32[512,512], 512, 256)",
        record_mandelbrot,
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
    record = [program, "record", str(case.source), "--launch", case.launch, "-o", str(trace)]
    twin = ["oclgrind", sys.executable, str(HOST), case.name, "1"]
    case.record(trace)
    times: dict[str, list[float]] = {"ours": [], "theirs": [], "whole": [], "whole twin": []}
    for _ in range(ROUNDS):
        times["theirs"].append(oclgrind(case))
        times["ours"] += [case.record(trace) for _ in range(runs)]
        times["whole twin"].append(whole_process(twin))
        times["whole"].append(whole_process(record))
    ours, theirs, whole, other = (median(seconds) for seconds in times.values())
    return [
        Measurement(f"{case.name}: launch to closed trace, s", ours, theirs, case.bar),
        Measurement(f"{case.name}: whole process, s", whole, other, None),
    ]


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
    parser.add_argument("--runs", type=int, default=5, help="recordings a round, of three rounds")
    arguments = parser.parse_args()
    if not shutil.which("oclgrind"):
        raise SystemExit("Oclgrind is missing: apt install oclgrind")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = [m for case in CASES for m in measure_recording(case, folder, arguments.runs)]
        measured.append(measure_replay(folder, arguments.runs))
    show(measured)
    if arguments.json:
        arguments.json.write_text(
            json.dumps([asdict(m) | {"ratio": m.ratio} for m in measured], indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
