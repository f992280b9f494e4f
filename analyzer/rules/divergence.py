"""Divergent branches between neighbouring lanes of a warp, as on even and odd thread numbers.

Reported: a pattern that repeats every few lanes, and a split that is the same in most warps with
work on both sides; renumbered threads would then diverge by whole warps. Not reported: the edge of
the data, the edge of a block's rows, a leader that acts for its group while the others wait, and
lanes that start bulk copies.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import takewhile

from ...traces.schema import LANES
from ..counting.paths import find_splits, path_times
from ..evidence.evidence import Evidence, Finding
from ..why.sentence import list_lanes

PERIODS = (2, 4, 8, 16)
FULL = (1 << 32) - 1
OFTEN, MOST = 0.25, 0.5
"""Least part of a branch's runs for a periodic pattern, and for any other lanes."""
BUSY = 6
"""Fewest instructions of each side, if its lanes follow no pattern."""
PAIR, TIMES = 2, 4
"""A pair of lanes is half a warp apart by chance if data choose them, but not this many times."""
FEW, HALF = 4, 0.5
"""Most lanes on one side, and least part of all steps, that they take while the others wait."""
GROUP, ONE_SIDED = 4, 0.3
"""Lanes of the smallest group with a leader, and most of the steps that are the leader's."""


def find(evidence: Evidence) -> Iterator[Finding]:
    """Check the branches that split whole warps by the number of the thread."""
    splits = _splits(evidence)
    for row in evidence.sums.filter(evidence.sums["divergent_branches"] > 0).rows(named=True):
        block = evidence.trace.instructions()["block"][row["pc"]].as_py()
        mask_counts = splits.get(block, Counter())
        split = _periodic(evidence, block, mask_counts, row["branches"]) or _fixed(
            evidence, block, mask_counts, row["branches"]
        )
        if split:
            branch_mask, pattern = split
            on = [lane for lane in range(LANES) if branch_mask >> lane & 1]
            yield Finding(
                f"{row['divergent_branches']:,} of {row['branches']:,} branches split their warp,"
                f" {pattern}",
                f"lanes {list_lanes(on)} of a full warp take the branch, the others do not",
                "number the work so that the threads of a warp go one way: whole warps for each"
                " case, not every other thread",
                int(row["pc"]),
            )


def _periodic(
    evidence: Evidence, block: int, mask_counts: Counter[int], branches: int
) -> tuple[int, str] | None:
    """Return the mask and the words for a pattern that repeats every few lanes."""
    width = evidence.profile.launch.block[0]
    periodic = {
        branch_mask: n for branch_mask, n in mask_counts.items() if period(branch_mask, width)
    }
    times = sum(periodic.values())
    only = next(iter(periodic)) if len(periodic) == 1 else None
    if only is not None and _leads(only, width) and _is_waiting_side(evidence, block, only):
        return None
    if 2 * times < mask_counts.total() or times < OFTEN * branches:
        return None
    if times < TIMES and _is_pair(periodic):
        return None
    branch_mask = max(periodic, key=lambda mask: (periodic[mask], mask))
    return branch_mask, f"by a pattern of {period(branch_mask, width)} lanes"


def _fixed(
    evidence: Evidence, block: int, mask_counts: Counter[int], branches: int
) -> tuple[int, str] | None:
    """Return the mask and the words for one split of most warps: two busy sides, or a few lanes."""
    branch_mask, times = max(mask_counts.items(), key=lambda each: each[1], default=(0, 0))
    if times < TIMES or times < MOST * branches:
        return None
    if period(branch_mask, 0) and not period(branch_mask, evidence.profile.launch.block[0]):
        return None
    *sides, steps = _measure_sides(evidence, block, branch_mask)
    if min(sides) >= BUSY * times:
        return branch_mask, "each time the same lanes"
    few = (branch_mask if sides[0] else FULL & ~branch_mask).bit_count() <= FEW
    if not few or sum(sides) <= HALF * steps or _starts_copies(evidence, block, branch_mask):
        return None
    return branch_mask, "each time for the same few lanes"


def period(mask: int, width: int) -> int:
    """Return the period of a mask in lanes; 0 if it has none, or is the edge of a block's rows.

    >>> period(0x55555555, 128), period(0xff, 128), period(0x0fff0fff, 16), period(0x0fff0fff, 128)
    (2, 0, 0, 16)
    """
    for lanes in PERIODS:
        # A mask has period p if it equals itself rotated by p lanes: 0101... has period 2.
        if ((mask >> lanes) | (mask << (32 - lanes))) & FULL == mask:
            row = mask & ((1 << lanes) - 1)
            is_edge = _is_run(row) or _is_run(~row & ((1 << lanes) - 1))
            return 0 if lanes == width and is_edge else lanes
    return 0


def _is_run(row: int) -> bool:
    """Return whether the active lanes of a row are contiguous, so the others are its edge."""
    # Adding the lowest set bit carries through a contiguous run and leaves one bit or none.
    above = row + (row & -row)
    return above & (above - 1) == 0


def _is_pair(masks: Iterable[int]) -> bool:
    """Return whether each mask takes exactly two lanes, or all but two."""
    return all(mask.bit_count() in (PAIR, LANES - PAIR) for mask in masks)


def _leads(mask: int, width: int) -> bool:
    """Return whether a mask is one lane of each group, or all but one."""
    lanes = period(mask, width)
    leader_count = (mask & ((1 << lanes) - 1)).bit_count()
    return lanes >= GROUP and leader_count in (1, lanes - 1)


def _is_waiting_side(evidence: Evidence, block: int, branch_mask: int) -> bool:
    """Return whether only one side works before reconvergence, and little."""
    one, other, all_steps = _measure_sides(evidence, block, branch_mask)
    return not (one and other) and one + other <= ONE_SIDED * all_steps


def _measure_sides(evidence: Evidence, block: int, branch_mask: int) -> tuple[int, int, int]:
    """Return the steps of the taken side and of the other until reconvergence, and all steps."""
    lengths = Counter(evidence.trace.instructions()["block"].to_pylist())
    sides, steps = [0, 0], 0
    for entries, times in _entries(evidence):
        steps += times * sum(lengths[number] * repeat for number, _, _, repeat in entries)
        for number, mask, _, repeat in _parts(entries, block, branch_mask):
            sides[0 if mask & branch_mask else 1] += times * lengths[number] * repeat
    return sides[0], sides[1], steps


def _starts_copies(evidence: Evidence, block: int, branch_mask: int) -> bool:
    """Return whether a side of a branch starts bulk copies, which is one lane's work."""
    table = evidence.trace.instructions()
    places = zip(table["block"].to_pylist(), table["access"].to_pylist(), strict=True)
    copying = {number for number, access in places if access == "bulk"}
    return bool(copying) and any(
        number in copying
        for entries, _ in _entries(evidence)
        for number, *_ in _parts(entries, block, branch_mask)
    )


Entry = tuple[int, int, int, int]
"""Basic block, active lanes, those that did not take its branch, and times in a row."""


def _entries(evidence: Evidence) -> Iterator[tuple[list[Entry], int]]:
    """Yield the entries of each path, and how often warps ran it."""
    paths = evidence.trace.paths().to_pylist()
    for path, times in zip(paths, path_times(evidence.trace).tolist(), strict=True):
        columns = (path[name] for name in ("blocks", "active", "not_taken", "repeat"))
        yield [*zip(*columns, strict=True)], times


def _parts(entries: list[Entry], block: int, branch_mask: int) -> Iterator[Entry]:
    """Yield the entries of both sides of a branch, whenever it splits a full warp so."""
    for place, entry in enumerate(entries):
        if entry[:3] == (block, FULL, FULL & ~branch_mask):
            # Entries with a partial mask follow until the warp reconverges.
            # Taken 0011, for example: entry 0011 counts for side 0, entry 1100 for side 1.
            yield from takewhile(_is_part, entries[place + 1 :])


def _is_part(entry: Entry) -> bool:
    return entry[1] != FULL


def _splits(evidence: Evidence) -> dict[int, Counter[int]]:
    """Count the taken masks of full warps that split, by basic block."""
    return {
        block: Counter(
            {branch_mask: n for (active, branch_mask), n in split_counts.items() if active == FULL}
        )
        for block, split_counts in find_splits(evidence.trace).items()
    }
