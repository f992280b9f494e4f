"""Guard of user-defined models: each step is checked, and errors name the model and the row.

cutrace's own models are tested. A user's may raise, omit a counter, or return floats.
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from time import perf_counter
from traceback import walk_tb
from typing import Any

import numpy as np

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ..interface.model import Batch, Kind, MemberError, Members, Step, read_members

READ_ONLY = ("kind", "addresses", "active", "row")
_PARTS = {
    "kind": (1, "iu", "integers (rows,)"),
    "row": (1, "iu", "integers (rows,)"),
    "addresses": (2, "iu", "integers (rows, lanes)"),
    "active": (2, "b", "booleans (rows, lanes)"),
}
"""The arrays of a batch that a model passes on: dimensions, types, and these in words."""
MOST = 1 << 53
"""The largest count of a row."""
MOST_ROWS = 1 << 12
"""The most rows of a batch that are tried one by one to find the failing one."""
SLOW, LONG = 100.0, 10.0
"""A model is slow from so many microseconds per row on (ten million rows then take a quarter of an
hour); it is reported after so many seconds in all.
"""
TIMED = 64
"""The most rows of a batch that are timed one by one to find the slowest."""


@dataclass
class Spent:
    """The seconds and rows of all instances of a model in a replay, and whether it was reported."""

    seconds: float = 0.0
    rows: int = 0
    warned: bool = False

    def is_long(self) -> bool:
        """Whether to report now, once, that the model is slow."""
        late = not self.warned and self.seconds > LONG
        self.warned = self.warned or late
        return late and 1e6 * self.seconds > SLOW * self.rows


@dataclass
class Guarded:
    """A model with checked steps, called `name` in messages.

    `build` makes another instance in its initial state, to search for the failing row. A slow model
    is reported on stderr; the instances of a stage share its time, `spent`.
    """

    build: Callable[[], Any]
    name: str
    spent: Spent = field(default_factory=Spent)
    model: Any = field(init=False)

    def __post_init__(self) -> None:
        """Build the model. Raises `CutraceError` if that raises."""
        try:
            self.model = self.build()
        except CutraceError:
            raise
        except (Exception, SystemExit) as error:
            raise self._fail(error) from error

    def members(self) -> Members:
        """Return the model's members. Raises `CutraceError` for one that is missing or wrong."""
        try:
            members = read_members(self.model)
            with suppress(ValueError):  # without a signature
                inspect.signature(self.model.step).bind(None)
        except MemberError as error:
            place = _defined_at(type(self.model), error.member)
            raise CutraceError(f"model {self.name}{error}{place}") from error
        except TypeError as error:
            place = _defined_at(type(self.model), "step")
            raise CutraceError(f"model {self.name}: step(batch): {error}{place}") from error
        except (Exception, SystemExit) as error:  # a property's
            raise self._fail(error) from error
        return members

    @property
    def counters(self) -> tuple[str, ...]:
        """The model's counters."""
        counters: tuple[str, ...] = self.model.counters
        return counters

    @property
    def period(self) -> int:
        """The model's period."""
        period: int = self.model.period
        return period

    def step_repeated(self, rows: Any) -> Step | None:
        """Run the model on repeated rows. Raises `CutraceError` as `step` does."""
        try:
            step: Step | None = self.model.step_repeated(rows)
        except (Exception, SystemExit) as error:
            raise self._fail(error) from error
        if step is not None:
            none = np.zeros(0, np.int64)
            batch = replace(rows.pool.repeat(none, none, none), row=np.arange(len(rows.rows)))
            self._check_counts(step, rows.groups, batch)
            if step.out is not None:
                self._check_out(step.out, batch)
        return step

    def step(self, batch: Batch) -> Step:
        """Run the model. Raises `CutraceError` if it raises, or returns anything but integers per
        row.
        """
        parts = {name: _read_only(getattr(batch, name)) for name in READ_ONLY}
        batch = replace(batch, **parts)
        began = perf_counter()
        try:
            step: Step = self.model.step(batch)
        except (Exception, SystemExit) as error:
            fault = f"raises {type(error).__name__}: {error}"
            row = self._failing_row(batch)
            raise self._refuse(fault, batch, row, raised_at(error)) from error
        self.spent.seconds += perf_counter() - began
        self.spent.rows += len(batch)
        if len(batch) and self.spent.is_long():
            print(f"cutrace: {self._say_slow(batch)}", file=sys.stderr)
        rows = len(batch) if batch.group is None else batch.groups
        self._check_counts(step, rows, batch)
        if step.out is not None:
            self._check_out(step.out, batch)
        return step

    def _check_counts(self, step: Any, rows: int, batch: Batch) -> None:
        """Refuse what is not a Step with all counters, each (rows,) integers."""
        if not isinstance(step, Step):
            raise self._refuse(f"answers {type(step).__name__}; expected a Step", batch)
        if not isinstance(step.counts, Mapping):
            fault = f"answers counts of {type(step.counts).__name__}; expected a dict of counters"
            raise self._refuse(fault, batch)
        for counter in self.model.counters:
            if counter not in step.counts:
                raise self._refuse(f"answers without its counter `{counter}`", batch)
            try:
                column = np.asarray(step.counts[counter])
            except (Exception, SystemExit) as error:
                raise self._refuse(f"`{counter}` is no array: {error}", batch) from error
            self._check(counter, column, rows, batch)

    def _check_out(self, out: Any, batch: Batch) -> None:
        """Refuse passed rows that are not (m, lanes) of its kinds, or of no row of the batch."""
        if not isinstance(out, Batch):
            raise self._refuse(f"passes on {type(out).__name__}; expected a Batch", batch)
        for name, (dimensions, types, expected) in _PARTS.items():
            part = getattr(out, name)
            found = f"{part.dtype} {part.shape}" if isinstance(part, np.ndarray) else repr(part)
            is_array = isinstance(part, np.ndarray)
            if not is_array or part.ndim != dimensions or part.dtype.kind not in types:
                fault = f"passes on a Batch with {name} = {found}; expected {expected}"
                raise self._refuse(fault, batch)
        many = {len(getattr(out, name)) for name in _PARTS}
        if len(many) > 1 or out.addresses.shape != out.active.shape:
            fault = "passes on a Batch whose kind, addresses, active and row are not equally long"
            raise self._refuse(fault, batch)
        kinds: Any = out.kinds
        if not isinstance(kinds, tuple) or not all(isinstance(kind, Kind) for kind in kinds):
            raise self._refuse(f"passes on a Batch with kinds = {kinds}; expected Kinds", batch)
        if len(out) and not 0 <= out.kind.min() <= out.kind.max() < len(kinds):
            fault = f"passes on a Batch with a kind of {out.kind.min()} to {out.kind.max()}"
            raise self._refuse(f"{fault}; it has {len(kinds)} kinds", batch)
        if len(out) and not np.isin(out.row, batch.row).all():
            fault = "passes on rows whose `row` is none of the batch's"
            raise self._refuse(fault, batch)

    def _check(self, counter: str, column: Any, rows: int, batch: Batch) -> None:
        """Refuse a column that is not (rows,) integers."""
        if column.shape != (rows,):
            fault = f"`{counter}` has the shape {column.shape}; expected ({rows},)"
            raise self._refuse(fault, batch)
        if column.dtype.kind in "iu" and not (column > MOST).any() and not (column < -MOST).any():
            return
        odd = [n for n, value in enumerate(column.tolist()) if not _is_count(value)]
        if odd or len(column):
            first = odd[0] if odd else 0
            fault = f"`{counter}` is {column[first]} of {column.dtype}; expected integers"
            raise self._refuse(fault, batch, first if batch.group is None else 0)

    def _failing_row(self, batch: Batch) -> int:
        """Return the first row at which a new model fails when it gets rows one by one."""
        model = self.build()
        for row in range(min(len(batch), MOST_ROWS)):
            try:
                model.step(batch.take(slice(row, row + 1)))
            except (Exception, SystemExit):
                return row
        return 0

    def _say_slow(self, batch: Batch) -> str:
        seconds, rows = self.spent.seconds, self.spent.rows
        row, row_seconds = slowest_row(self.build, batch.take(slice(0, TIMED)))
        return (
            f"model {self.name} is slow: {seconds:.0f} s for {rows:,} rows,"
            f" {1e6 * seconds / max(rows, 1):,.0f} us a row, more than {SLOW:.0f}; row {row} alone"
            f" takes {1e6 * row_seconds:,.0f} us: {describe_row(batch, row)}"
        )

    def _refuse(self, fault: str, batch: Batch, row: int = 0, place: str = "") -> CutraceError:
        """Return the error, with the access of a row of the batch, and the file and line."""
        row_words = "in a batch without rows"
        if len(batch):
            row_words = f"in row {row} of a batch of {len(batch)}: {describe_row(batch, row)}"
        place = place or _defined_at(type(self.model), "step")
        return CutraceError(f"model {self.name}: {fault}, {row_words}{place}")

    def _fail(self, error: BaseException) -> CutraceError:
        fault = f"raises {type(error).__name__}: {error}{raised_at(error)}"
        return CutraceError(f"model {self.name}: {fault}")


def raised_at(error: BaseException) -> str:
    """Return ` (FILE:LINE)`: the innermost line of the user's first file in the traceback."""
    lines: dict[str, int] = {}
    for frame, line in walk_tb(error.__traceback__):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package != _OWN and package not in sys.stdlib_module_names:
            lines[frame.f_code.co_filename] = line
    return next((f" ({file}:{line})" for file, line in lines.items() if file[:1] != "<"), "")


def _defined_at(owner: type, member: str) -> str:
    """Return ` (FILE:LINE)` of a class's member, or else of the class."""
    value = getattr(owner, member, None)
    code = getattr(getattr(value, "fget", value), "__code__", None)
    if code is not None:
        return f" ({code.co_filename}:{code.co_firstlineno})"
    try:
        (lines, first), file = inspect.getsourcelines(owner), inspect.getsourcefile(owner)
    except (OSError, TypeError):  # made without a file
        return ""
    head = re.compile(rf"\s+{member}\s*[:=]")
    offsets = [number for number, text in enumerate(lines) if head.match(text)]
    return f" ({file}:{first + (offsets or [0])[-1]})"


_OWN = __name__.partition(".")[0]


def slowest_row(build: Callable[[], Any], batch: Batch) -> tuple[int, float]:
    """Return the slowest row of a batch, and its seconds: the minimum of three tries, since other
    processes share the machine.
    """
    seconds = np.full(len(batch), np.inf)
    for model in (build(), build(), build()):
        for row in range(len(batch)):
            began = perf_counter()
            model.step(batch.take(slice(row, row + 1)))
            seconds[row] = min(seconds[row], perf_counter() - began)
    worst = int(np.argmax(seconds))
    return worst, float(seconds[worst])


def _is_count(value: object) -> bool:
    """Return whether a value of any type is a number that sums represent exactly."""
    return isinstance(value, int | float) and value % 1 == 0 and abs(value) <= MOST


def _read_only(values: Any) -> Any:
    """Return a view of the array that cannot be written to."""
    view = values.view()
    view.setflags(write=False)
    return view


def describe_row(batch: Batch, row: int) -> str:
    """Describe a row of a batch in words."""
    kind, active = batch.kinds[int(batch.kind[row])], batch.active[row]
    at = int(batch.addresses[row][active.argmax()])
    lanes = f"{int(active.sum())} lanes of {kind.width} bytes"
    return f"{kind.space} {kind.access}, {lanes} from {at:#x} on"
