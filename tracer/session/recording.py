"""State of an open session, shared by its arrays, modules and kernels."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import field
from itertools import count
from typing import Any, Protocol

import pyarrow as pa
from numpy.typing import NDArray

from ...base.claim import Owner
from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...base.sanitize import sanitize
from ...traces.out_of_bounds import outside_text
from ...traces.row_filter import lines_of
from ...traces.schema import Array, Compiler, Event, Launch, Resources
from ..simt.kernel.launch import DEFAULT_CHIP, Chip
from ..simt.memory.memory import GLOBAL_BASE, Memory
from .filter import Filter, check_filter
from .record_options import RecordOptions


class Recorder(AbstractContextManager["Recorder"], Protocol):
    """Receiver of a session's events, used as a context manager."""

    def compiler(self, compiler: Compiler) -> None:
        """Record the compiler."""

    def source(self, name: str, text: str) -> str:
        """Record a source text; return its name in the trace."""

    def event(self, event: Event) -> None:
        """Record a copy or a set."""

    def launch(self, launch: Launch) -> Any:
        """Begin the next launch; return the sink for its rows, like a `LaunchWriter`."""

    def fault(self, message: str) -> None:
        """Record the message of the fault that ends the session."""

    def withdraw(self) -> None:
        """Discard the most recent launch."""

    def rename(self, old: str, new: str) -> None:
        """Rename an array, also in earlier records."""

    def resources(self, launch: int, resources: tuple[Resources, ...]) -> None:
        """Record the assembler's results for a kernel by its launch number."""


@dataclass(slots=True)
class Recording:
    """State of a session: device memory, the trace being written, and names in use.

    `launched` are the names of all kernels so far, `lines_met` their source lines. `partly_written`
    are arrays passed to a launch that ran only a sample of its blocks, and that the host has not
    written since. `remarks` are messages already printed on stderr, `reported` the source lines
    with a reported access outside of allocations. `fault` is the message of the fault after which
    nothing launches any more. If it `forgives`, a refused launch is dropped from the trace, and the
    session continues.

    `grids` counts the launches so far on the `chip` that kernels see.

    `arrays` are the device arrays so far, in order; `values` returns their elements, by name, if
    the session keeps them for the end (`final_values` of its options). `resources` holds a future
    of the assembler's results per launch. `reached` caches the arrays of each kernel's last launch,
    `numbered` the next number for a name of each kind.
    """

    trace: Recorder
    output: Callable[[str], None]
    options: RecordOptions = field(default_factory=RecordOptions)
    filter: Filter = field(default_factory=Filter)
    memory: Memory = field(default_factory=Memory)
    arrays: list[Array] = field(default_factory=list)
    values: dict[str, Callable[[], NDArray[Any]]] = field(default_factory=dict)
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
        """Return the arrays that a launch can reach; reuse an equal tuple of an earlier launch."""
        if self.reached.get(kernel) != arrays:
            self.reached[kernel] = arrays
        return self.reached[kernel]

    def remark(self, text: str) -> None:
        """Print a remark on stderr, once."""
        if text not in self.remarks:
            self.remarks.add(text)
            print(sanitize(f"cutrace: {text}"), file=sys.stderr)

    def tell_outside(self, launch: Launch, instructions: pa.Table) -> None:
        """Report a launch's accesses outside of allocations on stderr, once per source line."""
        for line, text in outside_text(launch, instructions, GLOBAL_BASE):
            if line not in self.reported:
                self.reported.add(line)
                self.remark(text)

    def end_by_fault(self, message: str) -> None:
        """Drop the faulting launch from the trace; like a device, launch nothing more."""
        self.note_fault(message)
        self.trace.withdraw()

    def note_fault(self, message: str) -> None:
        """Record a fault, after which nothing launches."""
        self.fault = message
        self.trace.fault(message)

    def check_sound(self) -> None:
        """Raise CutraceError if an earlier launch failed."""
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
        """Raise CutraceError outside the `with` block, or in another process than opened it."""
        self.owner.require("the session")
        if not self.is_open:
            raise CutraceError(
                "the session is closed and its trace complete: copy and launch inside "
                "`with cutrace.Session(...) as gpu:`"
            )

    def new_name(self, base: str | None, kind: str = "array") -> str:
        """Return a unique name in the session: `d_in`, then `d_in (2)`; `array0` by default."""
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
        """Note the names of a launched kernel, and which of the filter's lines it has."""
        self.launched.update(names)
        if self.filter.lines:
            self.lines_met.update(*lines_of(instructions))

    def finish(self) -> None:
        """Wait for the assembler and record its results.

        CutraceError if a kernel, line or launch in the filter never occurred.
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
