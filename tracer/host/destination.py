"""Where a session's trace goes: its own path, a temporary one, or where `cutrace record` says."""

import os
from contextvars import ContextVar
from pathlib import Path

from ...claim import Claim, claim_scratch
from ...errors import CutraceError
from ...lazy_dataclass import dataclass


@dataclass(slots=True)
class Redirection:
    """For a script that is recorded: its one session writes to `path`.

    Where nobody said (`path` is None), to what the script says, else to `fallback`; `taken` is
    where it went, `place` that path from the root, whatever the current folder is later.
    """

    path: Path | None
    fallback: Path
    taken: Path | None = None
    place: Path = Path()

    def choose(self, own: Path | None) -> Path:
        """Return the trace's path for the session that opens now."""
        if self.taken:
            raise CutraceError(
                "the script opens a second cutrace.Session(), and one trace is recorded; "
                "run it with python instead: each session then writes its own trace"
            )
        self.taken = self.path or own or self.fallback
        self.place = absolute(self.taken)
        return self.taken


REDIRECTION: ContextVar[Redirection | None] = ContextVar("cutrace_redirection", default=None)


def choose_trace(own: str | Path | None) -> Path:
    """The path of the session's trace; a temporary one goes when the process ends."""
    path = None if own is None else Path(own)
    redirection = REDIRECTION.get()
    if redirection:
        return redirection.choose(path)
    return path or temporary_trace()


def absolute(path: Path) -> Path:
    """The path from the root, by the current folder; links in it stay."""
    return Path(os.path.abspath(path))


_TEMPORARY: list[Claim] = []


def temporary_trace() -> Path:
    """A path for a trace that is removed when the process ends."""
    claim = claim_scratch()
    _TEMPORARY.append(claim)
    return claim.folder / "session.cutrace"
