"""The interface between replay and the models: the input and the output of a model.

A model is one file of `models/` (or a user's own, as `device/wiring.py` finds it) with one method,
`step`. It returns integers, one per row and counter; replay attributes them to launch, pc and
array. The keys of its stage in the device's TOML are the arguments of its constructor.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ....base.errors import CutraceError, nearest

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ACCESSES: Mapping[str, tuple[str, ...]] = {
    "global": ("load", "store", "atomic", "reduction"),
    "shared": ("load", "store", "atomic", "reduction"),
    "local": ("load", "store"),
    "const": ("load",),
    "texture": ("load",),
    "surface": ("load", "store", "reduction"),
    "bulk": ("load", "store", "reduction"),
}
"""The accesses of each state space; a raw counter is `<space>_<access>_<counter>`.

`bulk` is the global memory that bulk copies move: its requests are pieces of a copy."""


MULTICAST = "multicast"
"""The cache operator of bulk loads for several blocks of a cluster."""

ROW_SHIFT, SLICE_SHIFT = 32, 49
"""The first bits of a texel's row and slice in its place: `x bytes | y << 32 | z << 49`."""


@dataclass(frozen=True, slots=True)
class Image:
    """The layout of a texture: its first byte, and the bytes of each row.

    `pitch` is the distance of consecutive rows over an array; 0 if the device chooses the layout of
    the texels, with `rows` of them per slice. `taps` is the number of texels that a sample reads;
    `is_fetch` marks access by texel number (tex1Dfetch).
    """

    base: int
    row_bytes: int
    rows: int
    pitch: int = 0
    taps: int = 1
    is_fetch: bool = False


COLLISIONS: Mapping[str, str] = {
    "serial": "one lane after another",
    "elected": "the assembler combines the lanes' values, and lets one lane do it for all",
    "counted": "adds one: the chip counts the lanes",
    "compared": "one lane after another, each comparing and then swapping",
    "spun": "a loop of the assembler, of which one lane of each bank is done in a turn",
    "swapped": "a loop of compare and swap, of which one lane of each word is done in a turn",
    "turn": "one turn of a loop: a lane of each bank, the others try again",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of a memory instruction: the same rules serve all rows of one kind.

    `cache` is the operator in effect (`ca`, `cg`, `nc`, ...; a global load without one has that of
    `dlcm`), or empty. `width` is in bytes per lane; for a texture it is a texel's, and `image` is
    the layout of the texels. `collision` is how an atomic serves lanes that share an address, a key
    of COLLISIONS, or empty. `filled` is the number of bytes of a transaction that its lanes read or
    write, if fewer than all; else 0. `lane` is how many of them each lane reads or writes, where
    `width` is a transaction's. `merged` marks a store that an earlier one takes along on its way.
    """

    space: str
    access: str
    cache: str
    width: int
    image: Image | None = None
    collision: str = ""
    filled: int = 0
    lane: int = 0
    merged: bool = False

    @property
    def prefix(self) -> str:
        """The prefix of the raw counters of this kind: `global_load_`."""
        return f"{self.space}_{self.access}_"


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """The footprint of n rows: the number of their active `lanes` (n,), of their distinct `bytes`
    (n,), and of their `lines` (n, 4) of 128 bytes with 1, 2, 3 or 4 touched sectors of 32.
    """

    lanes: Ints
    bytes: Ints
    lines: Ints

    def take(self, rows: Ints | slice) -> "Touched":
        """Return the footprint of the given rows."""
        return Touched(self.lanes[rows], self.bytes[rows], self.lines[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some n rows, in issue order: warp accesses, or requests that a stage passed on.

    A warp access has 32 lanes. A transaction has 1 lane; its width is its size. A texture sample
    has a lane per tap, those of a thread adjacent. A model with a period sees addresses that are
    exact modulo that period only.
    """

    kinds: tuple[Kind, ...]
    kind: Ints
    """(n,) the index of each row's kind in `kinds`."""
    addresses: Ints
    """(n, lanes) int64, bytes in the kind's space, valid where `active` is set; for textures the
    place of a texel, `x bytes | y << ROW_SHIFT | z << SLICE_SHIFT`.
    """
    active: Bools
    """(n, lanes) the active lanes."""
    row: Ints
    """(n,) the row of the trace to which a row belongs; a model that passes rows on copies it."""
    passes_on: bool = False
    """Whether a later stage needs `Step.out`."""
    unit: Ints | None = None
    """(n,) the SM or cluster of each row, for a model that serves all units."""
    ordered: Ints | None = None
    """(n, lanes) the active addresses in rising order, then `lanes.NONE`, sorted once for all
    stages; `lanes.ordered_lanes` sorts where it is None.
    """
    group: Ints | None = None
    """(n,) the sum, of `groups`, to which a row's counts belong, for a model that adds up."""
    groups: int = 0
    touched: Touched | None = None
    """The bytes, sectors and lines of each row, if counted once for all stages."""
    turn: Ints | None = None
    """(n,) the turn in which an SM issues each row, packed (`stateful/cache_sim.py`), for a model
    that merges stores.
    """

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.kind)

    def parts(self) -> Iterator[tuple[Kind, Ints]]:
        """Yield each kind that occurs, with its rows in order."""
        if len(self.kinds) == 1 and len(self.kind):
            yield self.kinds[0], np.arange(len(self.kind))
            return
        for number in np.flatnonzero(np.bincount(self.kind)).tolist():
            yield self.kinds[number], np.flatnonzero(self.kind == number)

    def take(self, rows: Ints | slice) -> "Batch":
        """Return the given rows as a new batch."""
        return Batch(
            self.kinds,
            self.kind[rows],
            self.addresses[rows],
            self.active[rows],
            self.row[rows],
            self.passes_on,
            None if self.unit is None else self.unit[rows],
            None if self.ordered is None else self.ordered[rows],
            None if self.group is None else self.group[rows],
            self.groups,
            None if self.touched is None else self.touched.take(rows),
            None if self.turn is None else self.turn[rows],
        )


def one_lane(kinds: tuple[Kind, ...], kind: Ints, address: Ints, row: Ints) -> Batch:
    """Return rows of one lane each, as transactions are passed on; all (n,)."""
    return Batch(kinds, kind, address[:, None], np.ones((len(row), 1), np.bool_), row)


def join_batches(batches: Sequence[Batch]) -> Batch:
    """Join batches with equally many lanes, in the order of the rows that they belong to.

    Empty ones may have any number of lanes.
    """
    batches = [batch for batch in batches if len(batch)] or batches[:1]
    if len(batches) == 1 and (batches[0].row[1:] >= batches[0].row[:-1]).all():
        return batches[0]
    kinds = tuple(dict.fromkeys(kind for batch in batches for kind in batch.kinds))
    place = {kind: number for number, kind in enumerate(kinds)}
    renumbered = [
        np.array([place[kind] for kind in batch.kinds], np.int64)[batch.kind] for batch in batches
    ]
    row = np.concatenate([batch.row for batch in batches])
    order = np.argsort(row, kind="stable")
    return Batch(
        kinds,
        np.concatenate(renumbered)[order],
        np.concatenate([batch.addresses for batch in batches])[order],
        np.concatenate([batch.active for batch in batches])[order],
        row[order],
    )


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A model's output: (n,) integers per counter, and the requests to the next stage.

    For a batch with groups, the counts are (groups,) sums.
    """

    counts: Mapping[str, Ints]
    out: Batch | None = None


class Model(Protocol):
    """One hardware unit. It may keep state from batch to batch; batches have any size.

    `period` is the number of bytes at which its counts repeat with the base address: replay then
    calls it once per distinct (kind, pattern, base modulo period). A period of 0 means that the
    model keeps state and sees every row. Then it has one instance per unit of its stage's scope,
    unless it serves all units. It may have the members of `FullModel`, too.
    """

    @property
    def counters(self) -> tuple[str, ...]:
        """The names of the counters of `step`, without `<space>_<access>_`."""

    @property
    def period(self) -> int:
        """The period in bytes, or 0."""

    def step(self, batch: Batch) -> Step:
        """Serve the rows in order."""


class FullModel(Model, Protocol):
    """A model with all optional members."""

    @property
    def serves_units(self) -> bool:
        """Whether one instance serves all units: `Batch.unit` names the unit of each row."""

    @property
    def adds_up(self) -> bool:
        """Whether it sums its counts where only sums are wanted: `Batch.group` names the sums."""

    def step_repeated(self, rows: Any) -> Step | None:
        """Serve `Repeated` rows (histogram/histogram.py); None where `step` must serve them."""


@dataclass(frozen=True, slots=True)
class Members:
    """What replay has to know of a model before its first step, read once per stage."""

    counters: tuple[str, ...]
    period: int
    serves_units: bool = False
    adds_up: bool = False
    has_step_repeated: bool = False


class MemberError(CutraceError):
    """A model lacks a required `member`, or has one of a wrong type.

    The message follows the model's name.
    """

    def __init__(self, message: str, member: str) -> None:
        super().__init__(message)
        self.member = member


def read_members(model: object) -> Members:
    """Read and check the members of a model. Raises `MemberError`."""
    values = {name: getattr(model, name) for name in _CHECKS if hasattr(model, name)}
    for name in ("counters", "period", "step"):
        if name not in values:
            public = [each for each in dir(model) if not each.startswith("_")]
            raise MemberError(f" has no `{name}`{nearest(name, public)}", name)
    for name, value in values.items():
        is_valid, expected = _CHECKS[name]
        if not is_valid(value):
            raise MemberError(f": {name} = {value!r}; expected {expected}", name)
    has_repeated = values.pop("step_repeated", None) is not None
    del values["step"]
    return Members(tuple(values.pop("counters")), **values, has_step_repeated=has_repeated)


def _are_names(value: object) -> bool:
    names = value if isinstance(value, tuple | list) else ("",)
    return len({*names}) == len(names) and all(str(name).isidentifier() for name in names)


def _is_period(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "counters": (_are_names, "names"),
    "period": (_is_period, "bytes, or 0"),
    "step": (callable, "a method that takes a Batch"),
    "serves_units": (_is_bool, "True or False"),
    "adds_up": (_is_bool, "True or False"),
    "step_repeated": (callable, "a method"),
}
"""All members of a model, and what each must be."""
