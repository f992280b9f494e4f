"""Advice for the terminal: the findings of every rule for a replayed trace."""

from dataclasses import replace
from typing import TYPE_CHECKING

from ...models.replay.interface.options import ReplayOptions

if TYPE_CHECKING:
    from ...analyzer.profile import Profile
    from ...traces.reader import Trace


ROWS = 1 << 22
"""Number of accesses from which advice without an explicit request uses counters only."""


def best_advice(trace: "Trace", profile: "Profile", options: ReplayOptions) -> str:
    """Return the first advice on the costliest launch, with its gain; empty if nothing gains."""
    from ...analyzer.advice.advise import advise, counted_reuse, gain_text
    from ...models.replay.suppose import suppose

    bounded = [launch for launch in profile.launches if launch.bounds]
    trace = suppose(trace, options.pad, options.align)
    if not bounded:
        return ""
    costliest = max(bounded, key=lambda launch: launch.bounds[0].ns)
    if trace.launches[costliest.number].count("accesses") > ROWS:
        return counted_reuse(costliest)
    ((launch, findings),) = advise(trace, replace(profile, launches=(costliest,)), options)
    gains = ((finding, gain_text(finding, launch)) for finding in findings)
    finding, gain = next((each for each in gains if each[1]), (None, ""))
    if finding is None:
        return ""
    place = f"{finding.place}: " if finding.place else ""
    return f"advice: {place}{finding.change} (gains {gain} on {launch.device}, by the bounds)"


def advise_here(
    trace: "Trace", profile: "Profile", options: ReplayOptions, format: str = "table"
) -> str:
    """Return the advice on a trace that was replayed with these options."""
    from ...analyzer.advice.advise import advise, render
    from ...models.replay.suppose import suppose

    trace = suppose(trace, options.pad, options.align)
    findings = advise(trace, profile, options)
    return render(findings, format, profile.view)
