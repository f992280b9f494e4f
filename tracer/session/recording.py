"""What an open session shares with its arrays, modules and kernels."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import field
from itertools import count
from typing import Any, Protocol

import pyarrow as pa

from ...base.claim import Owner
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...base.sanitize import sanitize
from ...traces.out_of_bounds import outside_text
from ...traces.row_filter import lines_of
from ...traces.schema import Array, Compiler, Event, Launch, Resources
from ..simt.kernel.chip import DEFAULT_CHIP, Chip
from ..simt.memory.memory import GLOBAL_BASE, Memory
from .filter import Filter, check_filter
from .record_options import RecordOptions


class Recorder(AbstractContextManager["Recorder"], Protocol):
    """Takes what a session does, from `with` to its end."""

    def compiler(self, compiler: Compiler) -> None:
        """Take who compiled."""

    def source(self, name: str, text: str) -> str:
        """Take a source text; return the name that it has from now on."""

    def event(self, event: Event) -> None:
        """Take a copy or a set."""

    def launch(self, launch: Launch) -> Any:
        """Take the next launch; return what takes its rows, as a `LaunchWriter` does."""

    def fault(self, message: str) -> None:
        """Take the message of the fault that ends the session."""

    def withdraw(self) -> None:
        """Forget the launch that was begun last: it was given up."""

    def rename(self, old: str, new: str) -> None:
        """Call an array by another name, in all that was taken so far, too."""

    def resources(self, launch: int, resources: tuple[Resources, ...]) -> None:
        """Take what the assembler made of the kernel of a launch, by its number."""


@dataclass(slots=True)
class Recording:
    """The state of a session: device memory, the trace being written, and names given out.

    `launched` are the names of the kernels so far, `lines_met` the source lines that they have.
    `partly_written` are arrays that a launch was given of which only a sample of blocks ran, and
    that the host has not written since. `remarks` were made on stderr, `reported` are the source
    lines of accesses outside of allocations of which it was said. `fault` is the message of the
    fault after which nothing is launched any more. Where it `forgives`, a launch that is refused is
    left out of the trace, and the session goes on.

    `grids` have been launched so far on the `chip` that kernels see.

    `arrays` are the device arrays so far, in order; `resources` holds, for each launch, what the
    assembler will have said by the end. `reached` are the arrays of each kernel's last launch,
    `numbered` the next number of a name of each kind.
    """

    trace: Recorder
    output: Callable[[str], None]
    options: RecordOptions = field(default_factory=RecordOptions)
    filter: Filter = field(default_factory=Filter)
    memory: Memory = field(default_factory=Memory)
    arrays: list[Array] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    resources: list[Future[tuple[Resources, ...]]] = field(default_factory=list)
    is_open: bool = True
    launched: set[str] = field(default_factory=set)
    partly_written: set[str] = field(default_factory=set)
    lines_met: set[str] = field(default_factory=set)
    remarks: set[str] = field(default_factory=set)
    reported: set[str] = field(default_factory=set)
    fault: str = ""
    forgives: bool = False
    grids: int = 0
    chip: Chip = DEFAULT_CHIP
    reached: dict[str, tuple[Array, ...]] = field(default_factory=dict)
    numbered: dict[str, int] = field(default_factory=dict)
    owner: Owner = field(default_factory=Owner)

    def share_arrays(self, kernel: str, arrays: tuple[Array, ...]) -> tuple[Array, ...]:
        """Return the arrays that a launch can reach; the same object as for the one before it."""
        if self.reached.get(kernel) != arrays:
            self.reached[kernel] = arrays
        return self.reached[kernel]

    def remark(self, text: str) -> None:
        """Say something on stderr, once."""
        if text not in self.remarks:
            self.remarks.add(text)
            print(sanitize(f"cutrace: {text}"), file=sys.stderr)

    def tell_outside(self, launch: Launch, instructions: pa.Table) -> None:
        """Say on stderr what a launch did outside of allocations, once for each source line."""
        for line, text in outside_text(launch, instructions, GLOBAL_BASE):
            if line not in self.reported:
                self.reported.add(line)
                self.remark(text)

    def end_by_fault(self, message: str) -> None:
        """Leave the last launch out of the trace, and launch nothing more, as a device would."""
        self.note_fault(message)
        self.trace.withdraw()

    def note_fault(self, message: str) -> None:
        """Launch nothing more after a fault."""
        self.fault = message
        self.trace.fault(message)

    def check_sound(self) -> None:
        """Raise CutraceError if a launch has failed before."""
        if self.fault:
            raise CutraceError(
                f"nothing is launched after a fault, on a device either: {self.fault}"
            )

    def note(self, event: Event) -> None:
        """Record an event; CutraceError once the session is closed."""
        self.check_open()
        self.trace.event(event)
        if event.kind == "set" or event.direction == "HtoD":
            self.partly_written.discard(event.array)

    def check_open(self) -> None:
        """Raise CutraceError unless inside the `with` block, and where that was entered."""
        self.owner.require("the session")
        if not self.is_open:
            raise CutraceError(
                "the session is closed and its trace complete: copy and launch inside "
                "`with cutrace.Session(...) as gpu:`"
            )

    def new_name(self, base: str | None, kind: str = "array") -> str:
        """A name that nothing else of the session has: `d_in`, then `d_in (2)`; else `array0`."""
        if base is None:
            number = next(
                n for n in count(self.numbered.get(kind, 0)) if f"{kind}{n}" not in self.names
            )
            self.numbered[kind], name = number + 1, f"{kind}{number}"
        else:
            name = next(each for each in _numbered(base) if each not in self.names)
        self.names.add(name)
        return name

    def note_launch(self, names: tuple[str, ...], instructions: pa.Table) -> None:
        """Remember the names of a kernel that is launched, and which lines to record it has."""
        self.launched.update(names)
        if self.filter.lines:
            self.lines_met.update(*lines_of(instructions))

    def finish(self) -> None:
        """Wait for the assembler and hand the trace what it said.

        CutraceError if what was to be recorded alone never came.
        """
        if not self.fault:
            check_filter(self.filter, self.launched, self.lines_met, len(self.resources))
        for launch, answer in enumerate(self.resources):
            self.trace.resources(launch, answer.result())


def _numbered(base: str) -> Iterator[str]:
    """Yield `d_in`, `d_in (2)`, `d_in (3)`..."""
    yield base
    for number in count(2):
        yield f"{base} ({number})"
