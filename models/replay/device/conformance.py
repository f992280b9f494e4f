"""Conformance: tests of a model against the contract of `interface/model.py`.

The model counts random rows in one batch. Its counts must not depend on how replay arranges the
same rows: on batch sizes, on the order of rows and their base addresses (for a model with a
period), on other instances, on the number of units that it serves at once, or on the numbering of
kinds.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from ....base.errors import CutraceError
from ..interface.model import ACCESSES, Batch, Kind, Model, Step
from .guarded import SLOW, Guarded, describe_row, slowest_row

ROWS, SIZES, UNITS = 512, (1, 7, 64), 3
"""The number of rows, the batch sizes, and the number of units."""
AGAIN = 8
"""Repetitions of the rows in a measurement of time."""
WIDTHS = (1, 2, 4, 8, 16)
PLAIN = ("global", "local", "shared", "const")
"""State spaces of random rows; rows of textures would need a texture."""
BASES = (0, 0x10000000, 1 << 40, (1 << 62) + (1 << 33))
"""The base addresses of lanes; an address may have all of 63 bits."""
SECTOR, FAR = 32, 1 << 20
Build = Callable[[], Model]


def check_model(
    build: Build, name: str, spaces: tuple[str, ...] = ("global",), lanes: int = 32
) -> list[str]:
    """Return the violations of the contract by a model, one sentence each.

    `build` makes a model in its initial state. `spaces` are the state spaces of its stage; rows are
    generated for those in PLAIN. `lanes` is 1 behind a stage that passes on transactions.
    """
    plain = tuple(space for space in spaces if space in PLAIN)
    if not plain:
        raise CutraceError(f"model {name}: hears of {', '.join(spaces)} alone: it cannot be tried")
    batch = make_rows(plain, lanes)
    try:
        factory: Any = partial(Guarded, build, name)
        members = factory().members()
        whole = _step(factory(), batch)
    except CutraceError as error:
        return [str(error)]
    checks = [_pieces, _others, _kinds, _speed, _order if members.period else _units]
    faults = []
    for check in checks:
        try:
            faults += [f"model {name}: {fault}" for fault in check(factory, batch, whole)]
        except CutraceError as error:
            faults.append(str(error))
    return faults


def make_rows(spaces: tuple[str, ...], lanes: int = 32, seed: int = 0) -> Batch:
    """Return random rows: each of a warp of 32 lanes, some of them active, or of a sector."""
    random = np.random.default_rng(seed)
    kinds = tuple(
        Kind(space, access, "", width)
        for space in spaces
        for access in ACCESSES[space]
        for width in (WIDTHS if lanes > 1 else (SECTOR,))
    )
    kind = random.integers(0, len(kinds), ROWS)
    width = np.array([each.width for each in kinds])[kind, None]
    base = np.array(BASES)[random.integers(0, len(BASES), ROWS), None]
    base = base + SECTOR * random.zipf(1.3, (ROWS, 1)) % FAR
    stride = random.choice([0, 1, 1, 2, 33], ROWS)[:, None]
    scattered = random.integers(0, 4096, (ROWS, lanes)) * (random.random((ROWS, 1)) < 0.3)
    addresses = base + width * (np.arange(lanes) * stride + scattered)
    active = (random.random((ROWS, lanes)) < 0.8) | (random.random((ROWS, 1)) < 0.5)
    active[np.arange(ROWS), random.integers(0, lanes, ROWS)] = True
    for array in (kind, addresses, active):
        array.setflags(write=False)
    return Batch(kinds, kind, addresses, active, np.arange(ROWS), passes_on=True)


def _step(model: Guarded, batch: Batch) -> Step:
    """Return a model's step, also for an empty batch."""
    step = model.step(batch)
    model.step(batch.take(slice(0, 0)))
    return step


def _pieces(factory: Callable[[], Guarded], batch: Batch, whole: Step) -> Iterator[str]:
    """Check that counts do not depend on the sizes of batches."""
    for size in SIZES:
        model = factory()
        parts = [slice(at, at + size) for at in range(0, len(batch), size)]
        steps = [model.step(batch.take(part)) for part in parts]
        yield from _differ(steps, batch, whole, f"in batches of {size}")


def _others(factory: Callable[[], Guarded], batch: Batch, whole: Step) -> Iterator[str]:
    """Check that instances are independent, and that rows depend on earlier rows only."""
    model, other = factory(), factory()
    steps = []
    for at in range(0, len(batch), len(batch) // 4):
        part = batch.take(slice(at, at + len(batch) // 4))
        other.step(part)
        other.step(part)
        steps.append(model.step(part))
    yield from _differ(steps, batch, whole, "beside another instance")


def _kinds(factory: Callable[[], Guarded], batch: Batch, whole: Step) -> Iterator[str]:
    """Check that counts do not depend on the numbering of kinds."""
    last = len(batch.kinds) - 1
    turned = replace(batch, kinds=batch.kinds[::-1], kind=last - batch.kind)
    yield from _differ([factory().step(turned)], batch, whole, "with kinds in another order")


def _order(factory: Callable[[], Guarded], batch: Batch, whole: Step) -> Iterator[str]:
    """Check a model with a period in any order of rows, with addresses modulo the period."""
    order = np.random.default_rng(1).permutation(len(batch))
    model = factory()
    for variation in ("in another order", "asked a second time"):
        yield from _differ([model.step(batch.take(order))], batch, whole, variation, order.tolist())
    base = batch.addresses.min(axis=1, keepdims=True)
    moved = replace(batch, addresses=batch.addresses - base + base % model.period)
    variation = f"at a base address modulo its period, {model.period}"
    yield from _differ([factory().step(moved)], batch, whole, variation)


def _units(factory: Callable[[], Guarded], batch: Batch, whole: Step) -> Iterator[str]:
    """Check that a model that serves all units keeps them apart, and that one that adds up does."""
    unit, members = np.arange(len(batch)) % UNITS, factory().members()
    if members.serves_units:
        together = factory().step(replace(batch, unit=unit))
        for number in range(UNITS):
            rows = np.flatnonzero(unit == number)
            own = Step(factory().step(batch.take(rows)).counts)
            part = Step({name: np.asarray(c)[rows] for name, c in together.counts.items()})
            yield from _differ([part], batch.take(rows), own, "beside units")
    if members.adds_up:
        step = factory().step(replace(batch, group=unit, groups=UNITS))
        for name, column in whole.counts.items():
            sums = np.bincount(unit, column, UNITS)
            if (np.asarray(step.counts[name]) != sums).any():
                yield f"`{name}` of groups is {step.counts[name]}; its rows add up to {sums}"


def _speed(factory: Callable[[], Guarded], batch: Batch, whole: Step) -> Iterator[str]:
    """Report the time per row, and the slowest row."""
    began = perf_counter()
    many = batch.take(np.tile(np.arange(len(batch)), AGAIN))
    factory().step(many)
    a_row = (perf_counter() - began) * 1e6 / len(many)
    if a_row <= SLOW:
        return
    worst, seconds = slowest_row(factory, batch)
    yield (
        f"slow: {a_row:.0f} us a row, more than {SLOW:.0f}; row {worst} alone takes"
        f" {1e6 * seconds:.0f} us: {describe_row(batch, worst)}"
    )


def _differ(
    steps: list[Step], batch: Batch, whole: Step, variation: str, order: list[int] | None = None
) -> Iterator[str]:
    """Yield the first row with other counts than in one batch; `order` is the order of the
    rows in the steps, if another.
    """
    rows = order or [*range(len(batch))]
    for name, column in whole.counts.items():
        values = np.concatenate([np.asarray(step.counts[name]) for step in steps])
        expected = np.asarray(column)[rows]
        if odd := np.flatnonzero(values != expected).tolist():
            yield (
                f"{variation}, `{name}` of row {rows[odd[0]]} is {values[odd[0]]}, else"
                f" {expected[odd[0]]}: {describe_row(batch, rows[odd[0]])}"
            )
            return
    passed = [step.out for step in steps if step.out is not None]
    if whole.out is not None and variation != "in another order":
        row = np.concatenate([out.row for out in passed]) if passed else np.zeros(0)
        if sorted(row.tolist()) != sorted(whole.out.row.tolist()):
            yield f"{variation}, it passes on {len(row)} rows, else {len(whole.out)}"
