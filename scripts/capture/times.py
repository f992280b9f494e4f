"""Record how long Nsight Compute says that kernels take on this GPU, and what they wait for.

    python scripts/capture/times.py OUT.json SOURCE.cu ...

As scripts/capture/counters.py, with the caches flushed before each launch, once with the clocks as
the profiler sets them (`base`) and once with those of the chip (`none`). Of each launch the
durations, the clock, each unit's share of its best throughput and the reasons for which warps
stalled are kept, in the order of `metrics`.
"""

import csv
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import counters

STALLS = (
    "barrier", "branch_resolve", "dispatch_stall", "drain", "imc_miss", "lg_throttle",
    "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "no_instruction",
    "not_selected", "selected", "short_scoreboard", "sleeping", "tex_throttle", "wait",
)  # fmt: skip
METRICS = (
    "gpu__time_duration.sum",
    "sm__cycles_elapsed.avg.per_second",
    "sm__cycles_active.avg",
    *(f"{unit}__throughput.avg.pct_of_peak_sustained_elapsed" for unit in
      ("sm", "l1tex", "lts", "dram")),
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    *(f"smsp__average_warps_issue_stalled_{stall}_per_issue_active.ratio" for stall in STALLS),
)  # fmt: skip


def profile(source: Path, clock: str) -> list[tuple[str, list[float | None]]]:
    """Profile every launch of a source; its kernels and values in the order of METRICS."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.ncu-rep"
        command = [
            "ncu", "--force-overwrite", "--export", str(report), "--cache-control", "all",
            "--clock-control", clock, "--metrics", ",".join(METRICS),
            "--kernel-name-base", "function", "--kernel-name",
            f"regex:^({'|'.join(counters.kernels(source))})$", sys.executable,
            str(Path(counters.__file__)), "--launch", str(source),
        ]  # fmt: skip
        said = subprocess.run(command, capture_output=True, text=True)
        if not report.exists():
            raise SystemExit(f"{source.name}: {(said.stdout + said.stderr)[-3000:]}")
        rows = list(csv.reader(io.StringIO(
            counters.page(report, "--page", "raw", "--print-units", "base"))))  # fmt: skip
    start = next(i for i, row in enumerate(rows) if row and row[0] == "ID")
    return [_values(dict(zip(rows[start], row, strict=True))) for row in rows[start + 2 :]]


def _values(row: dict[str, str]) -> tuple[str, list[float | None]]:
    texts = [row.get(metric, "").replace(",", "") for metric in METRICS]
    found = [float(text) if text[:1].isdigit() else None for text in texts]
    return row["Kernel Name"].partition("(")[0].removeprefix("void "), found


def capture(sources: list[Path]) -> list[dict[str, Any]]:
    """Return a record for every launch of the sources."""
    records = []
    for source in sources:
        try:
            told = {clock: profile(source, clock) for clock in ("base", "none")}
        except SystemExit as refusal:
            print(refusal, file=sys.stderr)
            continue
        for number, (kernel, base) in enumerate(told["base"]):
            none = told["none"][number][1]
            records.append({"source": source.name, "launch": number, "kernel": kernel,
                            "base": base, "none": none[:2]})  # fmt: skip
    return records


def main(target: str, *names: str) -> None:
    """Capture the sources named."""
    records = capture([Path(name) for name in names])
    rows = ",\n".join(json.dumps(record) for record in records)
    head = json.dumps({**counters.device(), "metrics": METRICS})
    Path(target).write_text(f'{head[:-1]}, "launches": [\n{rows}\n]}}\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
