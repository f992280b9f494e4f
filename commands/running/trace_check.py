"""`cutrace check --races` and `--memory`: data races, and accesses outside of arrays."""

from typing import TYPE_CHECKING

from ...errors import CheckFailed

if TYPE_CHECKING:
    from ...traces.reader import Trace

RACE_PASSES = 2.0
"""Passes over the accesses of a trace that looking for races makes."""


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
