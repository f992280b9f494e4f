"""Launches of a trace by number and by kernel: the options of every verb that reads a trace."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from ...base.config import pattern_of
from ...base.dataclass import dataclass
from ...base.errors import CutraceError, nearest
from ...base.options import option
from ...tracer.session.record_options import code_option
from ...traces.kernel_names import BASES, names_by
from .recording import ARRAYS, Recording

if TYPE_CHECKING:
    from ...traces.reader import Trace

_NUMBERS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*")


Chosen = TypeVar("Chosen", bound="Selection")


@dataclass(frozen=True)
class Selection:
    """The launches to show; default: all. Without slots, so that `Reading` can inherit twice."""

    launch: tuple[str, ...] = option(
        (),
        "Of a trace, only these launches, counted from 0. For a source, a launch as CUDA writes"
        f" it, in quotes, in place of its `// cutrace:` comments; several run in order. {ARRAYS}",
        "N|N-M,...|KERNEL<<<GRID,BLOCK>>>(ARGS)",
        panel="Options",
    )
    kernels: str | None = option(
        None, "Only launches of kernels whose name matches.", "REGEX", panel="Options"
    )
    kernel_name_base: str = option(
        "",
        "The name that --kernels matches: of the function alone, with its template arguments, or as"
        " the compiler mangles it; by default one of the last two.",
        "|".join(BASES),
        panel="Options",
    )

    @property
    def lines(self) -> tuple[str, ...]:
        """The launches to make: the values of `--launch` that are no numbers."""
        return tuple(text for text in self.launch if not _NUMBERS.fullmatch(text))

    @property
    def for_source(self: "Chosen") -> "Chosen":
        """The part of the options that a recording takes: the launches to make."""
        return replace(self, launch=self.lines, kernels=None, kernel_name_base="")

    def of_trace(self, trace: "Trace") -> "Trace":
        """Select launches for a verb that records no source: `--launch` has numbers alone."""
        if self.lines:
            raise CutraceError(
                f"--launch {self.lines[0]}: a trace has its launches: expected their numbers, as in"
                " 3 or 0-7"
            )
        return self.select(trace)

    def select(self, trace: "Trace") -> "Trace":
        """Return the trace with the chosen launches; raise CutraceError if there are none."""
        return self._select_kernels(self._select_numbers(trace))

    def _select_numbers(self, trace: "Trace") -> "Trace":
        texts = [text for text in self.launch if _NUMBERS.fullmatch(text)]
        if not texts:
            return trace
        launches = {launch.number: launch for launch in trace.launches}
        numbers: dict[int, None] = {}
        for first, _, last in (part.partition("-") for text in texts for part in text.split(",")):
            span = range(int(first), int(last or first) + 1)
            if not any(number in launches for number in (span.start, span.stop - 1)):
                raise CutraceError(trace.no_launch(first))
            numbers |= dict.fromkeys(
                number for number in span[: len(launches) + 1] if number in launches
            )
        return replace(trace, launches=tuple(launches[number] for number in numbers))

    def _select_kernels(self, trace: "Trace") -> "Trace":
        if self.kernels is None:
            return trace
        pattern = pattern_of(self.kernels, "--kernels")
        chosen = tuple(
            one
            for one in trace.launches
            if any(
                map(
                    pattern.search,
                    names_by(self.kernel_name_base, one.launch.name, one.launch.kernel),
                )
            )
        )
        if not chosen:
            names = [*dict.fromkeys(one.launch.name for one in trace.launches)]
            there = f"it has {', '.join(names[:10])}{', ...' * (len(names) > 10)}"
            raise CutraceError(
                f"{trace.label}: --kernels {self.kernels}: no kernel's name matches"
                f"{nearest(self.kernels, names)}; {there if names else 'it has no launches'}"
            )
        return replace(trace, launches=chosen)


@dataclass(frozen=True, slots=True)
class Reading(Selection, Recording):
    """Options of verbs that read a trace, or record a source for this once."""


@dataclass(frozen=True)
class CodeSelection(Selection):
    """Options of verbs that read traces, or record sources, and of a recording take which code."""

    code: str = code_option()

    @property
    def recording(self) -> Recording:
        """The options of a recording of a source."""
        return Recording(launch=self.lines, code=self.code)


READING, SELECTION, CODE_SELECTION = Reading(), Selection(), CodeSelection()
"""The defaults."""
