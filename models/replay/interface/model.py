"""The seam between replay and the models: what a model sees, and what it answers.

A model is one file of `models/` (or a user's own, as `device/model_class.py` finds it) with one
verb, `step`. It emits integers, one a row a counter; replay attributes them to launch, pc and
array. The keys of its stage in the device's TOML are the arguments of its constructor.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ACCESSES: Mapping[str, tuple[str, ...]] = {
    "global": ("load", "store", "atomic", "reduction"),
    "shared": ("load", "store", "atomic", "reduction"),
    "local": ("load", "store"),
    "const": ("load",),
    "texture": ("load",),
    "surface": ("load", "store", "reduction"),
}
"""What can be done in each state space; a raw counter is `<space>_<access>_<what>`."""


ROW_SHIFT, SLICE_SHIFT = 32, 49
"""Where a texel's row and slice stand in its place: `x bytes | y << 32 | z << 49`."""


@dataclass(frozen=True, slots=True)
class Image:
    """Where a texture lies: its first byte and, of each row, how many bytes it has.

    `pitch` is the distance of rows that lie one after another over an array; 0 if the device
    arranges the texels, `rows` of them in each slice, as it likes. `taps` are the texels that a
    sample reads; `is_fetch` says that it names a texel by number (tex1Dfetch).
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
    """What an instruction does to memory: the same rules serve all rows of one kind.

    `cache` is the operator in effect (`ca`, `cg`, `nc`, ...; a global load without one has that
    of `dlcm`), or empty. `width` is in bytes a lane; for a texture it is a texel's, and `image`
    says where the texels lie. `collision` is how an atomic serves lanes that share an address, a
    key of COLLISIONS, or empty. `filled` are the bytes of a transaction that its lanes read or
    write, where that is less than all; else 0. `lane` is how many of them each lane does, where
    `width` is a transaction's.
    """

    space: str
    access: str
    cache: str
    width: int
    image: Image | None = None
    collision: str = ""
    filled: int = 0
    lane: int = 0

    @property
    def prefix(self) -> str:
        """How the raw counters of this kind begin: `global_load_`."""
        return f"{self.space}_{self.access}_"


@dataclass(frozen=True, slots=True, eq=False)
class Touched:
    """What n rows touch: the number of their active `lanes` (n,), their distinct `bytes` (n,), and
    `lines` (n, 4) of 128 bytes, of which they touch 1, 2, 3 or 4 sectors of 32.
    """

    lanes: Ints
    bytes: Ints
    lines: Ints

    def take(self, rows: Ints | slice) -> "Touched":
        """Return what the given rows touch."""
        return Touched(self.lanes[rows], self.bytes[rows], self.lines[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some n rows, in the order of their warps: warp accesses, or requests that a stage passed on.

    A warp's access has 32 lanes, a transaction 1; its width is its size. Texture samples have a
    lane for each tap, those of a thread together. A model with a period sees addresses that are
    right modulo that period only.
    """

    kinds: tuple[Kind, ...]
    kind: Ints
    """(n,) the index of each row's kind in `kinds`."""
    addresses: Ints
    """(n, lanes) int64, bytes in the kind's space, valid where `active` is set; of textures the
    place of a texel, `x bytes | y << ROW_SHIFT | z << SLICE_SHIFT`."""
    active: Bools
    """(n, lanes) the lanes that take part."""
    row: Ints
    """(n,) the row of the trace that a row belongs to; a model that passes rows on copies it."""
    passes_on: bool = False
    """Whether a later stage needs `Step.out`."""
    unit: Ints | None = None
    """(n,) the SM or cluster of each row, for a model that serves all units."""
    ordered: Ints | None = None
    """(n, lanes) the active addresses in rising order, `lanes.NONE` behind, sorted once for all
    stages; `lanes.ordered_lanes` sorts where it is None."""
    group: Ints | None = None
    """(n,) the sum, of `groups`, that a row's counts belong to, for a model that adds up."""
    groups: int = 0
    touched: Touched | None = None
    """The bytes, sectors and lines of each row, if counted once for all stages."""

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
        """Return the given rows as a batch of their own."""
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
    """A model's answer: for each counter (n,) integers, and what the next stage sees.

    Of a batch with groups, the counts are (groups,) sums.
    """

    counts: Mapping[str, Ints]
    out: Batch | None = None


class Model(Protocol):
    """One hardware unit. It may keep state from batch to batch; batches have any size.

    `period` is the number of bytes at which its answer repeats with the base address: replay then
    calls it once for each distinct (kind, pattern, base modulo period). 0: it keeps state, and
    sees every row; there is one for each unit of its stage's scope, unless it has an attribute
    `serves_units` that is true: then one sees the rows of all, and which is whose. One with an
    attribute `adds_up` that is true is told which counts to add up, where only sums are wanted.
    """

    @property
    def counters(self) -> tuple[str, ...]:
        """Names of the counters that `step` gives, without `<space>_<access>_`."""

    @property
    def period(self) -> int:
        """Bytes, or 0."""

    def step(self, batch: Batch) -> Step:
        """Serve the rows in order."""
