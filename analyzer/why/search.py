"""The access to look at: the worst of some instructions on a device, or one by its identifier."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import lcm

import numpy as np

from ...errors import CutraceError
from ...lazy_dataclass import dataclass
from ...models.replay.device.device import Device
from ...models.replay.device.fallback import adapt_kinds
from ...models.replay.device.wiring import Wire, wire
from ...models.replay.rows.patterns import Shapes
from ...models.replay.rows.sites import Sites, read_sites
from ...models.replay.seam import Batch, Ints, Kind, Model
from ...traces.reader import LaunchTrace
from ...traces.table.unique import sorted_places, sorted_unique
from .distinct_rows import Columns, column, columns_of, distinct_rows, take

ASKED = 1 << 13
"""Rows that a model is asked about at a time."""
COSTS: Mapping[tuple[str, str], str] = {
    ("transactions", "ideal_transactions"): "transactions",
    ("passes", "ideal_passes"): "wavefronts",
}
"""What an access costs, and would at best, as whichever model serves counts it; and its unit."""
PLACE = ("block", "warp", "step", "part")
Server = tuple[Model, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Access:
    """One row of the trace's accesses, with the integers of the device that was asked.

    `addresses` has 32, None for a lane that does not take part. `unit` is what `cost` and `ideal`
    count: `transactions` or `wavefronts`; `model` made them.
    """

    launch: int
    block: int
    warp: int
    step: int
    part: int
    pc: int
    kind: Kind
    addresses: tuple[int | None, ...]
    cost: int
    ideal: int
    unit: str
    model: Model

    @property
    def identifier(self) -> str:
        """`launch.block.warp.step.part`: the same for ever, on every device."""
        return ".".join(map(str, (self.launch, self.block, self.warp, self.step, self.part)))

    @property
    def order(self) -> tuple[int, int]:
        """How bad it is: its excess, then its cost."""
        return self.cost - self.ideal, self.cost


class Searcher:
    """Reads the accesses of one launch for one device."""

    def __init__(self, trace: LaunchTrace, device: Device, dlcm: str) -> None:
        self.trace = trace
        self._sites: Sites = read_sites(trace.instructions(), dlcm)
        self._kinds = adapt_kinds(self._sites.kinds, device.capability, dlcm)
        self._shapes = Shapes(trace.pattern_store())
        self._servers = _servers(wire(device.stages, device.file))

    def worst(self, pcs: Iterable[int] | None) -> list[Access]:
        """The worst access of each instruction and space among `pcs` (None: all), worst first.

        Of rows that are equally bad the first of the trace is taken.
        """
        found: dict[tuple[int, str], Access] = {}
        wanted = None if pcs is None else np.fromiter(pcs, np.int64)
        period = lcm(*(max(model.period, 1) for model, _ in self._servers.values()))
        for columns in distinct_rows(self.trace, self._sites, period, wanted):
            by = self._sites.locate(columns["pc"], columns["space"])
            for access in self._cost(columns, by):
                key = access.pc, access.kind.space
                if key not in found or access.order > found[key].order:
                    found[key] = access
        return sorted(found.values(), key=lambda access: access.order, reverse=True)

    def find(self, place: Sequence[int]) -> Access | None:
        """The access at (block, warp, step, part), or None."""
        for batch in self.trace.access_batches():
            chosen = np.ones(batch.num_rows, np.bool_)
            for name, value in zip(PLACE, place, strict=True):
                chosen &= column(batch, name) == value
            for access in self._cost(take(columns_of(batch), np.flatnonzero(chosen))):
                return access
        return None

    def accessed(self) -> set[int]:
        """The pcs of all instructions that access memory."""
        found: set[int] = set()
        for batch in self.trace.access_batches():
            found |= set(sorted_unique(column(batch, "pc")).tolist())
        return found

    def _cost(self, columns: Columns, by: Ints | None = None) -> Iterator[Access]:
        """Ask about rows; with `by`, (n,), yield only the worst of each of its values."""
        kinds = self._sites.kind[self._sites.locate(columns["pc"], columns["space"])]
        for space, (model, names) in self._servers.items():
            mine = np.flatnonzero([self._kinds[kind].space == space for kind in kinds.tolist()])
            if not len(mine):
                continue
            cost, ideal = (np.zeros(len(mine), np.int64) for _ in names)
            for start in range(0, len(mine), ASKED):
                part = slice(start, start + ASKED)
                asked = self._rebuild(columns, kinds, mine[part])
                counts = model.step(asked).counts
                cost[part], ideal[part] = (counts[name] for name in names)
            order = np.lexsort((-mine, cost, cost - ideal))[::-1]
            if by is not None:
                order = order[sorted_places(by[mine][order])[1]]
            for row in order.tolist():
                yield self._access(columns, kinds, mine[row], cost[row], ideal[row])

    def _rebuild(self, columns: Columns, kinds: Ints, rows: Ints) -> Batch:
        return self._shapes.rebuild(
            self._kinds, kinds[rows], columns["base"][rows], columns["pattern"][rows]
        )

    def _access(self, columns: Columns, kinds: Ints, row: int, cost: int, ideal: int) -> Access:
        batch = self._rebuild(columns, kinds, np.array([row]))
        lanes = zip(batch.addresses[0].tolist(), batch.active[0].tolist(), strict=True)
        kind = self._kinds[int(kinds[row])]
        model, names = self._servers[kind.space]
        block, warp, step, part, pc = (int(columns[name][row]) for name in (*PLACE, "pc"))
        return Access(
            launch=self.trace.number,
            block=block,
            warp=warp,
            step=step,
            part=part,
            pc=pc,
            kind=kind,
            addresses=tuple(address if on else None for address, on in lanes),
            cost=int(cost),
            ideal=int(ideal),
            unit=COSTS[names],
            model=model,
        )


def read_identifier(text: str) -> tuple[int, ...]:
    """Read `launch.block.warp.step.part` as its five numbers."""
    words = text.split(".")
    if len(words) != 1 + len(PLACE) or not all(word.isdecimal() for word in words):
        raise CutraceError(
            f"access {text!r}: expected LAUNCH.{'.'.join(PLACE).upper()}, say 0.0.0.12.0"
        )
    return tuple(map(int, words))


def _servers(wires: Iterable[Wire]) -> dict[str, Server]:
    """For each state space the first stage that tells what an access costs."""
    found: dict[str, Server] = {}
    for candidate in wires:
        for names in COSTS:
            if set(names) <= set(candidate.counters):
                for space in candidate.direct:
                    found.setdefault(space, (candidate.build(), names))
    return found
