"""Table of a sweep: a row for each variant, its settings, device, launch and counter."""

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from ...base.config import read_size
from ...base.errors import CutraceError
from ...models.replay.device.device import Device
from ...models.replay.device.measured import load_interval
from ...traces.reader import Trace
from ..comparison.comparison import Comparison, LaunchComparison, compare_rows, sum_launches
from ..counting.evaluate import Value
from ..counting.vocabulary import Counter, find_counters, heading, headings, vocabularies
from ..launch_profile import LaunchProfile
from ..profile import Profile
from .suite import COLUMNS, Job, Setting, Suite, list_jobs, words

TOGETHER = -1
"""Launch number of the sum over all launches of a recording, in a job's own table."""
_TYPES = (pl.String, pl.String, pl.Int64, pl.String, pl.String, pl.Float64, pl.String)
SCHEMA = dict(zip(COLUMNS, _TYPES, strict=True))


def tabulate(job: Job, profile: Profile) -> pl.DataFrame:
    """Return a job's rows, and those of the sum over its launches as launch TOGETHER.

    Only counters of the device have rows; their values are null if it refuses the launch.
    """
    selection = [p for p in profile.launches if not job.take or p.number in job.take]
    if missing := sorted({*job.take} - {*profile.numbers}):
        many = len(profile.numbers)
        raise CutraceError(f"{job}: take {missing[0]}: it has {many} launches, counted from 0")
    rows: list[tuple[object, ...]] = []
    for launch in selection:
        rows += _rows(job, launch, launch.number)
    for device in profile.devices:
        mine = [p for p in selection if p.device == device]
        rows += _rows(job, sum_launches(mine), TOGETHER)
    return pl.DataFrame(rows, SCHEMA, orient="row")


def refuse(job: Job, trace: Trace, device: Device, refusal: str) -> pl.DataFrame:
    """Return the rows that `tabulate` would make of a trace on a device, with null values."""
    launches = [(n, launch.name) for n, launch in enumerate(trace.manifest.launches)]
    selection = [each for each in launches if not job.take or each[0] in job.take]
    rows = [
        (job.variant, device.key, number, kernel, name, None, refusal)
        for number, kernel in (*selection, (TOGETHER, selection[0][1] if selection else ""))
        for name, counter in headings(device.capability).items()
        if counter
    ]
    return pl.DataFrame(rows, SCHEMA, orient="row")


def with_settings(table: pl.DataFrame, settings: Mapping[str, Setting]) -> pl.DataFrame:
    """Add a column for each device parameter that was set to a job's rows; sizes are in bytes."""
    values = {name: read_size(value) for name, value in settings.items()}
    types = {name: pl.Int64 if isinstance(value, int) else None for name, value in values.items()}
    return table.with_columns(**{n: pl.lit(value, types[n]) for n, value in values.items()})


def join_tables(suite: Suite, tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return all jobs' rows without the sums, with a column for each size, shape, define and device
    parameter.
    """
    jobs = list_jobs(suite)
    names = dict.fromkeys(name for job in jobs for name in job.settings)
    parts = [
        table.filter(pl.col("launch") != TOGETHER).with_columns(
            **{name: _literal(job.settings.get(name), name, jobs) for name in names}
        )
        for job, table in zip(jobs, tables, strict=True)
    ]
    first, *tail = COLUMNS
    return pl.concat(parts).select(first, *names, *suite.parameters, *tail)


def summarize(
    suite: Suite, tables: Sequence[pl.DataFrame], devices: Sequence[Device]
) -> Comparison:
    """Compare the variants of each group, on each of the `devices` and setting."""
    jobs = list_jobs(suite)
    labels = list(dict.fromkeys(job.label for job in jobs))
    base = next(job for job in jobs if job.variant == suite.baseline)
    baseline = labels.index(base.label)
    counters = find_counters(suite.counters) or vocabularies()[0].counters
    groups: dict[str, dict[str, pl.DataFrame]] = {}
    for job, table in zip(jobs, tables, strict=True):
        groups.setdefault(job.group, {})[job.label] = table
    counted = dict.fromkeys(d for table in tables for d in table["device"].to_list())
    by_key = {device.key: device for device in devices}
    comparisons = tuple(
        _compare(
            ", ".join(filter(None, (device, group, words(setting)))),
            by_key[device],
            {label: _at(table, setting) for label, table in frames.items()},
            labels,
            counters,
            baseline,
        )
        for group, frames in groups.items()
        for device in counted
        for setting in suite.settings()
    )
    return Comparison(tuple(labels), baseline, comparisons, {None: ("",) * len(labels)}, ())


def _at(table: pl.DataFrame, setting: Mapping[str, Setting]) -> pl.DataFrame:
    """Return the rows of one setting of the devices."""
    values = {name: pl.lit(read_size(value)) for name, value in setting.items()}
    return table.filter(*(pl.col(n) == value.cast(table.schema[n]) for n, value in values.items()))


def _rows(job: Job, launch: LaunchProfile, number: int) -> Iterator[tuple[object, ...]]:
    kernel = launch.launch.name
    for name, counter in headings(launch.capability).items():
        if counter:
            value = launch.counters[name]
            yield job.variant, launch.device, number, kernel, name, value, launch.refusal


def _literal(value: Setting | None, name: str, jobs: Sequence[Job]) -> pl.Expr:
    """Return a constant column: integer, unless any job has a text there."""
    is_text = any(isinstance(job.settings.get(name), str) for job in jobs)
    if is_text:
        return pl.lit(None if value is None else str(value), pl.String)
    return pl.lit(value, pl.Int64)


def _compare(
    title: str,
    device: Device,
    frames: Mapping[str, pl.DataFrame],
    labels: Sequence[str],
    counters: Sequence[Counter],
    baseline: int,
) -> LaunchComparison:
    """Return the table of one device and one combination of settings."""
    values: list[Mapping[str, Value]] = []
    refusals = []
    for label in labels:
        table = frames.get(label, pl.DataFrame(schema=SCHEMA))
        mine = table.filter(pl.col("device") == device.key, pl.col("launch") == TOGETHER)
        values.append(dict(zip(mine["counter"], map(_whole, mine["value"]), strict=True)))
        refusals.append(next(iter(mine["refusal"]), ""))
    here = [c for c in counters if any(heading(c) in side for side in values)]
    rows = compare_rows(here, values, baseline, within=load_interval(device))
    return LaunchComparison(title, None, tuple(refusals), tuple(rows))


def _whole(value: float | None) -> Value:
    """Return an integer if the value is one."""
    return int(value) if value is not None and value.is_integer() else value
