"""A source counted while it runs."""

import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import CutraceError
from ...models.replay.options import ReplayOptions
from ..options.recording import SOURCES, Recording, record_source

if TYPE_CHECKING:
    from ...analyzer.sheet.view import View


def render_live(
    source: Path, recording: Recording, replay: ReplayOptions, view: "View", format: str
) -> str:
    """Run a source, with what it prints on stderr, and return the report in the format so named."""
    from ...analyzer.live import listen
    from ...analyzer.report import render
    from ...tracer.host.recorder import recording_into

    if source.suffix not in SOURCES:
        raise CutraceError(f"{source}: --no-trace needs a source to run, not a trace")
    listener = listen(replay)
    with redirect_stdout(sys.stderr), recording_into(listener.trace):
        record_source(source, None, recording, replay)
    return render(replace(listener.profile(), view=view), format)
