"""`cutrace sweep`: variants by sizes, shapes and defines, on all cores, as one tidy table."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..base.errors import CutraceError, nearest
from ..models.replay.interface.options import ReplayOptions
from .options.command_line import quote
from .options.complete import starting, suites
from .options.recording import RUN_CODE, RunCode
from .options.replay import REPLAY, with_devices
from .options.tabular import ReportFormat
from .options.verb import Line, Typed, argument, shown, value, verb
from .running.executor import On
from .terminal.screen import has_colour, width

if TYPE_CHECKING:
    from os import PathLike

    import polars as pl

    from ..analyzer.sweep.suite import Suite


@verb(
    "Compare",
    "cutrace sweep suite.toml -o table.parquet",
    "cutrace sweep transpose -d h100",
)
def sweep(
    suite: Annotated[
        "str | PathLike[str]",
        argument(
            "A suite, or the name of a family of the gallery that has one",
            "SUITE.toml",
            starting(suites),
        ),
        Typed(str),
    ],
    out: Annotated[
        "str | PathLike[str] | None",
        value(
            "The table, .parquet or .csv (default: NAME.parquet in this folder), at an"
            " address (s3://...) also a folder.",
            None,
            *("--out", "-o"),
        ),
        Typed(Path | None),
    ] = None,
    *,
    processes: Annotated[
        int | None, value("Parallel processes (default: one a core).", "N", min=1)
    ] = None,
    on: Annotated[On, Typed()] = None,
    replay: ReplayOptions = REPLAY,
    running: RunCode = RUN_CODE,
    **options: Any,
) -> "pl.DataFrame":
    """Record every variant of a suite in every size, and write one tidy table.

    In Python the answer is the table. An `executor` runs the jobs instead of `processes` of this
    machine: any object with `submit`, for example from `concurrent.futures`, or Dask's client.
    Sources are sent with the jobs; workers need the same cutrace. `options` are those of `analyze`,
    devices among them. `out` is a file, .parquet or .csv, or an address, where a name without a
    suffix is a folder: a Parquet dataset. Completed jobs are cached next to it until all are done:
    after an interruption the next call resumes.

    Raises `CutraceError` for an invalid suite, and for failed jobs, after all others.
    """
    from ..analyzer.sweep.sweep_table import join_tables

    plan, tables, _ = _run(suite, out, processes, on, replay, running)
    return join_tables(plan, tables)


def _run(
    suite: "str | PathLike[str]",
    out: "str | PathLike[str] | None",
    processes: int | None,
    on: str | None,
    replay: ReplayOptions,
    running: RunCode,
) -> "tuple[Suite, list[pl.DataFrame], tuple[str, ...]]":
    """Run a suite, and return it with the table of each job, and the devices."""
    from ..analyzer.counting.vocabulary import with_counters_of
    from ..analyzer.sweep.destination import find_destination
    from ..analyzer.sweep.suite import read_suite
    from .running.executor import named_executor
    from .running.sweep import run_suite

    plan = read_suite(find_suite(suite))
    destination = find_destination(_table_of(suite, out))
    if plan.devices and not replay.device:
        replay = replace(replay, device=plan.devices)
    executor, replay = replay.executor, with_devices(replace(replay, executor=None))
    with (
        with_counters_of(replay.devices),
        named_executor(on, processes) if on else nullcontext(executor) as workers,
    ):
        tables = run_suite(plan, destination, replay, processes, workers, running.code)
    return plan, tables, replay.devices


@shown(sweep, is_lazy=True)
def _show(
    answer: object,
    line: Line,
    format: ReportFormat = "table",
) -> str:
    from ..analyzer.comparison.comparison_report import comparison_document
    from ..analyzer.counting.vocabulary import with_counters_of
    from ..analyzer.report import render
    from ..analyzer.report.view import View
    from ..analyzer.sweep.suite import list_jobs
    from ..analyzer.sweep.sweep_table import summarize
    from ..models.replay.device.device import load_devices

    suite, out, processes, on = (line.values[name] for name in ("suite", "out", "processes", "on"))
    plan, tables, devices = _run(suite, out, processes, on, line.replay, line.recording)
    view = View(
        counters=plan.counters,
        width=width(),
        colour=has_colour(),
        first=f"{len(list_jobs(plan))} recordings, {quote(_table_of(suite, out))}",
        last=f"cutrace sweep {quote(suite)} -d NAME,...",
    )
    with with_counters_of(devices):
        comparison = summarize(plan, tables, load_devices(devices))
        return render(comparison_document(comparison, view), format)


def _table_of(suite: "str | PathLike[str]", out: "str | PathLike[str] | None") -> Path:
    """Return the path of the table; default: the suite's name, in this folder."""
    path = find_suite(suite)
    name = path.parent.name if path == suites().get(str(suite)) else path.stem
    return Path(out or f"{name}.parquet")


def find_suite(suite: "str | PathLike[str]") -> Path:
    """Return a file's path, or the suite of a gallery family."""
    name, by_name = str(suite), suites()
    if Path(name).is_file():
        return Path(name)
    if name in by_name:
        return by_name[name]
    raise CutraceError(
        f"{name}: no such suite{nearest(name, by_name)}; the gallery has {', '.join(by_name)}"
    )
