"""Record what each unit's throughput is made of, as Nsight Compute says on this GPU.

    python scripts/capture/units.py OUT.csv SOURCE.cu ...

The profiler's `sm__`, `l1tex__`, `lts__` and `dram__throughput` are each the highest of several
shares; here are all of them, of each launch of the sources (tests/validate/time), caches flushed
before each, with the clocks as they are (`none`) and as the profiler sets them (`base`). A line of
OUT.csv is a launch: source, number, kernel, clock, duration, frequencies, then the shares in
percent, under the profiler's names without `.avg.pct_of_peak_sustained_elapsed`.
"""

import csv
import io
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import counters

SHARE = ".avg.pct_of_peak_sustained_elapsed"
UNITS = ("sm", "l1tex", "lts", "dram")
FACTS = {
    "gpu__time_duration.sum": "ns",
    "sm__cycles_elapsed.avg.per_second": "sm_hz",
    "lts__cycles_elapsed.avg.per_second": "lts_hz",
}


def profile(source: Path, clock: str) -> list[dict[str, str]]:
    """Profile every launch of a source."""
    metrics = [*FACTS]
    for unit in UNITS:
        metrics += [f"{unit}__throughput{SHARE}", f"breakdown:{unit}__throughput{SHARE}"]
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.ncu-rep"
        command = [
            "ncu", "--force-overwrite", "--export", str(report), "--cache-control", "all",
            "--clock-control", clock, "--metrics", ",".join(metrics),
            "--kernel-name-base", "function", "--kernel-name",
            f"regex:^({'|'.join(counters.kernels(source))})$", sys.executable,
            str(Path(counters.__file__)), "--launch", str(source),
        ]  # fmt: skip
        said = subprocess.run(command, capture_output=True, text=True)
        if not report.exists():
            raise SystemExit(f"{source.name}: {(said.stdout + said.stderr)[-3000:]}")
        return read(counters.page(report, "--page", "raw", "--print-units", "base"))


def read(page: str) -> list[dict[str, str]]:
    """Read the profiler's page of raw metrics."""
    rows = list(csv.reader(io.StringIO(page)))
    start = next(i for i, row in enumerate(rows) if row and row[0] == "ID")
    return [_launch(dict(zip(rows[start], row, strict=True))) for row in rows[start + 2 :]]


def _launch(told: dict[str, str]) -> dict[str, str]:
    shares = {k.removesuffix(SHARE): v for k, v in sorted(told.items()) if k.endswith(SHARE)}
    facts = {name: told[metric].replace(",", "") for metric, name in FACTS.items()}
    kernel = told["Kernel Name"].partition("(")[0].removeprefix("void ")
    return {"kernel": kernel, **facts, **shares}


def write(out: Path, launches: list[dict[str, str]]) -> None:
    """Write all launches, without shares that are 0 in every one."""
    names = [n for n in launches[0] if any(each[n] not in ("", "0") for each in launches)]
    with out.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(launches)


def main() -> None:
    """Profile the sources that are named at both clocks."""
    out, *sources = map(Path, sys.argv[1:])
    every = [
        {"source": source.name, "launch": str(number), "clock": clock, **launch}
        for clock in ("none", "base")
        for source in sources
        for number, launch in enumerate(profile(source, clock))
    ]
    write(out, every)


if __name__ == "__main__":
    main()
