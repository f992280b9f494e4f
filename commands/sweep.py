"""`cutrace sweep`: variants by sizes, shapes and defines, on all cores, as one tidy table."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..base.errors import CutraceError, nearest
from ..models.replay.interface.options import ReplayOptions
from .options.command_line import quote
from .options.complete import starting, suites
from .options.replay import On, replays, with_devices
from .options.tabular import ReportFormat
from .terminal.screen import has_colour, width

PANEL = "Compare"
EXAMPLES = (
    "cutrace sweep suite.toml -o table.parquet",
    "cutrace sweep transpose -d h100",
)


@replays
def command(
    replay: ReplayOptions,
    suite: Annotated[
        str,
        typer.Argument(
            metavar="SUITE.toml",
            help="A suite, or the name of a family of the gallery that has one",
            autocompletion=starting(suites),
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The table, .parquet or .csv (default: NAME.parquet in this folder), at an"
            " address (s3://...) also a folder.",
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            "--processes", metavar="N", min=1, help="Parallel processes (default: one a core)."
        ),
    ] = None,
    on: On = None,
    format: ReportFormat = "table",
) -> str:
    """Record every variant of a suite in every size, and write one tidy table."""
    from ..analyzer.comparison.comparison_report import comparison_document
    from ..analyzer.counting.vocabulary import with_counters_of
    from ..analyzer.report import check_format, render
    from ..analyzer.report.view import View
    from ..analyzer.sweep.destination import find_destination
    from ..analyzer.sweep.suite import list_jobs, read_suite
    from ..analyzer.sweep.sweep_table import summarize
    from .running.executor import named_executor
    from .running.sweep import run_suite

    check_format(format)
    path = find_suite(suite)
    plan = read_suite(path)
    jobs = list_jobs(plan)
    name = path.parent.name if path == suites().get(suite) else path.stem
    table = out or Path(f"{name}.parquet")
    destination = find_destination(table)
    counting = with_devices(replay)
    if not replay.device and plan.devices:
        counting = replace(counting, device=plan.devices)
    view = View(
        counters=plan.counters,
        width=width(),
        colour=has_colour(),
        first=f"{len(jobs)} recordings, {quote(table)}",
        last=f"cutrace sweep {quote(suite)} -d NAME,...",
    )
    with with_counters_of(counting.devices):
        with named_executor(on, processes) if on else nullcontext() as executor:
            tables = run_suite(plan, destination, counting, processes, executor)
        return render(comparison_document(summarize(plan, tables), view), format)


def find_suite(name: str) -> Path:
    """Return a file's path, or the suite of a gallery family."""
    by_name = suites()
    if Path(name).is_file():
        return Path(name)
    if name in by_name:
        return by_name[name]
    raise CutraceError(
        f"{name}: no such suite{nearest(name, by_name)}; the gallery has {', '.join(by_name)}"
    )
