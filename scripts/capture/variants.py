"""Record how long Nsight Compute says that the kernels of tests/validate/variants take on this GPU.

    python scripts/capture/variants.py OUT.csv SOURCE.cu ...

Needs an NVIDIA GPU whose counters may be read, `ncu` and CuPy. Kernels are launched as the launch
comments of their source say, at the profiler's base clock, with caches flushed before each.
"""

import csv
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

LAUNCH = re.compile(r"// cutrace: (\w+<\d+>)<<<(.+?), (\(.+?\)|\d+)>>>\((.*)\)")
ARRAY = re.compile(r"(\w+):([fi]32)\[(\d+)\](?:=(arange|random)(?::\d+)?)?")
METRICS = ("gpu__time_duration.sum", "sm__cycles_elapsed.avg.per_second")
STALLS = "regex:smsp__average_warps_issue_stalled_[a-z_]+_per_issue_active.ratio"
STALL = re.compile(r"issue_stalled_(?!\w*_not_issued)(\w+)_per_issue_active\.ratio")
GROUPS = {
    **dict.fromkeys(("long_scoreboard", "lg_throttle", "drain"), "memory"),
    **dict.fromkeys(("mio_throttle", "short_scoreboard"), "shared"),
    "barrier": "barrier",
}
"""Stall reason to its group; other reasons are `execution`."""
COLUMNS = ("memory", "shared", "barrier", "execution")


def launches(source: Path) -> list[tuple[str, tuple[int, ...], tuple[int, ...], list[str]]]:
    """Return kernel, grid, block and arguments of each launch comment."""
    found = []
    for kernel, grid, block, arguments in LAUNCH.findall(source.read_text()):
        shape = [tuple(map(int, re.findall(r"\d+", text))) for text in (grid, block)]
        found.append((kernel, shape[0], shape[1], arguments.split(", ")))
    return found


def launch_all(source: Path) -> None:
    """Launch every kernel of a source once."""
    import cupy

    every = launches(source)
    names = sorted({kernel for kernel, *_ in every})
    options = ("-lineinfo", "-std=c++17")
    module = cupy.RawModule(code=source.read_text(), options=options, name_expressions=names)
    arrays: dict[str, Any] = {}
    for kernel, grid, block, texts in every:
        given: list[Any] = []
        for text in texts:
            if match := ARRAY.fullmatch(text):
                name, kind, size, fill = match.groups()
                dtype = {"f": cupy.float32, "i": cupy.int32}[kind[0]]
                make = {"random": lambda n: cupy.random.rand(n), "arange": cupy.arange}
                arrays[name] = make.get(fill, cupy.zeros)(int(size)).astype(dtype)
            number = re.fullmatch(r"\d+", text)
            given.append(cupy.int32(int(text)) if number else arrays[text.partition(":")[0]])
        module.get_function(kernel)(grid, block, tuple(given))
    cupy.cuda.Device().synchronize()


def stall_shares(values: dict[str, str]) -> tuple[str, ...]:
    """Return the shares of a launch's stalls by COLUMNS."""
    shares = dict.fromkeys(COLUMNS, 0.0)
    for metric, value in values.items():
        if match := STALL.search(metric):
            shares[GROUPS.get(match[1], "execution")] += float(value.replace(",", "") or 0)
    whole = sum(shares.values()) or 1.0
    return tuple(f"{share / whole:.2f}" for share in shares.values())


def profile(source: Path) -> list[tuple[str, ...]]:
    """Return each launch's kernel, nanoseconds, MHz and shares of its stalls by COLUMNS."""
    names = "|".join(sorted({kernel.partition("<")[0] for kernel, *_ in launches(source)}))
    command = [
        *("ncu", "--csv", "--page", "raw", "--print-units", "base", "--cache-control", "all"),
        *("--clock-control", "base", "--metrics", ",".join((*METRICS, STALLS))),
        *("--kernel-name-base", "function", "--kernel-name", f"regex:^({names})$"),
        *(sys.executable, __file__, "--launch", str(source)),
    ]
    printed = subprocess.run(command, capture_output=True, text=True).stdout
    rows = list(csv.reader(io.StringIO(printed)))
    start = next((n for n, row in enumerate(rows) if row and row[0] == "ID"), None)
    if start is None:
        raise SystemExit(f"{source.name}: {printed[-2000:]}")
    found = []
    values_rows = [row for row in rows[start + 2 :] if len(row) == len(rows[start])]
    for (kernel, *_), row in zip(launches(source), values_rows, strict=True):
        values = dict(zip(rows[start], row, strict=True))
        ns, hz = (float(values[metric].replace(",", "")) for metric in METRICS)
        found.append((kernel, f"{ns:.0f}", f"{hz / 1e6:.0f}", *stall_shares(values)))
    return found


def main(target: str, *names: str) -> None:
    """Profile the sources named."""
    if target == "--launch":
        launch_all(Path(names[0]))
        return
    with Path(target).open("w", newline="") as opened:
        out = csv.writer(opened, lineterminator="\n")
        out.writerow(("source", "kernel", "ns", "mhz", *COLUMNS))
        for name in names:
            out.writerows((Path(name).name, *row) for row in profile(Path(name)))


if __name__ == "__main__":
    main(*sys.argv[1:])
