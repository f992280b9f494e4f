"""The fixture `cutrace_program`: a recorded program with its counters and budget checks."""

import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any

from ...analyzer.budget.budget import Budget, name_compiler, read_budget, read_entries
from ...analyzer.budget.budget_check import Checker
from ...analyzer.budget.budget_report import broken_text
from ...analyzer.profile import Profile, analyze, count
from ...models.replay.interface.options import ReplayOptions
from ...models.replay.suppose import suppose
from ...tracer.session.session import Session
from ...traces.reader import Trace, read_trace
from ..options.recording import Recording
from .program import build, choose_device, run_program


class CheckedTrace:
    """A recorded trace, at the path `trace`; methods take the options of `cutrace.analyze()`."""

    trace: Path

    def end(self) -> Trace:
        """Read the trace; it must be complete."""
        return read_trace(self.trace)

    def profile(self, device: str | Sequence[str] = (), **options: Any) -> Profile:
        """Replay the trace and return its counters."""
        return analyze(self.end(), device, **options)

    def assert_budget(
        self,
        kernel: str,
        limits: Mapping[str, int | float | str],
        device: str | Sequence[str] = (),
        *,
        line: str = "",
        array: str = "",
        **options: Any,
    ) -> None:
        """Fail the test unless every launch of a kernel keeps the limits.

        `limits` maps counters, or expressions over counters in polars SQL, to numbers ("not more
        than") or comparisons such as `">= 0.9"`. `line`, FILE:LINE or a part of its text, or
        `array` restricts the check to a part of the kernel; default: all of it. An AssertionError
        names the costliest line, and why it costs that.
        """
        __tracebackhide__ = True
        place = {"kernel": kernel, "line": line, "array": array}
        table = {**{key: value for key, value in place.items() if value}, **limits}
        path = Path("assert_budget")
        self._hold(Budget(path, read_entries([table], path)), device, options)

    def assert_budget_file(
        self, path: str | PathLike[str], device: str | Sequence[str] = (), **options: Any
    ) -> None:
        """Fail the test unless the trace keeps a budget file, as `cutrace check` reads it.

        `device` defaults to the file's own devices.
        """
        __tracebackhide__ = True
        budget = read_budget(Path(path))
        self._hold(budget, device or budget.devices, options)

    def _hold(
        self, budget: Budget, device: str | Sequence[str], replay_options: Mapping[str, Any]
    ) -> None:
        __tracebackhide__ = True
        options = ReplayOptions(device, **replay_options)
        profile = count(self.end(), options)
        trace = suppose(self.end(), options.pad, options.align)
        checker = Checker(trace, profile, options)
        checked = checker.judge(budget, name_compiler(trace.manifest))
        if checked.broken:
            raise AssertionError(broken_text(checked))


class CheckedProgram(CheckedTrace):
    """A program that ended with `status`, or minus the number of the signal that ended it.

    `launches` counts those in its trace, `refused` those that failed.
    """

    def __init__(
        self, words: Sequence[str | os.PathLike[str]], trace: Path, device: str, seconds: float
    ) -> None:
        from ...tracer.program.run import Order

        texts, path = tuple(os.fspath(word) for word in words), None
        shown, nothing = choose_device(device or None), Recording()
        if texts[0].endswith(".cu"):
            path = build([Path(texts[0])], nothing, "", shown)
            texts = (f"./{path.name}", *texts[1:])
        self.trace = trace
        ended = run_program(Order(texts, path, seconds=seconds or None), trace, shown, nothing)
        self.status, self.launches, self.refused = ended.status, ended.launches, ended.refused


class CheckedSession(CheckedTrace, Session):
    """A `cutrace.Session` that ends on first query: `profile` and `assert_budget`.

    It launches no kernels after that.
    """

    _ended = False

    def __enter__(self) -> "CheckedSession":
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._ended:
            self._ended = True
            super().__exit__(kind, problem, traceback)

    def end(self) -> Trace:
        """End the recording if necessary, and read its trace."""
        self.__exit__(None, None, None)
        return super().end()
