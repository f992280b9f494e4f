"""`%%cutrace` in IPython and Jupyter: record a cell's launches and show their costs."""

import argparse
import shlex
from dataclasses import replace
from typing import Any, NoReturn

from ...base.errors import CutraceError
from .recording_here import recording, shown_device

USAGE = (
    "%%cutrace [-o TRACE] [-d DEVICE] [--by launch|line|array|instruction] [--counters NAME,...]"
)


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
        """Record what a cell, or the statement in the line, launches, and count it by line."""
        arguments = _read(line)
        code = cell if cell is not None else " ".join(arguments.statement)
        if not code.strip():
            raise CutraceError(f"%cutrace: nothing to run; expected {USAGE}, or %cutrace STATEMENT")
        with recording(arguments.out, shown_device() or arguments.device) as recorded:
            result = ipython.run_cell(code)
        if recorded.launches:
            print(_counted(recorded, arguments))
        elif result.success:
            print("cutrace: no kernel was launched")

    ipython.register_magic_function(cutrace, "line_cell", "cutrace")


def _counted(recorded: recording, arguments: argparse.Namespace) -> str:
    from ...analyzer.report import render
    from ...analyzer.view import View, check_grouping

    check_grouping(arguments.by)
    names = tuple(name for name in arguments.counters.split(",") if name)
    profile = recorded.profile(arguments.device or shown_device())
    return render(replace(profile, view=View(arguments.by, names)), "table")
