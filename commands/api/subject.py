"""The subject of a question: a trace, its path, or a source that is recorded temporarily."""

from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from ...base.claim import Claim, claim_scratch
from ...models.replay.interface.options import ReplayOptions
from ...models.replay.whatif.suppose import suppose
from ...traces.reader import Trace, read_trace
from ..options.recording import SOURCES
from ..options.replay import with_devices

Subject: TypeAlias = Trace | str | PathLike[str]
_CLAIMS: list[Claim] = []
"""Folders of traces that nobody named: they last as long as the process."""


def opened(subject: Subject, options: ReplayOptions | None = None) -> Trace:
    """The trace; a source is recorded by its own `// cutrace:` lines.

    With options it is as these suppose it. `CutraceError` where it cannot be read or recorded.
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
    """Options of the replay by their names, the default device filled in."""
    return with_devices(ReplayOptions(**named))
