"""Record what this GPU reads from L2 and DRAM to fetch code, and for SMs that read the same data.

    python scripts/capture/fetches.py OUT

Builds code_fetches.cu and shared_reads.cu, runs them under Nsight Compute, and writes tables to
OUT: a row for a launch, first what the program printed of it, then the counters. Caches are flushed
before a launch; in `code_again.csv` and `shared_again.csv` they are left as the launch before left
them. `code_units.csv` has every counter whose name tells of code and constants.
"""

import csv
import io
import re
import subprocess
import sys
from pathlib import Path

from shared_reads import launches

HERE = Path(__file__).parent
OF_CODE = re.compile(
    r"(?:gcc|gpc|sm|smsp|idc|lts|lrc)__\w*(?:gcc|icc|imc|lrc)\w*|idc__requests\w*"
    r"|lts__t_(?:sectors|requests)(?:_(?:srcunit|srcnode)_[a-z0-9]+)?(?:_op_read)?"
    r"|l1tex__m_xbar2l1tex_read_(?:bytes|sectors)|dram__sectors_read"
)
"""Metrics that tell where code and constants come from, of those that the chip has."""
OF_READS = (
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_requests_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum",
    "lrc__xbar2gpc_sectors_op_read.sum",
    "lrc__lts2lrc_sectors_op_read.sum",
    "lrc__xbar2lrc_requests_op_read.sum",
    "dram__bytes_read.sum",
)
CODE_METRICS = 80


def run(*command: str | Path) -> str:
    """Run a command and return what it printed; say what went wrong."""
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
    if done.returncode:
        print(command[0], done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr, flush=True)
    return done.stdout + done.stderr


def metrics_of_code(target: Path) -> list[str]:
    """Return the metrics of the chip whose names tell of code, and keep the list of all."""
    said = run("ncu", "--query-metrics", "--chip", "gh100")
    (target / "metrics.txt").write_text(said)
    names = [line.split()[0] for line in said.splitlines() if re.match(r"\w+__\w+ +Counter", line)]
    return [f"{name}.sum" for name in names if OF_CODE.fullmatch(name)][:CODE_METRICS]


def counted(
    program: list[str | Path], kernels: str, metrics: list[str], keep: bool
) -> list[dict[str, str]]:
    """Run a program under the profiler; return a row for a launch."""
    while True:
        said = run(
            "ncu", "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
            "--cache-control", "none" if keep else "all", "--kernel-name", f"regex:{kernels}",
            "--metrics", ",".join(metrics), *program,
        )  # fmt: skip
        refused = re.findall(r"\w+", "".join(re.findall(r".*Failed to find.*\n?", said)))
        known = [metric for metric in metrics if metric.partition(".")[0] not in refused]
        if known == metrics:
            break
        metrics[:] = known
    places = re.findall(r"block \d+ on \d+", said)
    if places:
        Path(program[0]).with_name("places.txt").write_text("\n".join(places))
    rows = list(csv.reader(io.StringIO(said)))
    start = next((i for i, row in enumerate(rows) if row[:1] == ["ID"]), len(rows))
    table = [dict(zip(rows[start], row, strict=False)) for row in rows[start + 2 :]]
    printed = re.findall(r"[a-z]+,\d+,\d+,\d+,\d+", said)
    for row, what in zip(table, printed, strict=False):
        row["what"] = what
    return table


def shared_rows(program: Path, metrics: list[str], keep: bool) -> list[dict[str, str]]:
    """Run all launches of shared_reads.cu, in another process from where one fails."""
    found: list[dict[str, str]] = []
    todo, lines = launches(), program.with_name("launches")
    while todo:
        lines.write_text("\n".join(todo))
        rows = counted([program, lines], "probe", metrics, keep)
        good = [row for row in rows if row.get(metrics[0], "")[:1].isdigit()]
        for row, line in zip(good, todo, strict=False):
            row["what"] = line
        found += good
        todo = todo[len(good) + 1 :]
    return found


def keep_rows(target: Path, rows: list[dict[str, str]], metrics: list[str]) -> None:
    """Write the metrics that were counted."""
    known = [metric for metric in metrics if rows and metric in rows[0]]
    with target.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["what", *known])
        for row in rows:
            writer.writerow(
                [row.get("what", ""), *(row.get(metric, "").replace(",", "") for metric in known)]
            )


def main(target: Path) -> None:
    """Build, run and keep."""
    target.mkdir(parents=True, exist_ok=True)
    of_code = metrics_of_code(target)
    few = ["dram__bytes_read.sum", "lts__t_sectors_op_read.sum",
           "lts__t_sectors_srcunit_tex_op_read.sum"]  # fmt: skip
    code, shared = target / "code_fetches", target / "shared_reads"
    run("nvcc", "-std=c++17", "-arch=sm_90", "-o", code, "code_fetches.cu")
    run("nvcc", "-std=c++17", "-arch=sm_90a", "-o", shared, "shared_reads.cu")
    for name, keep in (("shared", False), ("shared_again", True)):
        rows = shared_rows(shared, list(OF_READS), keep)
        keep_rows(target / f"{name}.csv", rows, list(OF_READS))
        print(name, len(rows), flush=True)
    for name, metrics, keep in (
        ("code", few, False), ("code_again", few, True), ("code_units", of_code, False),
    ):  # fmt: skip
        rows = counted([code], ".", metrics, keep)
        keep_rows(target / f"{name}.csv", rows, metrics)
        print(name, len(rows), flush=True)
    for program in (code, shared):
        program.unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
