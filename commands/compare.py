"""`cutrace compare`: variants side by side on any devices."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..base.errors import CutraceError
from ..base.progress import part
from ..models.replay.interface.options import ReplayOptions
from .options.command_line import quote, typed
from .options.recording import Recording
from .options.replay import On, first_line, replays, with_devices
from .options.selection import Selection, selects
from .options.tabular import Counters, ReportFormat, view_here
from .running.executor import replayed_on
from .running.program import TakesProgram, program_of
from .running.resolve_trace import program_suffix, resolve_trace
from .terminal.progress import progress

PANEL = "Compare"
CLASS = TakesProgram
EXAMPLES = (
    "cutrace compare before=scale.cu after=fixed.cu",
    "cutrace compare old.cutrace new.cutrace --by line",
    "cutrace compare both_kernels.cutrace --launch 0,1",
    "cutrace compare scale.cutrace scale.ncu-rep --by line",
)


@replays
@selects
def command(
    ctx: typer.Context,
    replay: ReplayOptions,
    selection: Selection,
    variants: Annotated[
        list[str],
        typer.Argument(
            metavar="[NAME=]TRACE... [-- ARGUMENTS]",
            help="Traces, sources with launch comments, reports of Nsight Compute (.ncu-rep), what"
            " ncu and nvprof print, or programs,"
            " which all get the arguments behind --; of one alone, its kernels",
        ),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The variant to compare with (default: the first)."),
    ] = None,
    names: Counters = None,
    by: Annotated[
        str, typer.Option(metavar="launch|line", help="Compare launches, or source lines.")
    ] = "launch",
    format: ReportFormat = "table",
    on: On = None,
) -> str:
    """Compare variants of a kernel: differences, ratios, the best marked."""
    from ..analyzer.comparison.comparison import compare_profiles, split_kernels
    from ..analyzer.comparison.comparison_report import comparison_document
    from ..analyzer.comparison.measured_variant import compare_measured
    from ..analyzer.profilers.measured import is_measured, read_measured
    from ..analyzer.report import check_format, render

    check_format(format)
    paths, program = named(variants, least=1), program_of(ctx)
    files = {n: read_measured(path) for n, path in paths.items() if is_measured(path)}
    if len(paths) == len(files) == 1:
        raise CutraceError("nothing to compare with: give two files or more")
    if baseline is not None and baseline not in paths and (stem := Path(baseline).stem) in paths:
        baseline = stem
    words = " ".join(map(quote, variants))
    again = f"cutrace compare {words}{typed(selection)}{typed(replay)}"
    view = view_here(by, names, first_line(replay), again, suffix=program_suffix(program))
    trace_options, replay = replay, with_devices(replay)
    recording = Recording(launch=selection.lines)
    with (
        ExitStack() as stack,
        replayed_on(on, replay) as replay,
        progress("comparing"),
    ):
        from ..analyzer.profile import count
        from ..traces.reader import read_trace

        profiles = {}
        for number, (name, path) in enumerate(paths.items()):
            if name not in files:
                source = resolve_trace(path, program, recording, trace_options)
                trace = selection.select(read_trace(stack.enter_context(source)))
                with part(number, 1, len(paths)):
                    profiles[name] = count(trace, replay)
        if len(paths) == 1:
            ((name, profile),) = profiles.items()
            profiles = split_kernels(profile, name)
        if files:
            every = {name: files.get(name) or profiles[name] for name in paths}
            comparison = compare_measured(every, baseline, view.counters, by)
            shown = dict.fromkeys(row.name for t in comparison.tables for row in t.rows)
            view = replace(view, counters=tuple(shown), last="cutrace counters NAME")
        else:
            comparison = compare_profiles(profiles, baseline, by, view.counters)
    if by == "line":
        view = replace(view, last=f"cutrace why {quote(next(iter(paths.values())))} FILE:LINE")
    return render(comparison_document(comparison, view), format)


def named(words: list[str], least: int = 2) -> dict[str, Path]:
    """Return variants by name: `NAME=TRACE`, or a path by its shortest unambiguous suffix.

    A file that is there, or a path with a folder before its `=`, is no NAME=TRACE.
    """
    split = [(word, *word.partition("=")) for word in words]
    is_path = {
        word: not equals or "/" in name or Path(word).exists() for word, name, equals, _ in split
    }
    pairs = [(name, Path(path)) for word, name, _, path in split if not is_path[word]]
    paths = [Path(word) for word in words if is_path[word]]
    stems = [path.stem for path in paths]
    by_name = dict(pairs)
    for path in paths:
        name = path.stem if stems.count(path.stem) == 1 else str(path)
        by_name[name] = path
    if len(by_name) < len(words):
        raise CutraceError("two variants have one name; name them, say a=TRACE b=TRACE")
    if len(by_name) < least:
        raise CutraceError("nothing to compare with: give two traces or more")
    return by_name


def variants_of(
    words: list[str], program: tuple[str, ...] | None, least: int
) -> tuple[dict[str, Path | None], tuple[str, ...] | None]:
    """Return the variants by name, and the program after `--`, or its arguments if there are
    variants.
    """
    if words or not program:
        return {**named(words, least)}, program
    return {Path(program[0]).stem: None}, program
