"""The picture of one access on a device: transactions, words or constants, with their lanes.

Pieces come from the device's own model, which counts one request at a time: the transactions of the
coalescer, the words of each bank, the distinct constants. A user's own model returns only integers,
so its picture has no pieces.
"""

from collections.abc import Iterator, Sequence

from ...base.dataclass import dataclass
from ...models.banks import WORD, Banks
from ...models.coalescer import Coalescer
from ...models.constant import Constant
from ...models.replay.rows.transactions import LINE
from ...traces.schema import LANES, Array
from .search import Access

COMBINED = ("elected", "counted")
"""Collision kinds, keys of `seam.COLLISIONS`, whose lanes with one address are served together."""
CELL = 4
"""Bytes of a cell, the unit in which a transaction is drawn."""
Lanes = tuple[int, ...]
Addresses = Sequence[int | None]


@dataclass(frozen=True, slots=True)
class Piece:
    """A transaction, a word of a bank, or a constant: `address` in its space, and its `lanes`.

    `requested` marks each CELL of a transaction's `size` bytes that a lane requests. `bank` is the
    bank of a word of shared memory.
    """

    address: int
    size: int
    lanes: Lanes
    requested: tuple[bool, ...] = ()
    bank: int | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Lanes that are served together, first to last, and their pieces in order.

    `word` is the number of the word within the lanes' width, if each word is served separately.
    """

    first: int
    last: int
    pieces: tuple[Piece, ...]
    word: int = 0

    @property
    def crowded(self) -> tuple[Piece, ...]:
        """The pieces in the fullest bank."""
        banks: dict[int | None, list[Piece]] = {}
        for piece in self.pieces:
            banks.setdefault(piece.bank, []).append(piece)
        most = max((len(pieces) for pieces in banks.values()), default=0)
        return next((tuple(pieces) for pieces in banks.values() if len(pieces) == most), ())


def draw_groups(access: Access) -> tuple[Group, ...]:
    """Return the groups of an access with their pieces; empty if the model reports none."""
    model = access.model
    if isinstance(model, Coalescer):
        return tuple(_transactions(access, model))
    if isinstance(model, Banks):
        return tuple(_words(access, model))
    if isinstance(model, Constant):
        return tuple(_constants(access, model.request_lanes))
    return ()


def name_address(address: int, space: str, arrays: Sequence[Array]) -> str:
    """Return `out+128`, bytes from the start of the array at the address; else the address."""
    space = "global" if space == "bulk" else space
    for array in arrays:
        if array.space.name.lower() == space and 0 <= address - array.offset < array.bytes:
            return f"{array.name}+{address - array.offset}"
    return f"{address:#x}" if space == "global" else f"{space}+{address}"


def size_class(width: int) -> int:
    """Return 0, 1 or 2 for up to 4, 8 or 16 bytes per lane: the index of request lanes."""
    return (width > 4) + (width > 8)


def _cut(addresses: Addresses, lanes: int) -> Iterator[tuple[int, list[int | None]]]:
    """Yield the lanes in groups of a size, each with its first lane; skip groups without any."""
    for first in range(0, LANES, lanes):
        inside = range(first, first + lanes)
        group = [a if lane in inside else None for lane, a in enumerate(addresses)]
        if any(address is not None for address in group):
            yield first, group


def _transactions(access: Access, model: Coalescer) -> Iterator[Group]:
    """Yield the transactions of each group of lanes that share them."""
    width = access.kind.width
    lanes = model.lanes_of(access.kind, width)
    for first, group in _cut(access.addresses, lanes):
        placed = _interleave(group) if access.kind.space == "local" else group
        out = model.step(access.batch(group)).out
        assert out is not None  # `passes_on` makes the model return them
        sizes = [out.kinds[kind].width for kind in out.kind.tolist()]
        transactions = sorted(zip(out.addresses[:, 0].tolist(), sizes, strict=True))
        pieces = tuple(_share_out(transactions, placed, width))
        yield Group(first, first + lanes - 1, pieces)


def _interleave(addresses: Addresses) -> list[int | None]:
    """Return the addresses of local memory as laid out: word i of all lanes side by side."""
    return [
        None if a is None else a // WORD * LINE + WORD * lane + a % WORD
        for lane, a in enumerate(addresses)
    ]


def _share_out(
    transactions: Sequence[tuple[int, int]], addresses: Addresses, width: int
) -> Iterator[Piece]:
    """Assign lanes to transactions; equal ones divide their lanes, equal addresses apart."""
    for number, (start, size) in enumerate(transactions):
        lanes = [
            lane
            for lane, a in enumerate(addresses)
            if a is not None and a < start + size and start < a + width
        ]
        copies = transactions.count((start, size))
        if copies > 1:
            round_index = number - transactions.index((start, size))
            rounds = range(len(lanes)) if len(lanes) == copies else _ranks(lanes, addresses)
            lanes = [lane for lane, own in zip(lanes, rounds, strict=True) if own == round_index]
        spans = [range(a, a + width) for lane in lanes if (a := addresses[lane]) is not None]
        cells = range(start, start + size, CELL)
        coverage = tuple(any(r.start < c + CELL and c < r.stop for r in spans) for c in cells)
        yield Piece(start, size, tuple(lanes), coverage)


def _ranks(lanes: Sequence[int], addresses: Addresses) -> list[int]:
    """Return for each lane the number of earlier lanes with its address."""
    before = [[addresses[other] for other in lanes[:n]] for n in range(len(lanes))]
    return [prefix.count(addresses[lane]) for lane, prefix in zip(lanes, before, strict=True)]


def _words(access: Access, model: Banks) -> Iterator[Group]:
    """Yield the words of each request by bank; on 1.x each word of a wide access separately."""
    broadcast = model.rule == "broadcast"
    words = range(0, max(access.kind.width, WORD), WORD)
    lanes = model.request_lanes[0 if broadcast else size_class(access.kind.width)]
    if not broadcast and len([*_cut(access.addresses, lanes)]) > _requests(access):
        lanes *= 2  # the model serves pairs of lanes with one address together
    for first, group in _cut(access.addresses, lanes):
        for number, offsets in enumerate([[o] for o in words] if broadcast else [words]):
            pieces = tuple(_by_bank(access, model, group, offsets))
            yield Group(first, first + lanes - 1, pieces, number)


def _requests(access: Access) -> int:
    """Return the number of requests that the model makes of the access."""
    counts = access.model.step(access.batch(access.addresses)).counts
    return int(counts["split_requests"][0])


def _by_bank(
    access: Access, model: Banks, group: Addresses, offsets: Sequence[int]
) -> Iterator[Piece]:
    """Yield the rows of each bank that lanes access, or each lane's word where atomics collide."""
    is_atomic = access.kind.access in ("atomic", "reduction")
    is_exclusive = is_atomic and access.kind.collision not in COMBINED
    line = model.bank_bytes if model.rule == "broadcast" else model.row_bytes
    places: dict[tuple[int, int, int], dict[int, int]] = {}
    # Lanes that request the same row of a bank share a piece (broadcast). Exclusive atomics put the
    # lane into the key, so each lane gets its own piece.
    for lane, address in enumerate(group):
        for offset in offsets if address is not None else ():
            place = (address or 0) + offset
            bank = place // model.bank_bytes % model.banks
            key = bank, place // line, lane if is_exclusive else 0
            places.setdefault(key, {}).setdefault(lane, place)
    for (bank, _, _), asking in sorted(places.items()):
        lowest = min(asking.values()) // WORD * WORD
        yield Piece(lowest, WORD, tuple(asking), bank=bank)


def _constants(access: Access, lanes: int) -> Iterator[Group]:
    """Yield the distinct constants of each request."""
    for first, group in _cut(access.addresses, lanes):
        distinct = sorted({a for a in group if a is not None})
        pieces = tuple(
            Piece(a, access.kind.width, tuple(lane for lane, b in enumerate(group) if a == b))
            for a in distinct
        )
        yield Group(first, first + lanes - 1, pieces)
