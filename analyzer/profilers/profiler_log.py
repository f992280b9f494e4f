"""Write the log of NVIDIA's first profiler, key-value or CSV, as existing scripts parse it.

Comment lines are followed by a line with the names of all columns, then a row for each copy and
launch in order: `method=[ name ] gputime=[ 0.000 ] ...`, or comma-separated values without trailing
empty ones. Columns are in the tool's order, not the config's. The old limit of four counters per
run does not apply. Values that a simulation cannot measure are 0.000 (gputime, cputime) or left out
(time stamps).

Source: Profiler User's Guide 7.5, chapter 4; "CUDA, Supercomputing for the Masses", part 6; logs of
2008 to 2018 in public repositories.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ...base.dataclass import dataclass
from ...base.errors import nearest
from ...base.sanitize import sanitize
from ...traces.schema import Event
from ..counting.evaluate import Value
from ..counting.vocabulary import Counter, era, heading, vocabularies
from ..launch_profile import LaunchProfile
from ..profile import Profile

ZERO = "0.000"
DIRECTIONS = {"HtoD": ("1",), "DtoH": ("2",), "DtoD": ("3",)}
"""Values of `memtransferdir` in real logs: cudaMemcpyKind."""

SILENT = frozenset(
    {"countermodeaggregate", "conckerneltrace", "enableonstart", "cudadevice", "profilelogformat"}
)
"""Options that add no columns."""

UNKNOWABLE = frozenset(
    {
        *("timestamp", "gpustarttimestamp", "gpuendtimestamp", "localblocksize"),
        *("cacheconfigrequested", "cacheconfigexecuted", "memtransferhostmemtype"),
    }
)
"""Columns that only a chip can fill."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column, or the two or three of an option like `gridsize`.

    `launch` and `event` return its values in the rows of launches and copies; no values: absent.
    """

    key: str
    names: tuple[str, ...]
    launch: Callable[[LaunchProfile], tuple[str, ...]] = lambda profile: ()
    event: Callable[[Event], tuple[str, ...]] = lambda event: ()


def _extent(key: str, field: str, dimensions: int) -> Column:
    """Return the columns of an extent: `gridsize=[ 196, 1 ]`, in CSV `gridsizeX,gridsizeY`."""
    return Column(
        key,
        tuple(f"{key.removesuffix('3d')}{axis}" for axis in "XYZ"[:dimensions]),
        lambda p: tuple(map(str, getattr(p.launch, field)[:dimensions])),
    )


def _fact(key: str, read: Callable[[LaunchProfile], Value]) -> Column:
    """Return a column with one value of a launch."""

    def values(profile: LaunchProfile) -> tuple[str, ...]:
        value = read(profile)
        return () if value is None else (_number(value),)

    return Column(key, (key,), values)


ALWAYS = ("method", "gputime", "cputime", "occupancy")
COLUMNS = (
    Column("method", ("method",), lambda p: (p.launch.kernel,), lambda e: (_method(e),)),
    Column("gputime", ("gputime",), lambda p: (ZERO,), lambda e: (ZERO,)),
    Column("cputime", ("cputime",), lambda p: (ZERO,), lambda e: (ZERO,)),
    _extent("gridsize", "grid", 2),
    _extent("gridsize3d", "grid", 3),
    _extent("threadblocksize", "block", 3),
    _fact("dynsmemperblock", lambda p: p.launch.shared_dynamic),
    _fact("stasmemperblock", lambda p: p.launch.shared_static),
    _fact("regperthread", lambda p: p.raw.facts.get("registers")),
    _fact("occupancy", lambda p: p.counters["occupancy"]),
    _fact("streamid", lambda p: 0),
)
TRANSFERS = (
    Column("memtransfersize", ("memtransfersize",), event=lambda e: (str(e.bytes),)),
    Column("memtransferdir", ("memtransferdir",), event=lambda e: DIRECTIONS.get(e.direction, ())),
)


def render(profile: Profile, config: Sequence[str] | None = None, is_csv: bool = False) -> str:
    """Return the log of a profile's first device.

    `config` are the lines of a config file; None selects every counter of the device's era. A line
    with an unknown name is skipped, with a warning on stderr.
    """
    device = profile.launches[0] if profile.launches else None
    counters = _device_columns(device)
    if config is None:
        own = era(device.capability) if device else None
        its = own.of(device.capability) if device and own else ()
        config = [c.name for c in its if c.section != "metric"]
    keys = {*ALWAYS, *_config_keys(config, counters)}
    form = [line.split()[1:] for line in config if line.split()[0] == "profilelogformat"]
    is_csv = form[-1] == ["CSV"] if form else is_csv
    columns = [c for c in (*COLUMNS, *counters.values(), *TRANSFERS) if c.key in keys]
    head = [*_head(profile), *(["# CUDA_PROFILE_CSV 1"] if is_csv else [])]
    names = ",".join(name for column in columns for name in column.names)
    rows = (_row(columns, cells, is_csv) for cells in _events(profile, columns))
    return "\n".join((*head, names, *rows)) + "\n"


def render_csv(profile: Profile, config: Sequence[str] | None = None) -> str:
    """Return the log of a profile's first device as CSV."""
    return render(profile, config, is_csv=True)


def _head(profile: Profile) -> list[str]:
    """Return the comment lines."""
    name = profile.launches[0].device_name if profile.launches else "none"
    return ["# CUDA_PROFILE_LOG_VERSION 2.0", f"# CUDA_DEVICE 0 {name}", "# CUDA_CONTEXT 1"]


def _device_columns(device: LaunchProfile | None) -> Mapping[str, Column]:
    """Return the device's counters, its era's first, as columns by name."""
    if device is None:
        return {}
    own = era(device.capability)
    ordered = ([own] if own else []) + [v for v in vocabularies() if v is not own]
    columns: dict[str, Column] = {}
    for counter in (c for v in ordered for c in v.of(device.capability)):
        if counter.name not in columns and counter.name not in ALWAYS:
            columns[counter.name] = _counter_column(counter)
    return columns


def _counter_column(counter: Counter) -> Column:
    return _fact(counter.name, lambda p: p.counters[heading(counter)])


def _config_keys(config: Sequence[str], counters: Mapping[str, Column]) -> Iterator[str]:
    """Yield the keys of the columns that a config selects."""
    columns = {*counters, *(c.key for c in (*COLUMNS, *TRANSFERS))}
    for line in config:
        word = line.split()[0]
        if word in columns:
            yield word
        elif word in UNKNOWABLE:
            _warn(f"`{word}` is left out of the log: only a chip could fill it")
        elif word not in SILENT:
            _warn(f"the log has no {word!r} for this device{nearest(word, columns)}; ignored")


def _events(
    profile: Profile, columns: Sequence[Column]
) -> Iterator[Iterable[tuple[Column, tuple[str, ...]]]]:
    """Yield the cells of each row: copies and launches in chronological order."""
    launches = {p.number: p for p in profile.launches if p.device == profile.devices[0]}
    for event in profile.manifest.events:
        if event.kind == "library":
            _warn(f"{event.name} has no row in the log: its kernels are not in the trace")
        elif event.kind != "launch":
            yield [(column, column.event(event)) for column in columns]
        elif (launch := launches[event.launch]).refusal:
            _warn(f"launch {launch.number} has no row in the log: {launch.device} {launch.refusal}")
        else:
            yield [(column, column.launch(launch)) for column in columns]


def _row(
    columns: Sequence[Column], cells: Iterable[tuple[Column, tuple[str, ...]]], is_csv: bool
) -> str:
    """Return a row in either form."""
    if is_csv:
        padded = (values or ("",) * len(column.names) for column, values in cells)
        return ",".join(value for values in padded for value in values).rstrip(",")
    return " ".join(f"{column.key}=[ {', '.join(values)} ]" for column, values in cells if values)


def _method(event: Event) -> str:
    """Return `memcpyHtoD`, or `memset`."""
    return f"memcpy{event.direction}" if event.kind == "copy" else "memset"


def _number(value: int | float) -> str:
    """Format counts as integers, ratios with three decimals."""
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def _warn(text: str) -> None:
    print(sanitize(f"cutrace: {text}"), file=sys.stderr)
