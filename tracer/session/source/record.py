"""Record a source file: CUDA C++ or PTX with launch lines, or a Python script with a session."""

import os
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from traceback import extract_tb
from typing import TextIO

from ....base import progress
from ....base.errors import CutraceError
from ...front.cuda import structure_sizes
from ...front.source import DEFAULT_TARGET, Source, read_options
from ...front.standin_headers import local_files
from ..destination import REDIRECTION, Redirection, absolute, missing_file, read_text
from ..module import Module, explain_missing, is_launchable, list_written
from ..record_options import choose_options
from ..session import Session
from .launch_line import LaunchLine, LineLauncher, find_launch_comments, parse_launch
from .suggestion import explain_launches


def record(
    source: str | Path,
    launches: Sequence[str] = (),
    out: str | Path | None = None,
    *,
    arch: str = DEFAULT_TARGET,
    options: Sequence[str] = (),
    output: TextIO | None = None,
) -> Path:
    """Record a .cu, .ptx or .py file and return the trace's path.

    `launches` are launch lines; without any, those in the source's `// cutrace:` comments run.
    `out` is the trace's path, by default the source's name with .cutrace in the working directory
    (a script's own path takes precedence over that). `arch` and `options` are the compiler's.
    Kernels print to `output`. CutraceError says what is wrong with the source, a line or an
    argument.
    """
    path = Path(source)
    if not path.exists():
        raise missing_file(path)
    trace = Path(f"{path.stem}.cutrace") if out is None else Path(out)
    if path.suffix == ".py":
        if launches:
            raise CutraceError(f"{path}: a script launches its kernels itself, without --launch")
        return record_script(path, None if out is None else trace, trace)
    if path.suffix not in (".cu", ".ptx"):
        program = (
            "; of a program, `cutrace record -- ./PROGRAM`" if os.access(path, os.X_OK) else ""
        )
        raise CutraceError(f"{path}: expected a .cu, .ptx or .py file{program}")
    lines = [parse_launch(line) for line in launches] or _comment_lines(path)
    progress.run_progress().blocks = tuple(prod(line.grid) for line in lines)
    instances = sorted({line.kernel for line in lines if "<" in line.kernel})
    with Session(trace, output=output) as gpu:
        if path.suffix == ".ptx":
            module = gpu.load_ptx(path)
        else:
            try:
                module = gpu.compile(path, arch, options, instances)
            except CutraceError:
                _explain_names(path, lines)
                raise
        if not lines:
            raise _no_launches(path, module, arch, options)
        launcher = LineLauncher(
            gpu, module, Path() if launches else path.parent, choose_options().inputs
        )
        for line in lines:
            launcher.launch(line)
    return trace


def _comment_lines(path: Path) -> list[LaunchLine]:
    lines = []
    for comment in find_launch_comments(read_text(path)):
        place = f"{path}:{comment.line}"
        try:
            lines.append(replace(parse_launch(comment.text), place=place))
        except CutraceError as problem:
            raise CutraceError(f"{place}: {problem}") from None
    return lines


def _no_launches(path: Path, module: Module, arch: str, options: Sequence[str]) -> CutraceError:
    """Return an error that suggests launches of the module's kernels."""
    text, read = read_text(path), read_options(options)
    folders = (str(path.parent), *read.includes)

    def sizes(names: Sequence[str]) -> Mapping[str, int]:
        """Return the bytes of structures that the source defines; PTX defines none."""
        is_ptx = path.suffix == ".ptx"
        return {} if is_ptx else structure_sizes(Source(str(path), text, read), arch, names)

    reached = "\n".join((text, *local_files(str(path), text, folders).values()))
    kernels = (*module.signatures, *module.templates)
    return CutraceError(explain_launches(str(path), kernels, reached, sizes), "launch")


def _explain_names(path: Path, lines: list[LaunchLine]) -> None:
    """Raise a clearer error than the compiler's if a launch line names an unknown kernel.

    Only for a source without own headers, since kernels in headers are not searched.
    """
    text = read_text(path)
    written = list_written(text)
    if '#include "' in text:
        return
    for line in lines:
        if not line.kernel.startswith("_Z") and not is_launchable(line.kernel, written):
            raise CutraceError(explain_missing(str(path), line.kernel, written))
    if not lines and all("<" in kernel.name for kernel in written):
        raise CutraceError(explain_launches(str(path), written, text))


def record_script(script: Path, out: Path | None, fallback: Path) -> Path:
    """Run `script` as `python script` would and return the path of its one session's trace.

    The trace goes to `out`, else to the script's own path, else to `fallback`. CutraceError for a
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
    if not redirection.claimed:
        raise CutraceError(
            f"{script}: the script opened no session: expected `with cutrace.Session() as gpu:`"
        )
    place = redirection.place
    candidates = (path for path in (out, fallback, redirection.claimed) if path)
    return next((path for path in candidates if absolute(path) == place), place)


@contextmanager
def _redirected(redirection: Redirection) -> Iterator[None]:
    token = REDIRECTION.set(redirection)
    try:
        yield
    finally:
        REDIRECTION.reset(token)


@contextmanager
def _as_main(script: Path) -> Iterator[None]:
    """Set `sys.argv` and the first folder of `sys.path` as python does for a script."""
    arguments, folders = sys.argv, sys.path
    sys.argv, sys.path = [str(script)], [str(script.resolve().parent), *folders]
    try:
        yield
    finally:
        sys.argv, sys.path = arguments, folders


def _script_error(script: Path, problem: Exception) -> CutraceError:
    """Return the exception with the last line of the script in its traceback."""
    frames = [frame for frame in extract_tb(problem.__traceback__) if frame.filename == str(script)]
    line = frames[-1].lineno if frames else getattr(problem, "lineno", None)
    where = f"{script}:{line}" if line else str(script)
    return CutraceError(f"{where}: {type(problem).__name__}: {problem}")
