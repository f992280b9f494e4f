"""Guard of user-defined models: every answer is checked, and errors name the model and the row.

cutrace's own models are tested. A user's may raise, forget a counter, or answer with floats.
"""

import sys
from collections.abc import Callable
from dataclasses import field, replace
from time import perf_counter
from typing import Any

import numpy as np

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ....base.plugins import naming_extension
from ..interface.model import Batch, Step

READ_ONLY = ("kind", "addresses", "active", "row")
MOST = 1 << 53
"""The largest number that a row may count."""
MOST_ROWS = 1 << 12
"""How many rows of a batch are tried one after another to find the one that fails."""
SLOW, LONG = 100.0, 10.0
"""Microseconds a row that are too many (ten million rows take a quarter of an hour), and the
seconds in all before anybody is told.
"""
TIMED = 64
"""How many rows of a batch are timed one after another to find the slowest."""


@dataclass
class Spent:
    """The seconds and rows of all instances of a model in a replay, and whether it was reported."""

    seconds: float = 0.0
    rows: int = 0
    warned: bool = False

    def is_long(self) -> bool:
        """Whether it is time to say, once, that the model is slow."""
        late = not self.warned and self.seconds > LONG
        self.warned = self.warned or late
        return late and 1e6 * self.seconds > SLOW * self.rows


@dataclass
class Guarded:
    """A model, called by `name` in messages, that answers as the seam says, or is refused.

    `build` makes another one in its first state, to look for the row at which it fails. One that
    takes long is named on stderr, with what it `spent`, which all instances of a stage share.
    """

    build: Callable[[], Any]
    name: str
    spent: Spent = field(default_factory=Spent)
    model: Any = field(init=False)

    def __post_init__(self) -> None:
        """Make the model. `CutraceError` if it lacks what every model has."""
        with naming_extension(f"model {self.name}"):
            self.model = self.build()
        for part in ("counters", "period", "step"):
            if not hasattr(self.model, part):
                raise CutraceError(f"model {self.name} has no `{part}`: see seam.Model")
        counters, period = self.model.counters, self.model.period
        names = counters if isinstance(counters, tuple | list) else ("",)
        if len({*names}) < len(names) or not all(str(name).isidentifier() for name in names):
            raise CutraceError(f"model {self.name}: counters = {counters!r}; expected names")
        if not isinstance(period, int) or period < 0:
            raise CutraceError(f"model {self.name}: period = {period!r}; expected bytes, or 0")

    def __getattr__(self, name: str) -> Any:
        """All but the verb is the model's own."""
        if name.startswith("__") or name == "model":
            raise AttributeError(name)
        return getattr(self.model, name)

    def step(self, batch: Batch) -> Step:
        """Ask the model. `CutraceError` if it raises, or answers anything but integers a row."""
        parts = {name: _read_only(getattr(batch, name)) for name in READ_ONLY}
        batch = replace(batch, **parts)
        began = perf_counter()
        try:
            step = self.model.step(batch)
        except (Exception, SystemExit) as error:
            fault = f"raises {type(error).__name__}: {error}"
            raise self._refuse(fault, batch, self._failing_row(batch)) from error
        self.spent.seconds += perf_counter() - began
        self.spent.rows += len(batch)
        if len(batch) and self.spent.is_long():
            print(f"cutrace: {self._say_slow(batch)}", file=sys.stderr)
        if not isinstance(step, Step):
            raise self._refuse(f"answers {type(step).__name__}; expected a Step", batch)
        rows = len(batch) if batch.group is None else batch.groups
        for counter in self.model.counters:
            if counter not in step.counts:
                raise self._refuse(f"answers without its counter `{counter}`", batch)
            self._check(counter, np.asarray(step.counts[counter]), rows, batch)
        if step.out is not None:
            self._check_out(step.out, batch)
        return step

    def _check_out(self, out: Batch, batch: Batch) -> None:
        """Refuse rows to pass on that are not (m, lanes), or belong to no row of the batch."""
        many = {len(part) for part in (out.kind, out.addresses, out.active, out.row)}
        if len(many) > 1 or out.addresses.shape != out.active.shape:
            fault = "passes on a Batch whose kind, addresses, active and row are not equally long"
            raise self._refuse(fault, batch)
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
        """The first row at which a new model fails that is asked about one after another."""
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

    def _refuse(self, fault: str, batch: Batch, row: int = 0) -> CutraceError:
        """The error, with what was asked for in a row of the batch."""
        if not len(batch):
            return CutraceError(f"model {self.name}: {fault}, in a batch without rows")
        return CutraceError(
            f"model {self.name}: {fault}, in row {row} of a batch of {len(batch)}: "
            f"{describe_row(batch, row)}"
        )


def slowest_row(build: Callable[[], Any], batch: Batch) -> tuple[int, float]:
    """The row of a batch that takes longest alone, and its seconds: the least of three tries, as
    others use the machine, too.
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
    """Whether a value, of whatever type, is a number that sums can be made of exactly."""
    return isinstance(value, int | float) and value % 1 == 0 and abs(value) <= MOST


def _read_only(values: Any) -> Any:
    """The same array, which cannot be written to."""
    view = values.view()
    view.setflags(write=False)
    return view


def describe_row(batch: Batch, row: int) -> str:
    """A row of a batch in words."""
    kind, active = batch.kinds[int(batch.kind[row])], batch.active[row]
    at = int(batch.addresses[row][active.argmax()])
    lanes = f"{int(active.sum())} lanes of {kind.width} bytes"
    return f"{kind.space} {kind.access}, {lanes} from {at:#x} on"
