"""Runs a Python script that opens a session, and sends its trace where it was asked to go."""

import runpy
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from traceback import extract_tb

from ....errors import CutraceError
from ..destination import REDIRECTION, Redirection, absolute
from ..path import missing_file


def record_script(script: Path, out: Path | None, fallback: Path) -> Path:
    """Run `script` as `python script` would and return the path of its one session's trace.

    The trace goes to `out`, else where the script says, else to `fallback`. CutraceError for a
    script that opens no session or two, and for an exception in it, with its line.
    """
    if not script.is_file():
        raise missing_file(script)
    redirection = Redirection(out and absolute(out), absolute(fallback))
    with chdir("."), _as_main(script), _redirected(redirection):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise CutraceError(
                    f"{script}: the script ended with exit status {end.code}"
                ) from end
        except CutraceError:
            raise
        except Exception as problem:
            raise _script_error(script, problem) from problem
    if not redirection.taken:
        raise CutraceError(
            f"{script}: the script opened no session: expected `with cutrace.Session() as gpu:`"
        )
    place = redirection.place
    given = (path for path in (out, fallback, redirection.taken) if path)
    return next((path for path in given if absolute(path) == place), place)


@contextmanager
def _redirected(redirection: Redirection) -> Iterator[None]:
    token = REDIRECTION.set(redirection)
    try:
        yield
    finally:
        REDIRECTION.reset(token)


@contextmanager
def _as_main(script: Path) -> Iterator[None]:
    """`sys.argv` and the first folder of `sys.path` as python itself sets them for a script."""
    arguments, folders = sys.argv, sys.path
    sys.argv, sys.path = [str(script)], [str(script.resolve().parent), *folders]
    try:
        yield
    finally:
        sys.argv, sys.path = arguments, folders


def _script_error(script: Path, problem: Exception) -> CutraceError:
    """The exception with the script's own line on which it passed last."""
    frames = [frame for frame in extract_tb(problem.__traceback__) if frame.filename == str(script)]
    line = frames[-1].lineno if frames else getattr(problem, "lineno", None)
    where = f"{script}:{line}" if line else str(script)
    return CutraceError(f"{where}: {type(problem).__name__}: {problem}")
