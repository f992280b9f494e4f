"""Request stream: the requests that reach the caches of each SM, in issue order.

These are the inputs of the stages that keep state: sectors, lines or segments, as the device's
coalescer makes them. No cache is simulated; the caller can simulate one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from .device.device import Device
from .device.wiring import Stage, wire
from .histogram.stages import split_wires, with_sources
from .interface.model import Batch, Ints, Kind, Model, Step
from .interface.options import ReplayOptions
from .replay import LaunchReplay, check_code
from .rows.patterns import Reaches, Shapes
from .rows.sites import SPACES
from .schedule.schedule import read_barriers
from .stateful.ordered import Ordering, read_in_order

if TYPE_CHECKING:
    from ...traces.reader import LaunchTrace

NAME = "stream"


@dataclass(frozen=True, slots=True, eq=False)
class Requests:
    """Some n requests: per request its `sm`, its number among that SM's (`order`), `address` and
    `bytes`, its index in `kinds`, its `pc`, and its index in `arrays`; all (n,).
    """

    kinds: tuple[Kind, ...]
    arrays: tuple[str, ...]
    sm: Ints
    order: Ints
    address: Ints
    kind: Ints
    pc: Ints
    array: Ints


class Tap:
    """A model that keeps its input rows and counts nothing."""

    counters: ClassVar[tuple[str, ...]] = ("seen",)
    serves_units: ClassVar[bool] = True
    adds_up: ClassVar[bool] = True
    period: ClassVar[int] = 0

    def __init__(self) -> None:
        self.heard: list[Batch] = []

    def step(self, batch: Batch) -> Step:
        """Keep the rows, in their order."""
        if len(batch):
            self.heard.append(batch)
        return Step({"seen": np.zeros(batch.groups or len(batch), np.int64)})


def read_requests(
    trace: "LaunchTrace", device: Device, options: ReplayOptions
) -> Iterator[Requests]:
    """Yield the requests of a launch, in batches; none if the device cannot launch it."""
    tap, numbers = Tap(), np.zeros(device.chip.sms, np.int64)
    for ordering in replay_taps(trace, device, options, [(_stateful_inputs(device), tap)]):
        site, zone = ordering.group_owners()
        for batch in tap.heard:
            yield _requests(batch, site, zone, ordering.zones.names, numbers)
        tap.heard.clear()


def replay_taps(
    trace: "LaunchTrace",
    device: Device,
    options: ReplayOptions,
    ears: Sequence[tuple[Stage, Model]],
) -> Iterator[Ordering]:
    """Attach models to a launch, at stages beside the device's own; yield after each batch of rows.

    Only the stages in front of these models are simulated. A launch that the device cannot run
    yields nothing.
    """
    check_code(trace, device)
    shapes = Shapes(trace.pattern_store())
    probe_device = replace(device, stages=(*device.stages, *(stage for stage, _ in ears)))
    barriers = read_barriers(trace) if trace.launch.kept.control else None
    arguments = trace.launch, trace.instructions(), [probe_device], options, shapes, barriers
    replayed = LaunchReplay(*arguments)
    for track in replayed.running:
        models = {stage.name: model for stage, model in ears}
        model_wires = [wire for wire in track.lasting if wire.stage.name in models]
        wires = tuple(
            replace(w, build=partial(models.__getitem__, w.stage.name)) if w in model_wires else w
            for w in with_sources(model_wires, track.lasting)
        )
        rows = trace.count("accesses") + trace.count("texels")
        front = with_sources(wires, (*track.front, *wires))
        front = tuple(w for w in front if w in track.front)
        heard = replace(track, lasting=wires, front=front)
        ordering = Ordering(heard, replayed.sites, shapes, replayed.zones, rows)
        for _ in read_in_order(trace, [ordering], Reaches(shapes)):
            yield ordering


def _stateful_inputs(device: Device) -> Stage:
    """Return a stage with all inputs that the stateful stages have from stateless ones."""
    wires = wire(device.stages, device.file)
    _, lasting = split_wires(wires)
    names = {each.stage.name for each in lasting}
    sources = dict.fromkeys(s for each in lasting for s in each.stage.sources if s not in names)
    if not sources:
        raise CutraceError(f"{device.file}: no stage of this device keeps state: nothing is cached")
    return Stage(NAME, f"{__name__}:{Tap.__name__}", tuple(sources))


def _requests(
    batch: Batch, site: Ints, zone: Ints, arrays: tuple[str, ...], numbers: Ints
) -> Requests:
    """Return the requests of a batch, row by row; `numbers` (sms,) are the next numbers, and
    advance.
    """
    assert batch.unit is not None
    assert batch.group is not None
    rows, lanes = np.nonzero(batch.active)
    sm = batch.unit[rows].astype(np.int64)
    order = np.argsort(sm, kind="stable")
    counts = np.bincount(sm, minlength=len(numbers))
    number = np.empty(len(sm), np.int64)
    number[order] = np.arange(len(sm)) - np.repeat(np.cumsum(counts) - counts, counts)
    number += numbers[sm]
    numbers += counts
    group = batch.group[rows]
    return Requests(
        batch.kinds,
        arrays,
        sm,
        number,
        batch.addresses[rows, lanes],
        batch.kind[rows],
        site[group] // SPACES,
        zone[group],
    )
