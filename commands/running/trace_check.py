"""`cutrace check --races` and `--memory`: data races, and accesses outside of arrays."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import CheckFailed, KernelFault

if TYPE_CHECKING:
    from ...analyzer.budget.budget_check import Trial
    from ...analyzer.why.place import Place
    from ...traces.reader import Trace

RACE_PASSES = 2.0
"""Passes over the accesses of a trace that looking for races makes."""


def tried(kind: str, judge: Callable[["Trace"], str], trace: "Trace", source: str) -> "Trial":
    """Check a trace for `races` or `memory`; the result says whether it holds."""
    from ...analyzer.budget.budget_check import Trial

    try:
        return Trial(kind, source, judge(trace), True)
    except CheckFailed as problem:
        place = _first_place(str(problem), trace.manifest.sources)
        return Trial(kind, source, str(problem), False, place)


def faulted(fault: KernelFault, source: Path) -> "Trial":
    """The check of a source whose kernel ended by a fault before there was a trace."""
    from ...analyzer.budget.budget_check import Trial

    place = _first_place(str(fault), (source.as_posix(), source.name))
    return Trial("memory", str(source), str(fault), False, place)


def _first_place(report: str, sources: Iterable[str]) -> "Place | None":
    """The first line of a source that a report names."""
    from ...analyzer.why.place import Place

    names = "|".join(sorted(map(re.escape, sources), key=len, reverse=True))
    found = re.search(rf"(?<![\w/.])({names}):(\d+)", report) if names else None
    return Place(found[1], int(found[2])) if found else None


def check_memory(trace: "Trace") -> str:
    """`CheckFailed` with every line that accessed memory outside of every array, if any did."""
    from ...traces.outside import outside_text

    found = [
        f"launch {one.number}: {text}"
        for one in trace.launches
        if one.launch.outside
        for _, text in outside_text(one.launch, one.instructions())
    ]
    if trace.manifest.fault:
        found.append(f"the launch after these: {trace.manifest.fault}")
    if found:
        raise CheckFailed("\n".join(("accesses outside of every array", "", *found)))
    return "no lane accessed memory outside of every array"


def check_races(trace: "Trace") -> str:
    """The report on races; `CheckFailed` with it if there are any."""
    from ...analyzer.text.race_text import render_races
    from ...models.analyses.race import find_races

    checks = [find_races(launch) for launch in trace.launches]
    report = render_races(checks, trace.manifest.sources)
    if count := sum(len(check.races) for check in checks):
        pairs = f"{count} pair{'s' * (count > 1)} of lines"
        raise CheckFailed(f"races in shared memory between {pairs}\n\n{report}")
    return report
