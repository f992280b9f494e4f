"""Stages: the wired models of one device at work, each fed by state spaces or by other stages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise
from types import ModuleType
from typing import cast

import numpy as np

from ....base.dataclass import dataclass
from ....jit.loop import loops_of
from ..device.wiring import Wire
from ..interface.model import Batch, FullModel, Ints, Model, Step, join_batches
from ..schedule.episodes import list_ranges
from . import counting
from .histogram import Repeated

Answers = Mapping[str, Ints]
"""Per stage name, (counters, n): its counts for the n input rows, or for n groups."""
Flow = Batch | Repeated
"""The output of a stage, in the order of its input rows."""
TOGETHER = 1 << 16
"""Requests of ordered rows that stages serve at a time."""


def split_wires(wires: Sequence[Wire]) -> tuple[tuple[Wire, ...], tuple[Wire, ...]]:
    """Split the stages into stateless ones, and those that keep state or follow such a stage."""
    lasting: dict[str, Wire] = {}
    for wire in wires:
        if not wire.period or any(name in lasting for name in wire.after):
            lasting[wire.stage.name] = wire
    return tuple(w for w in wires if w.stage.name not in lasting), tuple(lasting.values())


def split_first(wires: Sequence[Wire]) -> tuple[tuple[Wire, ...], tuple[Wire, ...]]:
    """Split the stages into those that none of these feeds, and those behind them."""
    names = {wire.stage.name for wire in wires}
    first = tuple(wire for wire in wires if names.isdisjoint(wire.after))
    return first, tuple(wire for wire in wires if wire not in first)


def with_sources(targets: Sequence[Wire], wires: Sequence[Wire]) -> tuple[Wire, ...]:
    """Return `targets` and every stage that feeds them, in the order of `wires`."""
    names = {wire.stage.name for wire in targets}
    for wire in reversed(wires):
        if wire.stage.name in names:
            names.update(wire.after)
    return tuple(wire for wire in wires if wire.stage.name in names)


TURNS = "turn"
"""The key, beside the scopes of units, of the turns in which warps issue rows."""


@dataclass(slots=True)
class Stages:
    """Models at work. A stateful model has one instance per unit of its stage's scope."""

    wires: tuple[Wire, ...]
    passed: dict[str, Batch] = field(default_factory=dict)
    _models: dict[tuple[str, int], Model] = field(default_factory=dict)

    def run(
        self,
        batch: Batch,
        units: Mapping[str, Ints],
        flows: Mapping[str, Flow] | None = None,
        listeners: Sequence[Wire] = (),
        group: Ints | None = None,
    ) -> Answers:
        """Send rows through all stages; `units` is the unit of each row, (n,), per scope, and its
        turn under TURNS.

        `flows` are the outputs of earlier stages, by name. `listeners` are later stages: their
        inputs are collected in `passed`. `group` (rows,) gives the sum for each row's counts;
        without it counts are summed per row of the batch.
        """
        answers: dict[str, Ints] = {}
        passed: dict[str, Flow] = dict(flows or {})
        batches: dict[str, list[Batch]] = {name: [] for wire in listeners for name in wire.after}
        wires = []
        groups = 0 if group is None else int(group.max(initial=-1)) + 1
        heard = {name for wire in (*self.wires, *listeners) for name in wire.after}

        def pass_on(name: str, out: Batch | None, flows: dict[str, Flow]) -> None:
            if out is not None:
                flows[name] = out
                if name in batches:
                    batches[name].append(out)

        for wire in self.wires:
            name = wire.stage.name
            repeated = self._repeat(wire, batch, units, passed, groups, name in heard)
            if repeated is None:
                wires.append(wire)
                continue
            answers[name] = _columns(wire, repeated)
            pass_on(name, repeated.out, passed)
        parts = [(batch, passed)] if group is None else _parts(batch, passed, wires)
        for part, before in parts:
            for wire in wires:
                name = wire.stage.name
                inputs = _gather(wire, part, before)
                inputs = replace(inputs, passes_on=name in heard, unit=None, group=None)
                counts, out = self._step_model(wire, part, inputs, units, group, groups)
                answers[name] = answers[name] + counts if name in answers else counts
                pass_on(name, out, before)
        self.passed = {name: join_batches(outs) for name, outs in batches.items() if outs}
        return answers

    def _step_model(
        self,
        wire: Wire,
        batch: Batch,
        inputs: Batch,
        units: Mapping[str, Ints],
        group: Ints | None,
        groups: int,
    ) -> tuple[Ints, Batch | None]:
        """Run a model on its input rows; return its counts, and the rows passed on."""
        if not len(inputs):
            size = len(batch) if group is None else groups
            return np.zeros((len(wire.counters), size), np.int64), None
        own = inputs.row is batch.row
        if group is not None and wire.members.adds_up:
            inputs = replace(inputs, group=group[inputs.row], groups=groups)
        step = self._step(wire, inputs, units)
        columns = [step.counts[name] for name in wire.counters]
        if inputs.group is not None or (group is None and own):
            return _columns(wire, step), step.out
        if group is None:
            return _sum_by_row(columns, inputs.row, len(batch)), step.out
        return _sum_by_group(columns, group[inputs.row], groups), step.out

    def _repeat(
        self,
        wire: Wire,
        batch: Batch,
        units: Mapping[str, Ints],
        passed: Mapping[str, Flow],
        groups: int,
        listened: bool,
    ) -> Step | None:
        """Run a model on repeated rows, if it supports them and has no other input; else return
        None.
        """
        flows = [passed[name] for name in wire.after if name in passed]
        if len(flows) != 1 or len(batch) or not groups or not wire.members.has_step_repeated:
            return None
        (flow,) = flows
        if not isinstance(flow, Repeated):
            return None
        unit = units.get(wire.stage.scope)
        turn = units.get(TURNS)
        inputs = replace(flow, unit=unit, groups=groups, passes_on=listened, turn=turn)
        return cast(FullModel, self._model(wire, 0)).step_repeated(inputs)

    def _step(self, wire: Wire, inputs: Batch, units: Mapping[str, Ints]) -> Step:
        """Run the model; of a stateful one, the instance of each unit on its own rows."""
        model = self._model(wire, 0)
        if wire.period or wire.stage.scope not in units or not len(inputs):
            return model.step(inputs)
        unit = units[wire.stage.scope][inputs.row].astype(np.int64)
        if wire.members.serves_units:
            turn = units[TURNS][inputs.row] if TURNS in units else None
            return model.step(replace(inputs, unit=unit, turn=turn))
        order = np.argsort(unit, kind="stable")
        ordered, unit = inputs.take(order), unit[order]
        opens = np.flatnonzero(np.diff(unit, prepend=-1))
        steps = [
            self._model(wire, int(unit[first])).step(ordered.take(slice(first, last)))
            for first, last in zip(opens, np.append(opens[1:], len(unit)), strict=True)
        ]
        counts = {}
        for name in wire.counters:
            counts[name] = np.empty(len(inputs), np.int64)
            counts[name][order] = np.concatenate([step.counts[name] for step in steps])
        passed = [step.out for step in steps if step.out is not None]
        return Step(counts, join_batches(passed) if passed else None)

    def take_over(self, before: "Stages") -> None:
        """Continue with the state of the stages of the whole chip that ran `before`."""
        names = {wire.stage.name for wire in self.wires if wire.stage.scope == "gpu"}
        self._models |= {key: each for key, each in before._models.items() if key[0] in names}

    def _model(self, wire: Wire, unit: int) -> Model:
        key = wire.stage.name, unit
        if key not in self._models:
            self._models[key] = wire.build()
        return self._models[key]


def _parts(
    batch: Batch, passed: Mapping[str, Flow], wires: Sequence[Wire]
) -> Iterator[tuple[Batch, dict[str, Flow]]]:
    """Yield rows with their requests at some stages, about TOGETHER at a time."""
    names = {name for wire in wires for name in wire.after if name in passed}
    batches = {name: _written(passed[name]) for name in names}
    longest = max((batch, *batches.values()), key=len)
    cuts = [int(longest.row[part.start]) for part in slices_of(longest.row, TOGETHER)][1:]
    for begin, end in pairwise([0, *cuts, np.iinfo(np.int64).max]):
        pieces = {name: _between(flow, begin, end) for name, flow in batches.items()}
        yield _between(batch, begin, end), {**pieces}


def _between(batch: Batch, begin: int, end: int) -> Batch:
    """Return the part of a batch that belongs to the rows from `begin` to `end`."""
    first, last = np.searchsorted(batch.row, [begin, end]).tolist()
    return batch if last - first == len(batch) else batch.take(slice(first, last))


def _written(flow: Flow) -> Batch:
    return flow.batch() if isinstance(flow, Repeated) else flow


def _columns(wire: Wire, step: Step) -> Ints:
    """Return a step's counts as (counters, n)."""
    columns = [step.counts[name] for name in wire.counters]
    return np.concatenate(columns).reshape(len(columns), -1)


def _gather(wire: Wire, batch: Batch, passed: Mapping[str, Flow]) -> Batch:
    """Return the input of a stage: rows of its spaces, and the outputs of the stages before it."""
    if not len(batch) and not any(name in passed for name in wire.after):
        return batch
    heard = np.array([kind.space in wire.direct for kind in batch.kinds] or [False])[batch.kind]
    flows = [passed[name] for name in wire.after if name in passed]
    parts = [_written(flow) for flow in flows]
    if heard.all():
        parts.append(batch)
    elif heard.any():
        parts.append(batch.take(np.flatnonzero(heard)))
    if not parts:
        return batch.take(np.zeros(0, np.int64))
    return parts[0] if len(parts) == 1 else join_batches(parts)


def _sum_by_row(columns: Sequence[Ints], row: Ints, rows: int) -> Ints:
    """Sum counts, (m,) each, per row; `row` (m,) rises. Returns (counters, rows)."""
    total = np.zeros((len(columns), rows), np.int64)
    first = np.flatnonzero(np.diff(row, prepend=-1))
    for sums, column in zip(total, columns, strict=True):
        if len(first) == rows == len(row):
            sums[:] = column
        elif len(first) == len(row):
            sums[row] = column
        elif column.any():
            sums[row[first]] = np.add.reduceat(column, first)
    return total


def _sum_by_group(columns: Sequence[Ints], owners: Ints, groups: int) -> Ints:
    """Sum counts, (m,) each, per group of `owners` (m,)."""
    total = np.zeros((len(columns), groups), np.int64)
    loops = loops_of(counting, 0)
    for sums, column in zip(total, columns, strict=True):
        loops.add_up(column, owners, sums)
    return total


def slices_of(row: Ints, size: int) -> Iterator[slice]:
    """Yield slices of about `size` requests that keep the requests of a row together."""
    end = 0
    while end < len(row):
        start, end = end, min(end + size, len(row))
        while end < len(row) and row[end] == row[end - 1]:
            end += 1
        yield slice(start, end)


def cut_at_lines(batch: Batch, line: int, loops: ModuleType) -> tuple[Batch, Ints]:
    """Split requests at line boundaries; return them, and the row of the batch of each. `loops` are
    those of `cache_sim.py`.
    """
    widths = np.array([kind.width for kind in batch.kinds] or [0], np.int64)
    address = np.ascontiguousarray(batch.addresses[:, 0])
    owners = np.arange(len(batch))
    if not loops.any_crosses_line(address, batch.kind, widths, line):
        return batch, owners
    widths = widths[batch.kind]
    over = (address % line + widths - 1) // line
    owners = np.repeat(owners, over + 1)
    pieces = batch.take(owners)
    start = list_ranges(address // line, over + 1) * line
    begin = np.maximum(address[owners], start)
    end = np.minimum((address + widths)[owners], start + line)
    many = int(widths.max()) + 1
    pairs, kind = np.unique(pieces.kind * many + end - begin, return_inverse=True)
    kinds = tuple(replace(batch.kinds[p // many], width=p % many) for p in pairs.tolist())
    return replace(pieces, kinds=kinds, kind=kind, addresses=begin[:, None]), owners
