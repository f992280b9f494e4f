"""`cutrace compare`: variants side by side on any devices."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..base.errors import CutraceError
from ..base.progress import part
from ..models.replay.interface.options import ReplayOptions
from .options.command_line import quote
from .options.replay import REPLAY, with_devices
from .options.selection import CODE_SELECTION, CodeSelection
from .options.tabular import Counters, ReportFormat, view_of
from .options.verb import Line, ProgramWords, argument, shown, value, verb
from .running.executor import On, with_executor
from .running.resolve_trace import open_trace
from .terminal.progress import progress

if TYPE_CHECKING:
    from ..analyzer.comparison.comparison import Comparison
    from ..analyzer.profilers.measurement import Measured


@verb(
    "Compare",
    "cutrace compare before=scale.cu after=fixed.cu",
    "cutrace compare old.cutrace new.cutrace --by line",
    "cutrace compare both_kernels.cutrace --launch 0,1",
    "cutrace compare scale.cutrace scale.ncu-rep --by line",
)
def compare(
    variants: Annotated[
        list[str],
        argument(
            "Traces, sources with launch comments, reports of Nsight Compute (.ncu-rep), what"
            " ncu and nvprof print, or programs,"
            " which all get the arguments behind --; of one alone, its kernels",
            "[NAME=]TRACE... [-- ARGUMENTS]",
        ),
    ],
    baseline: Annotated[
        str | None, value("The variant to compare with (default: the first).", "NAME")
    ] = None,
    names: Counters = None,
    by: Annotated[str, value("Compare launches, or source lines.", "launch|line")] = "launch",
    on: On = None,
    *,
    program: ProgramWords = None,
    selection: CodeSelection = CODE_SELECTION,
    replay: ReplayOptions = REPLAY,
    **options: Any,
) -> "Comparison":
    """Compare variants of a kernel: differences, ratios, the best marked."""
    from ..analyzer.comparison.comparison import compare_profiles, split_kernels
    from ..analyzer.comparison.measured_variant import compare_measured
    from ..analyzer.profile import count

    paths = named(variants, least=1)
    files = _measured(paths)
    if len(paths) == len(files) == 1:
        raise CutraceError("nothing to compare with: give two files or more")
    if baseline is not None and baseline not in paths and (stem := Path(baseline).stem) in paths:
        baseline = stem
    counters = tuple(name for name in (names or "").split(",") if name)
    counting = with_executor(on, with_devices(replay))
    recording = selection.recording
    with progress("comparing"):
        profiles = {}
        for number, (name, path) in enumerate(paths.items()):
            if name not in files:
                trace = selection.select(open_trace(path, recording, replay, program))
                with part(number, 1, len(paths)):
                    profiles[name] = count(trace, counting)
        if len(paths) == 1:
            ((name, profile),) = profiles.items()
            profiles = split_kernels(profile, name)
        if not files:
            return compare_profiles(profiles, baseline, by, counters)
        every = {name: files.get(name) or profiles[name] for name in paths}
        return compare_measured(every, baseline, counters, by)


def _measured(paths: dict[str, Path]) -> "dict[str, Measured]":
    """Return the variants that are reports of profilers."""
    from ..analyzer.profilers.measured import is_measured, read_measured

    return {name: read_measured(path) for name, path in paths.items() if is_measured(path)}


@shown(compare, is_lazy=True)
def _show(
    answer: "Callable[[], Comparison]",
    line: Line,
    format: ReportFormat = "table",
) -> str:
    from ..analyzer.comparison.comparison_report import comparison_document
    from ..analyzer.profilers.measured import is_measured
    from ..analyzer.report import render

    variants, by = line.values["variants"], line.values["by"]
    view = view_of(line, by, line.values["names"], line.again("compare", *variants))
    comparison = answer()
    paths = named(variants, least=1).values()
    if any(map(is_measured, paths)):
        rows = (row for table in comparison.tables for row in table.rows)
        columns = dict.fromkeys(row.name for row in rows)
        view = replace(view, counters=tuple(columns), last="cutrace counters NAME")
    if by == "line":
        view = replace(view, last=f"cutrace why {quote(next(iter(paths)))} FILE:LINE")
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
