"""The input of a verb: a trace, its path, or a source that is recorded temporarily."""

from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from ...base.claim import Claim, claim_scratch
from ...base.frames import require_frames
from ...models.replay.interface.options import ReplayOptions
from ...models.replay.suppose import suppose
from ...traces.reader import Trace, read_trace
from ..options.recording import SOURCES
from ..options.replay import with_devices

Subject: TypeAlias = Trace | str | PathLike[str]
_CLAIMS: list[Claim] = []
"""Folders of temporary traces: they live as long as the process."""


def opened(subject: Subject, options: ReplayOptions | None = None) -> Trace:
    """Open a trace; a source is recorded by its own `// cutrace:` lines.

    With options, apply their assumptions to it. Raises `CutraceError` if it cannot be read or
    recorded.
    """
    trace = subject if isinstance(subject, Trace) else _read(Path(subject))
    return suppose(trace, options.pad, options.align) if options else trace


def _read(path: Path) -> Trace:
    if path.suffix not in SOURCES:
        return read_trace(path)
    from ...tracer.session.source.record import record

    claim = claim_scratch()
    _CLAIMS.append(claim)
    return read_trace(record(path, out=claim.folder / f"{path.stem}.cutrace"))


def replayed(named: dict[str, Any]) -> ReplayOptions:
    """Return the replay options by name, with the default device filled in."""
    require_frames()
    return with_devices(ReplayOptions(**named))
