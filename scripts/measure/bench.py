"""Measure recording against Oclgrind, Numba's simulator and g++, in one run: medians, as a table
and as JSON, from which scripts/write/performance.py makes a page.

Recording is timed in a warm process from the launch to the closed trace on disk; Oclgrind, which
records nothing, from clEnqueueNDRangeKernel to clFinish; Numba's simulator, on smaller twins, from
the launch to its return; a loop of the same work that g++ -O2 compiled stands for the limit, of two
a bare recorder, too. All check what was computed. Whole processes, from the shell and back, stand
beside them without a bar.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numba
import numpy as np
from bench_cases import ROOT, Case, large_cases, new_traces, small_cases
from bench_compare import compare
from bench_native import bare_recorder, build, native

from cutrace.tracer.session.record_options import RecordOptions, default_options

ORIGIN = ROOT / "scripts" / "measure"
PATIENCE = 25.0
"""Seconds of Oclgrind after which a case is measured no more often."""
ROUNDS = 3


@dataclass(frozen=True)
class Process:
    """A whole process: seconds on the clock and of processors, bytes of memory at its peak."""

    wall: float
    cpu: float
    peak: int


@dataclass
class Result:
    """What was measured of a case: medians in seconds; None where it was not."""

    name: str
    cutrace: float = 0.0
    bar: float = 0.0
    oclgrind: float | None = None
    native: float | None = None
    recorder: float | None = None
    trace_bytes: int = 0
    whole: Process | None = None
    whole_oclgrind: Process | None = None
    small: float | None = None
    simulator: float | None = None
    small_recorder: float | None = None
    small_bar: float = 1000.0

    @property
    def ratio(self) -> float | None:
        """How many times faster than Oclgrind."""
        return None if self.oclgrind is None else self.oclgrind / self.cutrace

    @property
    def small_ratio(self) -> float | None:
        """How many times faster than the simulator, both on the smaller twin."""
        return None if not self.small or not self.simulator else self.simulator / self.small


def run_process(command: list[str]) -> tuple[Process, str]:
    """Run a command to its end; return what it took and printed. CalledProcessError if it fails."""
    with tempfile.TemporaryFile() as printed:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=printed, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise subprocess.CalledProcessError(child.returncode, command)
        printed.seek(0)
        text = printed.read().decode()
    return Process(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024), text


def measure_large(case: Case, traces: Iterator[Path], runs: int, result: Result) -> None:
    """Kernel against kernel, taking turns; whole processes beside."""
    twin = ["oclgrind", sys.executable, str(ORIGIN / "bench_oclgrind.py"), case.name, "1"]
    case.record(trace := next(traces))
    ours: list[float] = []
    theirs: list[float] = []
    while len(theirs) < ROUNDS and sum(theirs) < PATIENCE:
        result.whole_oclgrind, printed = run_process(twin)
        theirs += json.loads(printed)
        ours += [case.record(next(traces)) for _ in range(runs)]
    result.cutrace, result.oclgrind = median(ours), median(theirs)
    result.trace_bytes = sum(path.stat().st_size for path in trace.rglob("*") if path.is_file())
    if case.line:
        program = shutil.which("cutrace") or "cutrace"
        launch = ["--launch", case.line, "-o", str(next(traces))]
        result.whole, _ = run_process([program, "record", str(case.source), *launch])


def measure_small(case: Case, traces: Iterator[Path], runs: int, result: Result) -> None:
    """The smaller twin against Numba's simulator."""
    command = [sys.executable, str(ORIGIN / "bench_simulator.py"), case.name]
    _, printed = run_process(["env", "NUMBA_ENABLE_CUDASIM=1", *command])
    case.record(next(traces))
    result.simulator = float(printed)
    result.small = median(case.record(next(traces)) for _ in range(max(runs, 3)))
    result.small_bar = case.bar


def machine() -> dict[str, str | float]:
    """What the measurements were made on, and how many processes others had running on it."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    model = next((line.split(":")[1].strip() for line in lines if "model name" in line), "")
    return {
        "processor": model or platform.machine(),
        "cores": os.cpu_count() or 0,
        "load": round(os.getloadavg()[1]),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def show(results: list[Result]) -> None:
    """Print the table."""
    heads = ("cutrace s", "Oclgrind s", "ratio", "bar", "g++ s", "bare s", "small", "Numba", "x")
    print(f"{'':16}" + "".join(f"{head:>11}" for head in heads))
    for r in results:
        values = (r.cutrace, r.oclgrind, r.ratio, r.bar, r.native, r.recorder, r.small, r.simulator)
        cells = ("" if v is None else f"{v:.4g}" for v in (*values, r.small_ratio))
        print(f"{r.name:16}" + "".join(f"{cell:>11}" for cell in cells))


def sweep(case: Case, traces: Iterator[Path], runs: int, ways: list[RecordOptions]) -> None:
    """Print the seconds of a case with each of some options, in turn, and how many times faster
    each is than the first.
    """
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(runs + 1):
        for way, times in zip(ways, seconds, strict=True):
            with default_options(way):
                times.append(case.record(next(traces)))
    least = [min(times[1:]) for times in seconds]  # the first compiles
    cells = "".join(f"{each:>11.4f}{least[0] / each:>7.2f}" for each in least)
    print(f"{case.name:16}{cells}", flush=True)


PARTS = {
    "oclgrind": (
        *("cutrace", "bar", "oclgrind", "trace_bytes", "whole", "whole_oclgrind", "ratio"),
    ),
    "simulator": ("small", "simulator", "small_bar", "small_ratio"),
    "native": ("native", "recorder", "small_recorder"),
}
"""What is measured against each."""


def keep(path: Path, results: list[Result], against: list[str]) -> None:
    """Write the results to a JSON file; what was not measured now stays as it was there."""
    found: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {"cases": []}
    cases = {case["name"]: case for case in found["cases"]}
    for result in results:
        new = asdict(result) | {"ratio": result.ratio, "small_ratio": result.small_ratio}
        old = cases.setdefault(result.name, new)
        old |= {field: new[field] for part in against for field in PARTS[part]}
    found["cases"] = [*cases.values()]
    for part, name in (("oclgrind", "machine"), ("simulator", "small_machine")):
        if part in against:
            found[name] = machine()
    path.write_text(json.dumps(found, indent=1) + "\n")


def main() -> None:
    """Measure all and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="put the results there, too")
    parser.add_argument("--cases", nargs="*", help="only these: search mandelbrot ...")
    parser.add_argument("--runs", type=int, default=5, help="recordings a round, of three rounds")
    parser.add_argument("--compare", metavar="REF", help="with a commit, instead of with others")
    parser.add_argument("--keep", action="store_true", help="add the comparison to the history")
    parser.add_argument("--against", nargs="*", choices=PARTS, default=[*PARTS])
    parser.add_argument("--jobs", nargs="*", type=int, help="on 1 2 4 ... threads, nothing else")
    parser.add_argument("--code", help="PTX and this machine code (sm_90), nothing else")
    arguments = parser.parse_args()
    ways = [RecordOptions(jobs=many) for many in arguments.jobs or ()]
    if arguments.code:
        ways = [RecordOptions(), RecordOptions(code=arguments.code)]
    if ways:
        with tempfile.TemporaryDirectory() as name:
            traces = new_traces(Path(name))
            for case in large_cases():
                if not arguments.cases or case.name in arguments.cases:
                    sweep(case, traces, arguments.runs, ways)
        return
    if arguments.compare:
        compare(arguments.compare, arguments.runs, arguments.cases or (), arguments.keep)
        return
    if "oclgrind" in arguments.against and not shutil.which("oclgrind"):
        raise SystemExit("Oclgrind is missing: apt install oclgrind")
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        traces = new_traces(folder)
        library = build(folder) if "native" in arguments.against else None
        for large, small in zip(large_cases(), small_cases(), strict=True):
            if arguments.cases and large.name not in arguments.cases:
                continue
            print(f"{large.name} ...", file=sys.stderr)
            results.append(result := Result(large.name, bar=large.bar))
            if library:
                result.native = native(library, large, 3)
                result.recorder = bare_recorder(library, large, 3)
                result.small_recorder = bare_recorder(library, small, 3)
            if "simulator" in arguments.against:
                measure_small(small, traces, arguments.runs, result)
            if "oclgrind" in arguments.against:
                measure_large(large, traces, arguments.runs, result)
            elif not arguments.against:
                large.record(next(traces))
                result.cutrace = median(large.record(next(traces)) for _ in range(arguments.runs))
    show(results)
    if arguments.json:
        keep(arguments.json, results, arguments.against)


if __name__ == "__main__":
    main()
