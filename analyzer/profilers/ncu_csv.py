"""Write the CSV of `ncu --csv`: the raw page, a row per launch; the details page, a row per metric.

Every field is quoted. Numbers have no thousands separators, in any locale; a metric that the device
does not have is an empty field of the raw page, and has no row in the details page.

Source: reports of ncu 2020 to 2024 in public repositories; Nsight Compute 2022.3 CLI manual.
"""

from collections.abc import Iterable, Iterator, Sequence

from ...base.sanitize import csv_cell
from ..counting.evaluate import Value
from ..counting.vocabulary import Counter, heading
from ..launch_profile import LaunchProfile
from ..profile import Profile
from .measured import ENGINE_STREAM, chosen_counters, demangled

HEAD = (
    *("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"),
    *("Block Size", "Grid Size", "Device", "CC"),
)
DETAILS = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")
SECTION = "Command line profiler metrics"
UNITS = {
    **{"ratio": "%", "instructions": "inst", "thread instructions": "inst"},
    **{"wavefronts": "", "branches": "", "waves": ""},
}
HOST = ("0", "cutrace", "127.0.0.1")


def render_raw(profile: Profile, names: Sequence[str] = ()) -> str:
    """Return `ncu --page raw --csv`: a header, a row of units, a row per launch and device.

    `names` are the counters to export; the default is all that ncu has, or cutrace's own if the
    device has none of those.
    """
    launches = _running(profile)
    selections = [chosen_counters("ncu", p.capability, names) for p in launches]
    counters = list(dict.fromkeys(c for some in selections for c in some))
    units = (*("" for _ in HEAD), *(_unit(c) for c in counters))
    rows = [(*HEAD, *(c.name for c in counters)), units]
    for number, launch in enumerate(launches):
        values = (_number(launch.counters[heading(c)], c) for c in counters)
        rows.append((*_head(profile, number, launch), *values))
    return _write(rows)


def render_details(profile: Profile, names: Sequence[str] = ()) -> str:
    """Return `ncu --page details --csv`: a row per launch, device and metric.

    `names` are the counters to export, as for `--metrics`; by default all that ncu has, with the
    section's label for those that have one.
    """
    return _write([(*HEAD, *DETAILS), *_details(profile, names)])


def _details(profile: Profile, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for number, launch in enumerate(_running(profile)):
        head = _head(profile, number, launch)
        for counter in chosen_counters("ncu", launch.capability, names):
            value = launch.counters[heading(counter)]
            if value is not None:
                worded = counter.label and not names
                place = (counter.section, counter.label) if worded else (SECTION, counter.name)
                yield (*head, *place, _unit(counter), _number(value, counter))


def _running(profile: Profile) -> list[LaunchProfile]:
    return [launch for launch in profile.launches if not launch.refusal]


def _head(profile: Profile, number: int, launch: LaunchProfile) -> tuple[str, ...]:
    """Return the leading fields of every page."""
    return (
        *(str(number), *HOST, csv_cell(demangled(launch.launch)), "1", ENGINE_STREAM),
        *(_extent(launch.launch.block), _extent(launch.launch.grid)),
        *(str(profile.devices.index(launch.device)), "{}.{}".format(*launch.capability)),
    )


def _extent(extent: tuple[int, ...]) -> str:
    """Return `(256, 1, 1)`."""
    return f"({', '.join(map(str, extent))})"


def _unit(counter: Counter) -> str:
    """Return ncu's spelling of a unit: singular, empty for wavefronts, per cent for ratios.

    >>> from cutrace.analyzer.counting.vocabulary import find_counters
    >>> names = ("launch__registers_per_thread", "launch__waves_per_multiprocessor")
    >>> [_unit(counter) for counter in find_counters(names)]
    ['register/thread', '']
    """
    parts = (UNITS.get(part, part.removesuffix("s")) for part in counter.unit.split("/"))
    return "/".join(parts)


def _number(value: Value, counter: Counter) -> str:
    if value is None:
        return ""
    if counter.unit == "ratio":
        value = 100 * value
    return str(value) if isinstance(value, int) else f"{value:.6f}"


def _write(rows: Iterable[Sequence[str]]) -> str:
    quoted = (",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows)
    return "\n".join(quoted) + "\n"
