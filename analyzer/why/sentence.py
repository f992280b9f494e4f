"""Describe an access in a sentence, and give the reason for its cost if it is known."""

from collections.abc import Sequence
from itertools import pairwise

from ...base.dataclass import dataclass
from ...traces.schema import LANES
from .picture import Group
from .search import Access

Capability = tuple[int, int]
RUNS = (16, 8, 4, 2)
"""Candidate run lengths of a pattern in lanes, largest first."""
NO_FEWER = "as few as possible"


def describe_access(access: Access, groups: Sequence[Group], capability: Capability) -> str:
    """Return the cost of an access, and the ideal cost."""
    better = NO_FEWER if access.cost <= access.ideal else f"{access.ideal} needed"
    if access.kind.space == "const" and groups:
        return _say_constants(access, groups, better)
    if access.unit == "transactions" and groups:
        pieces = f"{_count(access.cost, *_noun(groups, capability))} ({stride(access.addresses)})"
        verb = "make" if capability < (2, 0) else "touch"
        return f"{_lanes(access, verb)} {pieces}: {better}"
    if access.unit == "wavefronts" and groups:
        return _say_banks(access, groups, better)
    return f"{_lanes(access, 'cost')} {tell_units(access.cost, access.unit)}: {better}"


def tell_units(number: int, unit: str) -> str:
    """Format a number of transactions or wavefronts.

    >>> tell_units(1, "wavefronts"), tell_units(2, "transactions")
    ('1 wavefront', '2 transactions')
    """
    return _count(number, unit.removesuffix("s"), unit)


def summarize(access: Access) -> str:
    """Return the cost of an access in one line."""
    what = f"{access.kind.space} {access.kind.access}"
    return f"{what}: {tell_units(access.cost, access.unit)}, {access.ideal} at best"


def give_reason(access: Access, groups: Sequence[Group], capability: Capability) -> str:
    """Return why an access costs more than the ideal; empty if it does not, or if unknown."""
    if access.cost <= access.ideal or access.unit != "transactions" or not groups:
        return ""
    old = give_old_reason(access, groups[0].last + 1) if capability < (1, 2) else ""
    return "; ".join(part for part in (old, _waste(access, groups)) if part)


def give_old_reason(access: Access, lanes: int) -> str:
    """Return why the first uncoalesced half-warp is not coalesced on 1.0 and 1.1."""
    width, segment = access.kind.width, 64 if access.kind.width == 4 else 128
    if width not in (4, 8, 16):
        return f"{width} bytes a lane are never coalesced, only 4, 8 or 16 are"
    for first in range(0, LANES, lanes):
        half = [(n, a) for n, a in enumerate(access.addresses[first : first + lanes])]
        bases = [(n, a - n * width) for n, a in half if a is not None]
        start = bases[0][1] if bases else 0
        for n, own in bases:
            if own != start:
                side = "after" if own > start else "before"
                return (
                    f"to be coalesced lane {first + n} must access word {n} of its half-warp's"
                    f" segment, but it accesses {abs(own - start)} bytes {side} that"
                )
        if start % segment:
            return f"a half-warp begins {start % segment} bytes past a multiple of {segment}"
    return ""


@dataclass(frozen=True, slots=True)
class Stride:
    """The stride of lanes: `step` bytes, 0 for one address; None without an order, or for one lane.

    The stride holds within runs of `run` lanes; 0 if it holds for all.
    """

    step: int | None
    run: int = 0

    def __str__(self) -> str:
        if self.step is None:
            return "one lane" if self.run else "no stride"
        text = f"stride {self.step} bytes" if self.step else "one address"
        return f"{text} in runs of {self.run} lanes" if self.run else text


NO_STRIDE, ONE_LANE = Stride(None), Stride(None, 1)


def stride(addresses: Sequence[int | None]) -> Stride:
    """Return the stride of the lanes' addresses.

    >>> print(stride([0, 8, 16, 24]), stride([4, 4, None, 4]), stride([0, 8, 4, 12]), sep=", ")
    stride 8 bytes, one address, stride 8 bytes in runs of 2 lanes
    """
    requests = [(lane, a) for lane, a in enumerate(addresses) if a is not None]
    if len(requests) == 1:
        return ONE_LANE
    step = _step(requests)
    if step is not None:
        return Stride(step)
    for run in RUNS:
        parts = [[p for p in requests if p[0] // run == n] for n in range(LANES // run)]
        steps = {_step(part) for part in parts if len(part) > 1}
        if len(steps) == 1 and None not in steps:
            return Stride(steps.pop(), run)
    return NO_STRIDE


def list_lanes(lanes: Sequence[int]) -> str:
    """Format lanes as ranges; four or more equal steps form one range.

    >>> list_lanes([0, 1, 2, 3, 8]), list_lanes([0, 16]), list_lanes([0, 2, 4, 6])
    ('0 to 3, 8', '0, 16', '0 to 6 by 2')
    """
    words: list[str] = []
    queue = list(lanes)
    while queue:
        length, step = _run(queue)
        if length < 4:
            words.append(str(queue.pop(0)))
            continue
        by = f" by {step}" if step != 1 else ""
        words.append(f"{queue[0]} to {queue[length - 1]}{by}")
        del queue[:length]
    return ", ".join(words)


def _run(lanes: Sequence[int]) -> tuple[int, int]:
    """Return how many of the first lanes have equal steps, and the step."""
    steps = [b - a for a, b in pairwise(lanes)]
    length = next((n for n, step in enumerate(steps) if step != steps[0]), len(steps))
    return length + 1, steps[0] if steps else 1


def _step(requests: Sequence[tuple[int, int]]) -> int | None:
    """Return the bytes between neighbouring lanes, if they are equal everywhere."""
    first, *tail = requests
    steps = {(a - first[1]) / (lane - first[0]) for lane, a in tail}
    step = steps.pop() if len(steps) == 1 else None
    return int(step) if step is not None and step.is_integer() else None


def _say_constants(access: Access, groups: Sequence[Group], better: str) -> str:
    words = len({piece.address for group in groups for piece in group.pieces})
    order_text = ", one after the other" if access.cost > len(groups) else ""
    wavefronts = tell_units(access.cost, access.unit)
    requests = f", in {len(groups)} half-warps" if len(groups) > 1 else ""
    read = f"{_lanes(access, 'read')} {_count(words, 'constant', 'constants')}"
    return f"{read}: {wavefronts}{order_text}{requests}; {better}"


def _say_banks(access: Access, groups: Sequence[Group], better: str) -> str:
    worst = max(groups, key=lambda group: len(group.crowded))
    wavefronts = tell_units(access.cost, access.unit)
    if len(groups) > 1:
        lanes = worst.last + 1 - worst.first
        wide = max(group.word for group in groups) > 0
        one_word = ", each word by itself" if wide else ""
        wavefronts += f" in {len(groups)} requests of {lanes} lanes{one_word}"
    words = max(len(_shared(group)) for group in groups)
    if len(worst.crowded) < 2 and access.cost > access.ideal and words > 1:
        return f"lanes share {words} words, and a wavefront broadcasts one: {wavefronts}, {better}"
    if len(worst.crowded) < 2:
        return f"no bank conflict: {wavefronts}, {better}"
    lanes_there = sorted({piece.lanes[0] for piece in worst.crowded})
    crowd = f"lanes {list_lanes(lanes_there)} conflict"
    if len(lanes_there) == 1:
        crowd = f"lane {lanes_there[0]} takes {len(worst.crowded)} words"
    return f"{crowd} in bank {worst.crowded[0].bank}: {wavefronts}, {better}"


def _shared(group: Group) -> list[int]:
    """Return the lane count of each word that several lanes take."""
    return [len(piece.lanes) for piece in group.pieces if len(piece.lanes) > 1]


def _waste(access: Access, groups: Sequence[Group]) -> str:
    """Return how many of the moved bytes are used."""
    pieces = [piece for group in groups for piece in group.pieces]
    moved = sum(piece.size for piece in pieces)
    places = {a + n for a in access.addresses if a is not None for n in range(access.kind.width)}
    share = f"{100 * len(places) / moved:.1f}".removesuffix(".0")
    return f"of {moved} bytes moved {len(places)} are used, {share} %"


def _noun(groups: Sequence[Group], capability: Capability) -> tuple[str, str]:
    """Return the name of a device's transactions, singular and plural."""
    sizes = sorted({piece.size for group in groups for piece in group.pieces})
    bytes_ = " of " + " and ".join(map(str, sizes)) + " bytes"
    if capability < (2, 0):
        return f"transaction{bytes_}", f"transactions{bytes_}"
    return ("sector", "sectors") if sizes == [32] else (f"line{bytes_}", f"lines{bytes_}")


def _lanes(access: Access, verb: str) -> str:
    """Return `32 lanes touch`, `1 lane touches`."""
    count = sum(address is not None for address in access.addresses)
    ending = "es" if verb.endswith("ch") else "s"
    return f"1 lane {verb}{ending}" if count == 1 else f"{count} lanes {verb}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
