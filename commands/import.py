"""`cutrace import`: another tool's trace, taken on a GPU, as one of cutrace's; a report as CSV."""

from pathlib import Path
from typing import Annotated

from ..base.errors import CutraceError
from ..traces.address import as_given
from .options.command_line import quote
from .options.verb import argument, value, verb
from .terminal.progress import progress


@verb(
    "Record",
    "cutrace import kernelslist.g -o app.cutrace",
    "cutrace import kernel_5f3a_iter0_scale.ndjson.zst",
    "cutrace import scale.ncu-rep -o scale.csv",
)
def import_files(
    files: Annotated[
        list[Path],
        argument(
            "Accel-Sim's kernelslist.g or .traceg, what NVBit's mem_trace printed, or "
            "CUTracer's NDJSON; also packed by gzip, xz or zstd. Or a report of Nsight Compute"
            " (.ncu-rep), as CSV.",
            "FILE...",
        ),
    ],
    out: Annotated[
        Path | None,
        value(
            "The trace, or a report's CSV (default: named after the first file, in this folder).",
            None,
            *("--out", "-o"),
        ),
    ] = None,
    format: Annotated[str, value("The format of the files (default: detected).", "NAME")] = "",
    source: Annotated[Path | None, value("The source file of the line numbers.", "FILE")] = None,
    max_trace_size: Annotated[str, value("Size limit of the trace: 500K, 10M, 2G.", "BYTES")] = "",
) -> str:
    """Read traces that other tools took on a GPU: machine instructions, as they are."""
    from ..base.config import bytes_of
    from ..traces.imports.import_trace import import_trace

    if files[0].suffix == ".ncu-rep":
        return _import_report(files, out)
    trace = out or Path(f"{files[0].name.partition('.')[0]}.cutrace")
    limit = bytes_of(max_trace_size, "max_trace_size") if max_trace_size else 0
    with progress(f"importing {files[0]}"):
        summary = import_trace(files, trace, format, source, limit)
    counts = (
        f"launches: {summary.launches:,}",
        f"machine instructions of warps: {summary.instructions:,}",
        f"memory accesses: {summary.accesses:,}",
    )
    lines = [as_given(trace), ", ".join(counts)]
    if summary.lacks:
        lines.append(f"not in the input: {'; '.join(summary.lacks)}")
    return "\n".join((*lines, f"next: cutrace analyze {quote(trace)}"))


def _import_report(files: list[Path], out: Path | None) -> str:
    """Write a report's counters as CSV, which `compare` reads without NVIDIA's package."""
    from ..analyzer.profilers.measured import read_measured
    from ..analyzer.profilers.ncu_report_file import render_table

    report, *others = files
    if others:
        raise CutraceError(f"one report at a time: {report}, not {others[0]} too")
    table = out or Path(f"{report.stem}.csv")
    if table.exists():
        raise CutraceError(f"{table} is there already; -o names another file")
    with progress(f"importing {report}"):
        measured = read_measured(report)
        table.write_text(render_table(measured), encoding="utf-8")
    lines = {place for launch in measured.launches for place in launch.lines}
    counts = (
        f"launches: {len(measured.launches):,}",
        f"metrics: {max(len(launch.values) for launch in measured.launches):,}",
        f"source lines: {len(lines):,}",
    )
    by_line = " --by line" if lines else ""
    return "\n".join(
        (str(table), ", ".join(counts), f"next: cutrace compare TRACE {quote(table)}{by_line}")
    )
