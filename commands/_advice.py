"""Advice for the terminal: what every rule finds in a trace that was replayed."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..analyzer.profile import Profile


def advise_here(path: Path, profile: "Profile", arguments: Mapping[str, Any]) -> str:
    """The advice on a trace; `arguments` are those of the `analyze()` that gave the profile."""
    from ..analyzer.advice import advise, render_advice
    from ..models.replay.suppose import suppose
    from ..traces.reader import read_trace

    view = profile.view
    dlcm, settings = arguments.get("dlcm", "ca"), arguments.get("set", {})
    trace = suppose(read_trace(path), arguments.get("pad", {}), arguments.get("align", {}))
    found = advise(trace, profile, dlcm, settings)
    return render_advice(found, view.width, view.first, view.last)
