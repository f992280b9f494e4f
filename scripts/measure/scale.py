"""Measure how cost grows: time against threads, iterations, warps and devices as straight lines;
bytes of trace; peak memory; and what a sample of blocks costs and covers. Results are JSON.

Times are CPU seconds of one process, warm, the best of some runs: what else the machine does
changes them little. Memory is of a process for each.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from bench import machine
from bench_cases import new_traces
from scale_kernels import ROWS, Record, record_loop, record_spmv, record_transpose

import cutrace
from cutrace.jit.loop import rows_asked
from cutrace.models.replay.device.device import load_devices
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.models.replay.replay import replay
from cutrace.models.replay.stateful import cache_sim
from cutrace.traces.reader import LaunchTrace, read_trace

ROOT = Path(__file__).parents[2]
JSON = ROOT / "docs" / "scale.json"
RUNS = 3
DEVICES = (
    *("8800gtx", "gtx280", "m2070", "k20", "gtx980", "p100", "v100", "t4", "a100", "rtx4090"),
    *("h100", "h200"),
)
SAMPLED = "v100"
KINDS = {
    "stream": "regular",
    "gather": "random",
    "spmv": "irregular",
    "wander": "each lane branches at random",
}
KEPT = {"record": "record", "replay": "replay", "caches": "replay with caches"}
"""What processes are asked whose memory is measured, and how the page calls it."""
Measured = dict[str, Any]


def fit(what: str, unit: str, xs: Sequence[int], seconds: Sequence[float]) -> Measured:
    """A straight line by least squares: seconds a `unit`, seconds before any, and R squared."""
    slope, offset = np.polyfit(xs, seconds, 1)
    residual = np.array(seconds) - (slope * np.array(xs) + offset)
    spread = np.array(seconds) - np.mean(seconds)
    return {
        "what": what,
        "unit": unit,
        "x": list(xs),
        "seconds": [round(s, 4) for s in seconds],
        "slope": float(slope),
        "offset": float(offset),
        "r2": float(1 - (residual**2).sum() / (spread**2).sum()),
    }


def best(run: Callable[[], float], runs: int = RUNS) -> float:
    """The least of some runs, after one to warm up."""
    run()
    return min(run() for _ in range(runs))


def measure_recording(trace: Path) -> list[Measured]:
    """Recording against threads, iterations, and warps that diverge."""
    threads = [1 << 17, 1 << 18, 1 << 19, 1 << 20]
    rounds = [8, 16, 32, 64]
    found = []
    for kernel in ("stream", "gather", "wander"):
        times = [best(lambda n=n, k=kernel: record_loop(trace, k, n, 8)) for n in threads]  # type: ignore[misc]
        found.append(fit(f"record {kernel}, 8 iterations", "thread", threads, times))
        times = [best(lambda r=r, k=kernel: record_loop(trace, k, 1 << 17, r)) for r in rounds]  # type: ignore[misc]
        found.append(fit(f"record {kernel}, 131072 threads", "iteration", rounds, times))
    return found


def measure_replay(trace: Path) -> list[Measured]:
    """Replay without caches against rows and against devices."""
    found = []
    for kernel in ("stream", "gather"):
        rows, times = [], []
        for threads in (1 << 15, 1 << 16, 1 << 17):
            record_loop(trace, kernel, threads, 16)
            launch = read_trace(trace).launches[0]
            rows.append(launch.count("accesses"))
            times.append(best(lambda launch=launch: replay_seconds(launch, 1)))  # type: ignore[misc]
        found.append(fit(f"replay {kernel} on an H200", "access row", rows, times))
        counts = [1, 3, 6, 12]
        times = [best(lambda n=n, launch=launch: replay_seconds(launch, n)) for n in counts]  # type: ignore[misc]
        found.append(fit(f"replay {rows[-1]} rows of {kernel}", "device", counts, times))
    return found


def replay_seconds(launch: LaunchTrace, devices: int, caches: bool = False) -> float:
    """CPU seconds that a replay takes on so many devices."""
    chosen = load_devices(DEVICES[-devices:], {})
    start = time.process_time()
    replay(launch, chosen, ReplayOptions(caches=caches))
    return time.process_time() - start


def measure_bytes(trace: Path) -> list[Measured]:
    """Bytes of trace for a lane's access and for a warp's instruction."""
    found = []
    for kernel, kind in KINDS.items():
        if kernel == "spmv":
            record_spmv(trace)
        else:
            record_loop(trace, kernel, 1 << 18, 32)
        launch = cutrace.read_trace(trace).launches[0]
        (counted,) = replay(launch, load_devices(("h200",), {}), ReplayOptions(caches=False))
        names = ("global_load_lanes", "global_store_lanes", "ptx_instructions")
        loads, stores, warps = (int(counted.counts[name].sum()) for name in names)
        lanes = loads + stores
        size = {path.stem: path.stat().st_size for path in launch.folder.iterdir()}
        found.append(
            {
                "kernel": kernel,
                "kind": kind,
                "bytes_a_lane_access": (size["accesses"] + size["patterns"]) / lanes,
                "bytes_a_warp_instruction": (size["control"] + size["paths"]) / warps,
            }
        )
    return found


MEMORY = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[4])
from scale_kernels import record_loop
def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
if sys.argv[1] == "record":
    seconds = record_loop(Path(sys.argv[2]), sys.argv[5], 1 << 20, int(sys.argv[3]))
else:
    import time
    import cutrace.analyzer.profile
    from cutrace.models.replay.device.device import load_devices
    from cutrace.models.replay.interface.options import ReplayOptions
    from cutrace.models.replay.replay import replay
    from cutrace.traces.reader import read_trace
    start = time.process_time()
    replay(read_trace(sys.argv[2]).launches[0], load_devices(("h200",), {}),
           ReplayOptions(caches=sys.argv[1] == "caches"))
    seconds = time.process_time() - start
print(json.dumps([peak(), seconds]))
"""


def measure_memory(trace: Path) -> list[Measured]:
    """Peak memory of processes that record and replay 10^7 and 10^8 accesses of lanes, the latter
    without caches and with them.
    """
    found = []
    for kernel in ("stream", "gather", "wander"):
        peaks: dict[str, list[int]] = {what: [] for what in KEPT}
        seconds: dict[str, list[float]] = {what: [] for what in KEPT}
        for rounds in (10, 100):
            for what in peaks:
                words = [what, str(trace), str(rounds), str(ROOT / "scripts" / "measure"), kernel]
                done = subprocess.run(
                    [sys.executable, "-c", MEMORY, *words],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                peak, took = json.loads(done.stdout)
                peaks[what].append(peak)
                seconds[what].append(took)
        found += [
            {
                "kernel": kernel,
                "what": KEPT[what],
                "lane_accesses": [10**7, 10**8],
                "peak_bytes": peaks[what],
                "seconds": seconds[what],
                "growth": peaks[what][1] / peaks[what][0] - 1,
            }
            for what in peaks
        ]
    return found


def measure_rates(trace: Path) -> list[Measured]:
    """Lane instructions, access rows and cache requests a second, of one core."""
    found = []
    for kernel, kind in (("stream", "regular"), ("gather", "random")):
        seconds = best(lambda kernel=kernel: record_loop(trace, kernel, 1 << 19, 64))  # type: ignore[misc]
        launch = read_trace(trace).launches[0]
        (counted,) = replay(launch, load_devices(("h200",), {}), ReplayOptions(caches=False))
        lanes = 32 * int(counted.counts["ptx_instructions"].sum())
        found.append(rate(f"lane instructions executed, {kernel}", "lanes", kind, lanes, seconds))
        rows = launch.count("accesses")
        plain = best(lambda launch=launch: replay_seconds(launch, 1), 2)  # type: ignore[misc]
        found.append(rate(f"replay without caches, {kernel}", "rows", kind, rows, plain))
    record_loop(trace, "stream", 1 << 18, 64)
    launch = read_trace(trace).launches[0]
    plain = best(lambda: replay_seconds(launch, 1), 2)
    before = rows_asked[cache_sim.__name__]
    replay_seconds(launch, 1, caches=True)
    served = rows_asked[cache_sim.__name__] - before
    seconds = best(lambda: replay_seconds(launch, 1, caches=True), 2) - plain
    found.append(rate("caches, stream", "requests", "regular", served, seconds))
    return found


def rate(what: str, unit: str, kind: str, count: int, seconds: float) -> Measured:
    """So many of something in so many CPU seconds."""
    return {
        "what": what,
        "unit": unit,
        "kind": kind,
        "count": count,
        "seconds": seconds,
        "rate": count / seconds,
    }


def measure_sampling(folder: Path, name: str, record: Record, seeds: int) -> Measured:
    """How often intervals of a 1 % sample cover the truth, and how much less time it takes."""
    traces = new_traces(Path(tempfile.mkdtemp(dir=folder)))
    whole = best(lambda: record(next(traces)), 2)
    record(trace := next(traces))
    (truth,) = cutrace.analyze(trace, device=SAMPLED, caches=False).launches
    times: list[float] = []
    inside: dict[str, list[bool]] = {}
    widths: dict[str, list[float]] = {}
    for seed in range(seeds):
        trace = next(traces)
        times.append(record(trace, sample_blocks="1%", sample_seed=seed))
        (found,) = cutrace.analyze(trace, device=SAMPLED, caches=False).launches
        for counter, interval in found.intervals.items():
            value = truth.counters[counter]
            if interval is not None and value is not None:
                inside.setdefault(counter, []).append(interval.low <= value <= interval.high)
                width = (interval.high - interval.low) / 2 / value if value else 0.0
                widths.setdefault(counter, []).append(width)
    coverage = {counter: sum(hits) / len(hits) for counter, hits in inside.items()}
    return {
        "kernel": name,
        "seeds": seeds,
        "blocks": truth.launch.blocks,
        "sampled": len(found.launch.kept.sample.blocks),
        "seconds_whole": whole,
        "seconds_sample": median(times),
        "times_faster": whole / median(times),
        "counters": len(coverage),
        "least_coverage": min(coverage.values()),
        "worst": sorted(coverage, key=lambda counter: coverage[counter])[:5],
        "coverage": coverage,
        "half_width": {counter: median(values) for counter, values in widths.items()},
    }


def record_large_spmv(trace: Path, **options: Any) -> float:
    """Sixteen times as many rows, beside which the floor of a launch is small."""
    return record_spmv(trace, 16 * ROWS, **options)


def main() -> None:
    """Measure all and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, default=JSON, help="where the results go")
    parser.add_argument("--parts", nargs="*", help="only these; the others are kept as they are")
    parser.add_argument("--quick", action="store_true", help="few seeds")
    arguments = parser.parse_args()
    seeds = 10 if arguments.quick else 100
    found: Measured = {}
    if arguments.parts and arguments.json.is_file():
        found = json.loads(arguments.json.read_text())
    found["machine"] = machine()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "scale.cutrace"
        parts: dict[str, Callable[[], object]] = {
            "rates": lambda: measure_rates(trace),
            "bytes": lambda: measure_bytes(trace),
            "memory": lambda: measure_memory(trace),
            "lines": lambda: [*measure_recording(trace), *measure_replay(trace)],
            "sampling": lambda: [
                measure_sampling(Path(folder), "transpose 4096 x 4096", record_transpose, seeds),
                measure_sampling(Path(folder), "spmv 100000 rows", record_spmv, seeds),
                measure_sampling(Path(folder), "spmv 1600000 rows", record_large_spmv, seeds // 5),
            ],
        }
        for name in arguments.parts or parts:
            print(f"{name} ...", file=sys.stderr)
            found[name] = parts[name]()
            arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
