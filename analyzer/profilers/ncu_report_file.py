"""Read a report of Nsight Compute, `.ncu-rep`, with NVIDIA's package ncu-report.

A report has the metrics of each launch. Collected with `--set full` (or `--section SourceCounters`)
some also have a value per machine instruction; with `nvcc -lineinfo` the report knows the source
line of each instruction, and their sum is the line's value.

Source: ncu_report 2026.3 (its docstrings), and a report of ncu 2025.3 on an H100.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...base.errors import CutraceError
from .measurement import REPORT, SCALES, Line, Measured, MeasuredLaunch

INSTRUCTIONS = {
    "inst_executed": "smsp__inst_executed.sum",
    "thread_inst_executed": "smsp__thread_inst_executed.sum",
}
"""Metrics of an instruction whose sum over a kernel has another name."""
CAPABILITY = "device__attribute_compute_capability_"


def read_report(path: Path) -> Measured:
    """Read all kernels of a report; `CutraceError` without the package, or without a kernel."""
    try:
        import ncu_report
    except ImportError as error:
        raise CutraceError(
            f"{path}: a report, which NVIDIA's package ncu-report reads:"
            f' pip install "cutrace[ncu]"; or compare what `ncu --import {path.name} --page raw'
            f" --csv > {path.stem}.csv` prints"
        ) from error
    try:
        context = ncu_report.load_report(str(path))
    except OSError as error:
        reason = error.strerror or "there is no such file"
        raise CutraceError(f"{path}: {reason}") from error
    except Exception as error:  # the package raises what its C++ library throws
        raise CutraceError(f"{path}: ncu-report cannot read it: {error}") from error
    launches = tuple(
        _launch(action)
        for collected in context
        for action in collected
        if action.workload_type() == action.WorkloadType_KERNEL
    )
    if not launches:
        raise CutraceError(
            f"{path}: no kernel in it; expected a report ({REPORT}) of `ncu -o NAME`,"
            " without range replay"
        )
    return Measured("ncu", launches)


def _launch(action: Any) -> MeasuredLaunch:
    """Return one kernel's metrics, by launch and by line."""
    values: dict[str, float] = {}
    lines: defaultdict[Line, dict[str, float]] = defaultdict(dict)
    for name in action.metric_names():
        metric = action.metric_by_name(name)
        scale = _scale(metric.unit())
        value = metric.value()
        if isinstance(value, int | float) and ("__" in name or name.startswith("memory_")):
            values[name] = value * scale
        for line, amount in _by_line(action, metric):
            whole = INSTRUCTIONS.get(name, name)
            lines[line][whole] = lines[line].get(whole, 0) + amount * scale
    parts = [values.get(CAPABILITY + part) for part in ("major", "minor")]
    return MeasuredLaunch(
        action.name(action.NameBase_DEMANGLED),
        values,
        capability=".".join(f"{part:.0f}" for part in parts if part is not None),
        lines=dict(lines),
        sources=dict(action.source_files()),
    )


def _by_line(action: Any, metric: Any) -> Iterator[tuple[Line, float]]:
    """Yield the value of each instruction of a metric that has some, with the source line."""
    if not (metric.num_instances() and metric.has_correlation_ids()):
        return
    addresses = metric.correlation_ids()
    for index in range(metric.num_instances()):
        info = action.source_info(addresses.as_uint64(index))
        value = metric.value(index)
        if info is not None and isinstance(value, int | float):
            yield (info.file_name(), info.line()), value


def _scale(unit: str) -> int:
    """Return the factor to the base unit; reports have base units, but for older ones."""
    return SCALES.get(unit[:1], 1) if unit[1:].startswith(("byte", "inst", "sector")) else 1


def render_table(measured: Measured) -> str:
    """Return all values as CSV in the form of `ncu --csv`, a row per metric, and per line.

    The columns File and Line are empty for a launch as a whole. `read_measured` reads it back.
    """
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    columns = "ID", "Kernel Name", "CC", "Metric Name", "Metric Unit", "Metric Value"
    writer.writerow((*columns, "File", "Line"))
    for number, launch in enumerate(measured.launches):
        head = number, launch.kernel, launch.capability
        places: Mapping[Line, Mapping[str, float]] = {("", 0): launch.values, **launch.lines}
        for (file, line), values in places.items():
            for name, value in values.items():
                writer.writerow((*head, name, "", repr(value), file, line or ""))
    return text.getvalue()
