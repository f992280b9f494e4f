"""Stages: the wired models of one device at work, each fed by the state spaces or by another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from .seam import Batch, Ints, Model, Step, join_batches
from .wiring import Wire

Answers = Mapping[str, Ints]
"""For each stage by name, (n, counters): its answers to the n rows that went in."""


def split_wires(wires: Sequence[Wire]) -> tuple[tuple[Wire, ...], tuple[Wire, ...]]:
    """Part the stages whose answers repeat from those that keep state or come after such."""
    lasting: dict[str, Wire] = {}
    for wire in wires:
        if not wire.period or any(name in lasting for name in wire.after):
            lasting[wire.stage.name] = wire
    return tuple(w for w in wires if w.stage.name not in lasting), tuple(lasting.values())


def with_sources(wanted: Sequence[Wire], wires: Sequence[Wire]) -> tuple[Wire, ...]:
    """Return `wanted` and every stage that they need rows from, in the order of `wires`."""
    names = {wire.stage.name for wire in wanted}
    for wire in reversed(wires):
        if wire.stage.name in names:
            names.update(wire.after)
    return tuple(wire for wire in wires if wire.stage.name in names)


@dataclass(slots=True)
class Stages:
    """Models at work. One that keeps state exists once for each unit of its stage's scope."""

    wires: tuple[Wire, ...]
    _models: dict[tuple[str, int], Model] = field(default_factory=dict)

    def run(self, batch: Batch, units: Mapping[str, Ints]) -> Answers:
        """Send rows through all stages; `units` gives for each scope the unit of each row, (n,)."""
        answers: dict[str, Ints] = {}
        passed: dict[str, Batch] = {}
        for wire in self.wires:
            listened = any(wire.stage.name in other.after for other in self.wires)
            seen = replace(_gather(wire, batch, passed), passes_on=listened)
            step = self._step(wire, seen, units)
            table = np.stack([step.counts[name] for name in wire.counters], axis=1)
            answers[wire.stage.name] = _sum_by_row(table, seen.row, len(batch))
            if step.out is not None:
                passed[wire.stage.name] = step.out
        return answers

    def _step(self, wire: Wire, seen: Batch, units: Mapping[str, Ints]) -> Step:
        """Ask the model, or for one with state the model of each unit about its own rows."""
        if wire.period or wire.stage.scope not in units:
            return self._model(wire, 0).step(seen)
        unit = units[wire.stage.scope][seen.row]
        counts = {name: np.zeros(len(seen), np.int64) for name in wire.counters}
        passed: list[Batch] = []
        for number in np.unique(unit).tolist():
            rows = np.flatnonzero(unit == number)
            step = self._model(wire, number).step(seen.take(rows))
            for name in wire.counters:
                counts[name][rows] = step.counts[name]
            passed += [] if step.out is None else [step.out]
        return Step(counts, join_batches(passed) if passed else None)

    def _model(self, wire: Wire, unit: int) -> Model:
        key = wire.stage.name, unit
        if key not in self._models:
            self._models[key] = wire.build()
        return self._models[key]


def _gather(wire: Wire, batch: Batch, passed: Mapping[str, Batch]) -> Batch:
    """Return what a stage sees: rows of its spaces, and what the stages before it passed on."""
    heard = np.array([kind.space in wire.direct for kind in batch.kinds], np.bool_)
    parts = [passed[name] for name in wire.after if name in passed]
    if wire.direct and heard.all():
        parts.append(batch)
    elif wire.direct:
        parts.append(batch.take(np.flatnonzero(heard[batch.kind])))
    if not parts:
        return batch.take(np.zeros(0, np.int64))
    return parts[0] if len(parts) == 1 else join_batches(parts)


def _sum_by_row(table: Ints, row: Ints, rows: int) -> Ints:
    """Add up answers, (m, counters), that belong to one row; `row` (m,) rises: (rows, counters)."""
    total = np.zeros((rows, table.shape[1]), np.int64)
    first = np.flatnonzero(np.diff(row, prepend=-1))
    if len(first) == len(row):
        total[row] = table
    else:
        total[row[first]] = np.add.reduceat(table, first, axis=0)
    return total
