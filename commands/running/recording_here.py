"""`with cutrace.recording("x.cutrace"):` record this process's launches by any package.

`%%cutrace` in IPython and Jupyter records a cell's launches and shows their costs.
"""

import argparse
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import environ
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from ...base.errors import CutraceError
from ...models.replay.device.device import load_device
from ...models.replay.interface.options import DEFAULT_DEVICE
from ...tracer.session.destination import absolute, choose_trace
from ...traces.reader import Trace
from .pytest_fixtures import CheckedTrace

if TYPE_CHECKING:
    from ...tracer.program.inprocess.recorder_process import RecorderProcess

_recorder: "RecorderProcess | None" = None
"""The recorder of this process, after its start."""


class recording(CheckedTrace):
    """Record the launches inside `with`: of Numba, CuPy, Triton, cuda-python and others.

    The first one in a process loads cutrace's library in place of CUDA's driver; it presents
    `device` for the lifetime of the process, so it must come before the first CUDA call. Arrays and
    kernels persist between recordings. It records launches of `kernels`, a regular expression,
    after the first `skip`; `only` and `options` are a Session's. After the block it has
    `profile()`, `assert_budget()` and a notebook view.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        device: str | None = None,
        *,
        kernels: str | None = None,
        skip: int = 0,
        only: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        selection = {"kernels": kernels, "skip": skip, "only": dict(only or {})}
        self._asked = {**selection, "options": options}
        self._device = device
        self.trace = choose_trace(None if path is None else os.fspath(path))
        self.launches = self.refused = 0
        self.said = ""
        self._is_open = False

    def __enter__(self) -> "recording":
        self.trace = absolute(self.trace)
        recorder(self._device).request(begin=str(self.trace), **self._asked)
        self._is_open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._is_open:
            return
        self._is_open = False
        ended = recorder().request(end=True)
        self.launches, self.refused = ended["launches"], ended["refused"]
        left_out = [f"cutrace: {ended['left_out']}\n"] if ended["left_out"] else []
        self.said = "".join((ended["said"], *left_out))
        if problem is not None and self.said:
            problem.add_note(self.said.rstrip())
        elif self.said:
            print(self.said, end="", file=sys.stderr)

    def end(self) -> Trace:
        """End the recording if necessary, and read its trace."""
        self.__exit__(None, None, None)
        return super().end()

    def _repr_html_(self) -> str:
        return self.end()._repr_html_()


def shown_device() -> str:
    """Return the device of this process since its first recording; empty before."""
    return _recorder.device if _recorder else ""


def recorder(device: str | None = None) -> "RecorderProcess":
    """Return the recorder of this process; raise CutraceError if it has another device."""
    global _recorder
    if _recorder is None:
        from ...tracer.program.inprocess.recorder_process import RecorderProcess

        _recorder = RecorderProcess(
            _command, device or environ.get("CUTRACE_DEVICE") or DEFAULT_DEVICE
        )
    elif device and device != _recorder.device:
        raise CutraceError(
            f"this process has the device {_recorder.device} since its first recording, and cannot "
            f"have {device}: use another process; a trace can be counted on any device"
        )
    return _recorder


def _command(words: Sequence[str]) -> Sequence[str]:
    """Return the recorder's command: `-P`, so that it imports nothing from the current folder."""
    return [sys.executable, "-P", "-m", "cutrace.commands.running.recorder_process", *words]


USAGE = (
    "%%cutrace [-o TRACE] [-d DEVICE] [--by launch|line|array|instruction] [--counters NAME,...]"
)


HELP = f"""Record what a cell, or the statement in the line, launches, and count it.

{USAGE}
%cutrace [the same] STATEMENT

-o TRACE           keep the trace, a folder NAME.cutrace
-d DEVICE          the device that the process has, from its first recording on
--by ...           the rows of the table (default: line)
--counters NAME,.. show only these counters
"""


class _Options(argparse.ArgumentParser):
    """A parser that raises cutrace's errors; it must not end the notebook's process."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of ending the process."""
        raise CutraceError(f"%%cutrace: {message}; expected {USAGE}")


def _read(line: str) -> argparse.Namespace:
    options = _Options(prog="%%cutrace", add_help=False, usage=USAGE)
    options.add_argument("-o", "--out")
    options.add_argument("-d", "--device")
    options.add_argument("--by", default="line")
    options.add_argument("--counters", default="")
    options.add_argument("statement", nargs=argparse.REMAINDER)
    return options.parse_args(shlex.split(line, posix=False))


def load(ipython: Any) -> None:
    """Register the line and cell magic `cutrace` in an IPython shell."""

    def cutrace(line: str, cell: str | None = None) -> None:
        try:
            run(line, cell)
        except CutraceError as problem:  # one line; IPython prints a traceback of other errors
            print(f"cutrace: {problem}", file=sys.stderr)

    def run(line: str, cell: str | None) -> None:
        arguments = _read(line)
        if arguments.device:
            load_device(arguments.device)  # before anything runs
        code = cell if cell is not None else " ".join(arguments.statement)
        if not code.strip():
            raise CutraceError(f"%cutrace: nothing to run; expected {USAGE}, or %cutrace STATEMENT")
        with recording(arguments.out, shown_device() or arguments.device) as recorded:
            result = ipython.run_cell(code)
        if recorded.launches:
            print(_with_cells(_counted(recorded, arguments), ipython))
        elif result.success:
            print("cutrace: no kernel was launched")

    cutrace.__doc__ = HELP
    ipython.register_magic_function(cutrace, "line_cell", "cutrace")


def _with_cells(text: str, ipython: Any) -> str:
    """Replace the file names that IPython gives cells by `In[3]`."""
    cells = getattr(getattr(ipython, "compile", None), "_filename_map", {})
    for name, number in cells.items():
        text = text.replace(name, f"In[{number}]")
    return re.sub(r"<ipython-input-(\d+)-\w+>", r"In[\1]", text)


def _counted(recorded: recording, arguments: argparse.Namespace) -> str:
    from ...analyzer.profile_report import profile_document
    from ...analyzer.report import render
    from ...analyzer.report.view import View, check_grouping

    check_grouping(arguments.by)
    names = tuple(name for name in arguments.counters.split(",") if name)
    profile = recorded.profile(arguments.device or shown_device())
    view = View(arguments.by, names)
    return render(profile_document(replace(profile, view=view)), "table")
