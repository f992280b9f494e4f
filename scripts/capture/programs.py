"""Record what Nsight Compute counts for whole programs on this GPU, launch by launch.

    python programs.py FOLDER OUT [--code] [--seconds N] [--at-once N] [--each N]
                       [--skip FILE.jsonl.gz]

FOLDER is what scripts/capture/pack_programs.py made; this file, counters.py and try_inputs.py lie
in it. Every program that has no binary there is built by this machine's nvcc for its GPU. It is run
as it is if it is `unseen` (`status`, `printed`), then under the profiler: the first launch of each
kernel and shape,
or the first ones where shapes are many (`first`), caches flushed before each, clocks as
they are. OUT gets `programs.jsonl.gz`, a line as soon as a program is done (and why, if it could
not be): what the hardware counts, in 15 passes. With --code also what is
counted by patched machine code, which takes three times as long, and `sass.tar.gz`: the machine
code of each kernel with how often each instruction ran, as the profiler prints it.
"""

import argparse
import csv
import functools
import gzip
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import counters
from try_inputs import write_inputs

LAUNCHES = 8
MANY_SHAPES = {
    "nw", "lud", "scan", "huffman", "hybridsort", "mergeSort", "segmentationTreeThrust",
    "UnifiedMemoryPerf", "HSOpticalFlow", "cudaGraphsPerfScaling", "sortingNetworks",
    "simpleHyperQ", "radixSortThrust", "bfs",
}  # fmt: skip
"""Programs of which the first launches are profiled, not one of each kernel and shape."""
BUILD_SECONDS, RUN_SECONDS = 150, 60
PRINTED = 1 << 16
"""Characters of what a program prints that are kept."""
TIMES = {"small": 1, "large": 16}
"""How many times larger the inputs are."""
PATCHED = ("smsp__sass", "memory_")
"""Metrics that the profiler gets by patching machine code."""
STALLS = (
    "barrier", "branch_resolve", "dispatch_stall", "drain", "gmma", "imc_miss", "lg_throttle",
    "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc", "no_instruction",
    "not_selected", "selected", "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
UNITS = ("sm", "l1tex", "lts", "dram")
OF_TIME = (
    "gpu__time_duration.sum",
    "gpc__cycles_elapsed.max",
    "gpc__cycles_elapsed.avg.per_second",
    "dram__cycles_elapsed.avg.per_second",
    "sm__cycles_elapsed.max",
    "sm__cycles_active.avg",
    "smsp__cycles_active.avg",
    *(f"{unit}__throughput.avg.pct_of_peak_sustained_elapsed" for unit in UNITS),
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__inst_executed.avg.per_cycle_active",
    "sm__inst_issued.avg.pct_of_peak_sustained_active",
    "smsp__issue_active.avg.per_cycle_active",
    "smsp__warps_eligible.avg.per_cycle_active",
    *(f"sm__inst_executed_pipe_{pipe}.sum" for pipe in
      ("alu", "fma", "fmaheavy", "fp16", "fp64", "lsu", "xu", "tex", "tensor", "uniform", "cbu")),
    "smsp__average_warp_latency_per_inst_issued.ratio",
    *(f"smsp__average_warps_issue_stalled_{stall}_per_issue_active.ratio" for stall in STALLS),
)  # fmt: skip
OF_MEMORY = (
    "l1tex__data_pipe_lsu_wavefronts.sum",
    "l1tex__data_bank_reads.sum",
    "l1tex__data_bank_writes.sum",
    "l1tex__data_bank_conflicts_pipe_lsu.sum",
    "lts__t_bytes.sum",
    "lts__t_sectors.sum",
    "lts__t_requests.sum",
    "l1tex__m_xbar2l1tex_read_bytes.sum",
    "l1tex__m_l1tex2xbar_write_bytes.sum",
)


@dataclass
class Work:
    """A program of the folder, and what is known of it so far."""

    said: dict[str, Any]
    folder: Path
    binary: Path
    built: Future[str] = field(default_factory=Future)

    @property
    def name(self) -> str:
        """Size, collection and name."""
        return f"{self.said['size']}-{self.said['collection']}-{self.said['name']}"

    def words(self, text: str) -> list[str]:
        """Split arguments or options, the folders put in."""
        inputs = self.folder / f"inputs-{self.said['size']}"
        text = text.replace("{inputs}", str(inputs)).replace("{folder}", str(self.folder))
        return shlex.split(text)

    @property
    def home(self) -> Path:
        """Where its sources lie."""
        return Path(self.folder, self.said["folder"])

    @property
    def place(self) -> Path:
        """Where it runs."""
        told = self.words(self.said["runs_in"])
        place = Path(told[0]) if told else self.home
        place.mkdir(parents=True, exist_ok=True)
        return place


def run(command: list[str], folder: Path, seconds: float) -> tuple[int, str]:
    """Run a command and what it starts, ended after some seconds; return its status and words."""
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            printed, _ = child.communicate(timeout=seconds)
            return child.returncode, printed.decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            printed, _ = child.communicate()
            return -1, printed.decode(errors="replace") + f"\nended after {seconds:.0f} s"


@functools.cache
def libraries(folder: Path) -> tuple[str, ...]:
    """Options with which programs find the driver and NVRTC, wherever this machine has them."""
    found = [Path(line.split()[-1]) for line in run(["ldconfig", "-p"], folder, 9)[1].splitlines()
             if re.search(r"lib(cuda|nvrtc)\.so", line)]  # fmt: skip
    roots = [Path("/usr/local/nvidia"), *map(Path, sys.path), Path("/usr/local/cuda")]
    for root in roots:
        if (root / "nvidia").is_dir() or "nvidia" in root.name or root.name == "cuda":
            inside = root / "nvidia" if (root / "nvidia").is_dir() else root
            found += [*inside.rglob("libcuda.so.1"), *inside.rglob("libnvrtc.so.1[0-9]")]
            found += inside.rglob("nvrtc.h")
    for path in found:
        link = folder / (path.name.partition(".so")[0] + ".so")
        if ".so" in path.name and not link.exists():
            link.symlink_to(path)
    rpaths = {str(path.parent) for path in found if "nvrtc.so" in path.name}
    headers = [str(path.parent) for path in found if path.name == "nvrtc.h"]
    return (f"-L{folder}", *(f"-I{path}" for path in headers[:1]),
            *(word for path in rpaths for word in ("-Xlinker", f"-rpath={path}")))  # fmt: skip


def build(work: Work) -> str:
    """Build a program for this GPU, unless it is there; return what went wrong, or nothing."""
    if work.binary.exists():
        return ""
    flags = work.words(shlex.join(work.said["flags"]))
    for option, name, source in work.said["modules"]:
        headers = [flag for flag in flags if flag.startswith("-I")]
        run(["nvcc", option, "-arch=sm_90", "-lineinfo", *headers, source, "-o", name],
            work.home, BUILD_SECONDS)  # fmt: skip
    command = [
        "nvcc", "-O3", "-lineinfo", "-arch=sm_90", "-o", str(work.binary), *work.said["sources"],
        *flags, *libraries(work.binary.parent),
    ]  # fmt: skip
    printed = ""
    for header in ("legacy.h", "older.h", "standard.h"):
        command[1:1] = ["-include", str(work.folder / header)]
        status, printed = run(command, work.home, BUILD_SECONDS)
        if not status:
            return ""
    errors = [line for line in printed.splitlines() if re.search(r"error|undefined", line)]
    return (errors or [printed[-300:]])[0] or "nvcc failed"


@dataclass
class Asked:
    """What the profiler is asked for: metrics, and whether machine code, too."""

    metrics: list[str]
    code: bool
    seconds: float = RUN_SECONDS

    def options(self, work: Work) -> list[str]:
        """The profiler's options for a program."""
        one_each = ["--launch-count", "1", "--filter-mode", "per-launch-config"]
        first = ["--launch-count", str(LAUNCHES), "--kill", "yes"]
        metrics = [m for m in self.metrics if self.code or not m.startswith(PATCHED)]
        return [
            *(["--section", "SourceCounters"] if self.code else []), "--metrics", ",".join(metrics),
            *(first if work.said["name"] in MANY_SHAPES or work.said.get("first") else one_each),
        ]  # fmt: skip


def profile(work: Work, asked: Asked, report: Path, seconds: float = RUN_SECONDS) -> str:
    """Run a program under the profiler; return what both printed."""
    command = [
        "ncu", "--force-overwrite", "--export", str(report), "--cache-control", "all",
        "--clock-control", "none", *asked.options(work),
        str(work.binary), *work.words(work.said["arguments"]),
    ]  # fmt: skip
    return run(command, work.place, seconds)[1]


def what_to_ask(work: Work, folder: Path, code: bool) -> Asked:
    """The metrics that this GPU has, asked by profiling a program until none is refused."""
    asked = Asked([*counters.METRICS, *OF_TIME, *OF_MEMORY], code)
    report = folder / "probe.ncu-rep"
    for _ in range(8):
        start = time.time()
        printed = profile(work, asked, report)
        lines = [line for line in printed.splitlines() if "Failed to find" in line]
        unknown = {m for m in asked.metrics if any(_names(line, m) for line in lines)}
        if not unknown:
            break
        print("this device has no", *sorted(unknown), flush=True)
        asked.metrics = [m for m in asked.metrics if m not in unknown]
    if not report.exists():
        raise SystemExit(printed[-3000:])
    passes = re.findall(r"\d+ passes", printed)[:1]
    print(f"{len(asked.metrics)} metrics, {passes}, {time.time() - start:.1f} s", flush=True)
    return asked


def _names(line: str, metric: str) -> bool:
    plain = line.replace("\\", "")
    return metric in plain or metric.partition(".")[0] in re.findall(r"\w+", plain)


def launches(report: Path, metrics: list[str]) -> list[dict[str, Any]]:
    """The metrics that the profiler has of each launch, and its kernel."""
    text = counters.page(report, "--page", "raw", "--print-units", "base")
    rows = list(csv.reader(io.StringIO(text)))
    start = next(i for i, row in enumerate(rows) if row and row[0] == "ID")
    found = []
    for row in rows[start + 2 :]:
        values = dict(zip(rows[start], row, strict=True))
        told = {n: v for n, v in values.items() if n in metrics or n.startswith("launch__")}
        numbers = {n: float(v.replace(",", "")) for n, v in told.items() if _is_number(v)}
        shape = {key: values.get(key, "") for key in ("Kernel Name", "Grid Size", "Block Size")}
        found.append({**shape, "counters": numbers})
    return found


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"-?[\d,]+(\.\d+)?([eE][-+]?\d+)?", text))


def machine_code(report: Path) -> list[str]:
    """The profiler's page of the machine code of each launch, as CSV without empty columns."""
    text = counters.page(report, "--page", "source", "--print-source", "sass")
    pages: list[list[list[str]]] = []
    for row in csv.reader(io.StringIO(text)):
        if "Source" in row and "Instructions Executed" in row:
            pages.append([row])
        elif pages and len(row) == len(pages[-1][0]):
            pages[-1].append(row)
    kernels = [
        rows for rows in pages if any("EXIT" in row[rows[0].index("Source")] for row in rows)
    ]
    return [_without_empty(rows) for rows in kernels]  # functions that they call have pages, too


def _without_empty(rows: list[list[str]]) -> str:
    keep = [
        i for i, name in enumerate(rows[0])
        if name in ("Source", "Instructions Executed") or ("stall" not in name
        and "Sampl" not in name and any(row[i] not in ("", "0") for row in rows[1:]))
    ]  # fmt: skip
    written = io.StringIO()
    csv.writer(written).writerows([row[i] for i in keep] for row in rows)
    return written.getvalue()


class Book:
    """What is written as it comes: a line a program, and machine code."""

    def __init__(self, out: Path) -> None:
        self.lines = out / "programs.jsonl.gz"
        self.code = tarfile.open(out / "sass.tar.gz", "w:gz")  # noqa: SIM115 - as long as this
        self.lock = threading.Lock()

    def add(self, work: Work, found: dict[str, Any], pages: list[str]) -> None:
        """Write what is known of a program."""
        with self.lock:
            with self.lines.open("ab") as file:  # each line a member of its own: whole at any time
                file.write(gzip.compress((json.dumps({**work.said, **found}) + "\n").encode()))
            for name, text in _first_of_each(found["launches"], pages).items():
                member = tarfile.TarInfo(f"{work.name}/{name}.csv")
                data = text.encode()
                member.size = len(data)
                self.code.addfile(member, io.BytesIO(data))


def _first_of_each(found: list[dict[str, Any]], pages: list[str]) -> dict[str, str]:
    """The machine code of the first launch of each kernel, by its name."""
    times = max(1, len(pages) // max(1, len(found)))
    first: dict[str, str] = {}
    for number, launch in enumerate(found):
        name = re.sub(r"\W+", "_", launch["Kernel Name"])[:100]
        if number * times < len(pages):
            first.setdefault(name, f"launch {number}\n{pages[number * times]}")
    return first


def capture(work: Work, asked: Asked, report: Path, end: float) -> dict[str, Any]:
    """Profile a program; return how long that took, and what went wrong."""
    problem = work.built.result()
    start = time.time()
    if problem or start > end:
        return {"problem": problem or "no time was left", "seconds": 0, "launches": []}
    found = plain(work) if work.said.get("unseen") else {}
    start = time.time()
    printed = profile(work, asked, report, min(asked.seconds, max(5, end + 10 - start)))
    return {**found, "problem": printed[-400:], "seconds": time.time() - start}


def plain(work: Work) -> dict[str, Any]:
    """Run a program as it is; return its exit status, what it printed, how long it took."""
    start = time.time()
    command = [str(work.binary), *work.words(work.said["arguments"])]
    status, printed = run(command, work.place, RUN_SECONDS)
    return {"status": status, "printed": printed[:PRINTED], "alone": time.time() - start}


def read(work: Work, asked: Asked, report: Path, found: dict[str, Any], book: Book) -> None:
    """Read what was profiled, and write it down."""
    pages: list[str] = []
    try:
        if report.exists():
            found |= {"launches": launches(report, asked.metrics), "problem": ""}
        if report.exists() and asked.code:
            pages, sass = machine_code(report), counters.executed(report)
            times = max(1, len(sass) // max(1, len(found["launches"])))
            for number, launch in enumerate(found["launches"]):
                launch["sass"] = sass[number * times]
    except (subprocess.CalledProcessError, StopIteration, ValueError, IndexError) as problem:
        found["problem"] += repr(problem)
    found.setdefault("launches", [])
    book.add(work, found, pages)
    print(f"{work.name}: {len(found['launches'])} launches, {found['seconds']:.1f} s",
          repr(found["problem"][-150:]), flush=True)  # fmt: skip
    report.unlink(missing_ok=True)


def main() -> None:
    """Build and profile the programs of a folder until the time is over."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=500)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--each", type=float, default=RUN_SECONDS, help="seconds for a program")
    parser.add_argument("--skip", type=Path, help="a programs.jsonl.gz: those are done")
    parser.add_argument("--code", action="store_true", help="patched machine code, too")
    asked = parser.parse_args()
    end = time.time() + asked.seconds
    folder, made = asked.folder.resolve(), Path(tempfile.gettempdir(), "programs-made")
    made.mkdir(exist_ok=True)
    done = set()
    if asked.skip:
        for line in gzip.decompress(asked.skip.read_bytes()).decode().splitlines():
            told = json.loads(line)
            if told["launches"]:
                done.add((told["size"], told["collection"], told["name"]))
    for size, times in TIMES.items():
        (folder / f"inputs-{size}").mkdir(exist_ok=True)
        write_inputs(folder / f"inputs-{size}", times)
    works = [
        Work(said, folder, _binary(said, folder, made))
        for said in json.loads((folder / "programs.json").read_text())
        if (said["size"], said["collection"], said["name"]) not in done
    ]
    print(json.dumps(counters.device()), flush=True)
    print(*libraries(made), flush=True)
    book = Book(asked.out)
    with ThreadPoolExecutor(12) as builders, ThreadPoolExecutor(6) as readers:
        for work in works:
            work.built = builders.submit(build, work)
        wanted = what_to_ask(next(w for w in works if not w.built.result()), made, asked.code)
        wanted.seconds = asked.each
        with ThreadPoolExecutor(asked.at_once) as pool:
            for work in works:
                pool.submit(_tried, work, wanted, made, end, readers, book)
        builders.shutdown(cancel_futures=True)
    book.code.close()


def _binary(said: dict[str, Any], folder: Path, made: Path) -> Path:
    """Where the binary of a program is, or will be."""
    there = folder / said.get("binary", "-")
    return there if there.is_file() else made / re.sub(r"\W", "-", f"{said['size']}-{said['name']}")


def _tried(
    work: Work, asked: Asked, made: Path, end: float, readers: ThreadPoolExecutor, book: Book
) -> None:
    report = made / f"{work.name}.ncu-rep".replace("/", "-")
    try:
        found = capture(work, asked, report, end)
        readers.submit(read, work, asked, report, found, book)
    except Exception as problem:  # one program must not end the others
        print(f"{work.name}: {problem!r}", flush=True)


if __name__ == "__main__":
    main()
