"""Choose the path of a session's trace, and read source files with helpful errors.

The trace goes to the session's own path, to the one that `cutrace record` sets for a script, or to
a temporary file.
"""

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
    """Destination of a recorded script: its one session writes to `path`.

    If `path` is None, the script's own path applies, else `fallback`. `claimed` is the path that
    was used, `place` its absolute form, independent of later changes of the current folder.
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
    """Return the session's trace path; a temporary one is deleted at process exit."""
    path = None if own is None else Path(own)
    redirection = REDIRECTION.get()
    if redirection:
        return redirection.choose(path)
    return path or temporary_trace()


def absolute(path: Path) -> Path:
    """Return the absolute path with symbolic links unresolved."""
    return Path(os.path.abspath(path))


_TEMPORARY: list[Claim] = []


def temporary_trace() -> Path:
    """Return a path for a trace that is deleted at process exit."""
    claim = claim_scratch()
    _TEMPORARY.append(claim)
    return claim.folder / "session.cutrace"


_CODE = re.compile(r"[{;]")
"""Characters in every CUDA C++ or PTX kernel, and in no sensible file name."""


def missing_file(path: Path) -> CutraceError:
    """Return an error that names the three most similar files in the folder."""
    folder = path.parent
    if not folder.is_dir():
        return CutraceError(f"{as_given(path)}: there is no folder {as_given(folder)}")
    names = sorted(entry.name for entry in folder.iterdir())
    return CutraceError(f"{path}: there is no such file{nearest(path.name, names)}")


def read_text(path: Path) -> str:
    """Return a file's text; raise a CutraceError that says why it cannot be read."""
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
    """Return True for a file name: a Path, or a one-line string that is no code.

    >>> is_path("reverse.cu"), is_path("__global__ void k(float *o) { *o = 1; }")
    (True, False)
    """
    if not isinstance(source, Path | str):
        kind = type(source).__name__
        raise CutraceError(f"expected a path or the text of a source, got {kind} {source!r}")
    if isinstance(source, Path):
        return True
    return "\n" not in source and not _CODE.search(source)
