"""Counters and budget checks of a recorded trace, for the fixtures of pytest."""

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from ...analyzer.budget.budget import Budget, name_compiler, read_budget, read_entries
from ...analyzer.budget.budget_check import Checker
from ...analyzer.budget.budget_text import render_broken
from ...analyzer.profile import Profile, analyze, count
from ...models.replay.options import ReplayOptions
from ...models.replay.whatif.suppose import suppose
from ...traces.reader import Trace, read_trace


class CheckedTrace:
    """`trace` is the path of what was recorded. Questions take the options of `cutrace.analyze()`,
    device and all."""

    trace: Path

    def end(self) -> Trace:
        """Read the trace, once it is whole."""
        return read_trace(self.trace)

    def profile(self, device: str | Sequence[str] = (), **options: Any) -> Profile:
        """Replay what was recorded and count."""
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
        """Fail the test unless every launch of a kernel keeps to the limits.

        `limits` maps counters, or expressions over counters in polars SQL, to numbers ("not more
        than") or comparisons such as `">= 0.9"`. `line`, FILE:LINE or a part of its text, or
        `array` is the part of the kernel that is meant, else all of it. An AssertionError names the
        line that costs most, and why.
        """
        __tracebackhide__ = True
        place = {"kernel": kernel, "line": line, "array": array}
        table = {**{key: value for key, value in place.items() if value}, **limits}
        path = Path("assert_budget")
        self._hold(Budget(path, read_entries([table], path)), device, options)

    def assert_budget_file(
        self, path: str | PathLike[str], device: str | Sequence[str] = (), **options: Any
    ) -> None:
        """Fail the test unless the trace keeps to a budget file, as `cutrace check` reads it.

        Without `device` the file's own devices are asked.
        """
        __tracebackhide__ = True
        budget = read_budget(Path(path))
        self._hold(budget, device or budget.devices, options)

    def _hold(self, budget: Budget, device: str | Sequence[str], given: Mapping[str, Any]) -> None:
        __tracebackhide__ = True
        options = ReplayOptions(device, **given)
        profile = count(self.end(), options)
        trace = suppose(self.end(), options.pad, options.align)
        checker = Checker(trace, profile, options)
        checked = checker.judge(budget, name_compiler(trace.manifest))
        if checked.broken:
            raise AssertionError(render_broken(checked))
