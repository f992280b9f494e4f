"""Where a session's trace goes: its own path, a temporary one, or where `cutrace record` says."""

import os
import re
from contextvars import ContextVar
from pathlib import Path

from ...base.claim import Claim, claim_scratch
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...traces.address import as_given
from ..front.source import decode_source


@dataclass(slots=True)
class Redirection:
    """For a script that is recorded: its one session writes to `path`.

    Where nobody said (`path` is None), to what the script says, else to `fallback`; `claimed` is
    where it went, `place` that path from the root, whatever the current folder is later.
    """

    path: Path | None
    fallback: Path
    claimed: Path | None = None
    place: Path = Path()

    def choose(self, own: Path | None) -> Path:
        """Return the trace's path for the session that opens now."""
        if self.claimed:
            raise CutraceError(
                "the script opens a second cutrace.Session(), and one trace is recorded; "
                "run it with python instead: each session then writes its own trace"
            )
        self.claimed = self.path or own or self.fallback
        self.place = absolute(self.claimed)
        return self.claimed


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


_CODE = re.compile(r"[{;]")
"""What every kernel has in CUDA C++ and in PTX, and no sensible file name."""


def missing_file(path: Path) -> CutraceError:
    """An error that names the three files of the folder whose names are nearest."""
    folder = path.parent
    if not folder.is_dir():
        return CutraceError(f"{as_given(path)}: there is no folder {as_given(folder)}")
    names = sorted(entry.name for entry in folder.iterdir())
    return CutraceError(f"{path}: there is no such file{nearest(path.name, names)}")


def read_text(path: Path) -> str:
    """Return a file's text; CutraceError says what is wrong with it."""
    if not path.exists():
        raise missing_file(path)
    try:
        raw = path.read_bytes()
    except OSError as problem:
        raise CutraceError(f"{path}: {problem.strerror}") from None
    if b"\0" in raw:
        raise CutraceError(f"{path} is not text: expected a .cu or .ptx source")
    return decode_source(raw)


def is_path(source: str | Path) -> bool:
    """Whether it names a file: a Path, or a string of one line that is no code.

    >>> is_path("reverse.cu"), is_path("__global__ void k(float *o) { *o = 1; }")
    (True, False)
    """
    if not isinstance(source, Path | str):
        kind = type(source).__name__
        raise CutraceError(f"expected a path or the text of a source, got {kind} {source!r}")
    if isinstance(source, Path):
        return True
    return "\n" not in source and not _CODE.search(source)
