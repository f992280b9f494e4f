"""Write the CSV of `nvprof --csv`: a summary of metrics, and the GPU trace.

Strings are quoted, numbers are not; counts are integers, other numbers have six decimals, a
percentage has its sign. Kernels have their C names with parameter types. Times and throughputs,
which only a chip can measure, are empty cells.

Source: files of K20c, V100 and RTX 2080 Ti in public repositories; Profiler User's Guide 7.5.
"""

from collections.abc import Iterable, Iterator, Sequence

from ...base.sanitize import csv_cell
from ...traces.schema import Event, Launch
from ..counting.evaluate import Value
from ..counting.vocabulary import Counter, heading
from ..launch_profile import LaunchProfile
from ..profile import Profile
from .measured import ENGINE_STREAM, chosen_counters, demangled

METRICS = ("Device", "Kernel", "Invocations", "Metric Name", "Metric Description")
EVENTS = ("Device", "Kernel", "Invocations", "Event Name")
SPREAD = ("Min", "Max", "Avg")
COLUMNS = (
    *("Start", "Duration", "Grid X", "Grid Y", "Grid Z", "Block X", "Block Y", "Block Z"),
    *("Registers Per Thread", "Static SMem", "Dynamic SMem", "Size", "Throughput"),
    *("SrcMemType", "DstMemType", "Device", "Context", "Stream", "Name", "Correlation_ID"),
)
UNITS = ("us", "us", *("",) * 7, "KB", "KB", "KB", "GB/s", *("",) * 7)
MEMORY = {"HtoD": ("Pageable", "Device"), "DtoH": ("Device", "Pageable")}
KILOBYTE = 1024


def render_metrics(profile: Profile, names: Sequence[str] = ()) -> str:
    """Return `nvprof --events ... --metrics ... --csv`: a row per device, kernel and event or
    metric.

    `names` are the counters to export; the default is all that nvprof had, or cutrace's own if the
    device has none of those. Values are aggregated over all launches of a kernel; an empty table is
    left out.
    """
    events: list[str] = []
    metrics: list[str] = []
    for number, device in enumerate(profile.devices):
        launches = [p for p in profile.launches if p.device == device and not p.refusal]
        for kernel in dict.fromkeys(demangled(p.launch) for p in launches):
            same = [p for p in launches if demangled(p.launch) == kernel]
            for counter in chosen_counters("nvprof", same[0].capability, names):
                place = (f"{same[0].device_name} ({number})", kernel, len(same))
                (events if counter.section == "event" else metrics).extend(
                    _metric(place, counter, same)
                )
    lines = ["==0== Event result:", _join((*EVENTS, *SPREAD)), *events] if events else []
    if metrics or not events:
        lines += ["==0== Metric result:", _join((*METRICS, *SPREAD)), *metrics]
    return "\n".join(lines) + "\n"


def render_gpu_trace(profile: Profile, names: Sequence[str] = ()) -> str:
    """Return `nvprof --print-gpu-trace --csv`: copies, sets and launches of the first device, in
    order.
    """
    first = profile.devices[:1]
    launches = {p.number: p for p in profile.launches if p.device in first and not p.refusal}
    device = f"{next(iter(launches.values())).device_name} (0)" if launches else "none (0)"
    rows = [
        _trace_row(number, event, launches, device)
        for number, event in enumerate(profile.manifest.events, start=1)
        if event.kind in ("copy", "set") or event.launch in launches
    ]
    lines = ["======== Profiling result:", _join(COLUMNS), ",".join(UNITS)]
    return "\n".join((*lines, *rows)) + "\n"


def _metric(
    place: tuple[str | int, ...], counter: Counter, launches: Sequence[LaunchProfile]
) -> Iterator[str]:
    """Yield the row of a metric, if the device has it."""
    values = [v for p in launches if (v := p.counters[heading(counter)]) is not None]
    if values:
        average = sum(values) / len(values)
        whole = int(average) if all(isinstance(v, int) for v in values) else average
        spread = (_number(v, counter) for v in (min(values), max(values), whole))
        described = () if counter.section == "event" else (counter.label or counter.doc,)
        yield f"{_join((*place, counter.name, *described))},{','.join(spread)}"


def _number(value: Value, counter: Counter) -> str:
    """Format a value: `3912831`, `0.917697` or `93.715659%`."""
    if counter.unit in ("ratio", "%") and value is not None:
        return f"{value * (100 if counter.unit == 'ratio' else 1):.6f}%"
    return str(value) if isinstance(value, int) else f"{value:.6f}"


def _trace_row(number: int, event: Event, launches: dict[int, LaunchProfile], device: str) -> str:
    """Return the row of an event: `number` is its correlation id."""
    end: tuple[str | int, ...] = (device, "1", ENGINE_STREAM)
    if event.kind == "launch":
        profile = launches[event.launch]
        shape = (*profile.launch.grid, *profile.launch.block)
        cells = (*shape, _registers(profile), *_shared(profile.launch))
        name = f"{demangled(profile.launch)} [{number}]"
        return _bare(("", "", *cells, "", "", "", "", *end, name, number))
    size = _kilobytes(event.bytes)
    if event.kind == "copy":
        types, name = MEMORY.get(event.direction, ("Device", "Device")), f"memcpy {event.direction}"
    else:
        types, name = ("Device", ""), "memset"
    return _bare((*("",) * 11, size, "", *types, *end, f"[CUDA {name}]", number))


def _registers(profile: LaunchProfile) -> Value | str:
    registers = profile.raw.facts.get("registers")
    return "" if registers is None else registers


def _shared(launch: Launch) -> tuple[float, float]:
    return _kilobytes(launch.shared_static), _kilobytes(launch.shared_dynamic)


def _kilobytes(size: int) -> float:
    return size / KILOBYTE


def _join(cells: Iterable[str | int]) -> str:
    """Join cells: strings quoted, numbers bare."""
    return ",".join(_cell(cell) for cell in cells)


def _bare(cells: Iterable[Value | str]) -> str:
    """Join cells like `_join`, but leave empty cells unquoted."""
    return ",".join("" if cell in ("", None) else _cell(cell) for cell in cells)


def _cell(cell: Value | str) -> str:
    if isinstance(cell, str):
        return '"' + csv_cell(cell).replace('"', '""') + '"'
    return f"{cell:.6f}" if isinstance(cell, float) else str(cell)
