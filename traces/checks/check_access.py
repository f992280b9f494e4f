"""Checks of memory accesses, of their patterns, and of texture samples, row by row."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ..check_launch import FAR
from ..schema import Space
from .recorded import Finding, Flags, Ints, Recorded, lanes_of, report

_CHUNK = 1 << 16


def check_patterns(recorded: Recorded) -> Iterator[Finding]:
    """A pattern has an active lane; the lowest one's offset, and inactive lanes' offsets, are 0."""
    active, offsets = recorded.patterns
    for start in range(0, len(active), _CHUNK):
        mask, off = active[start : start + _CHUNK], offsets[start : start + _CHUNK]
        on = lanes_of(mask)
        lowest = off[np.arange(len(off)), on.argmax(axis=1)]
        moved = np.count_nonzero(off * ~on, axis=1)
        yield from report(mask == 0, "no lane is active", start)
        yield from report(moved > 0, "an inactive lane has an offset", start)
        yield from report(lowest != 0, "the base is not the lowest active lane's", start)


def check_spaces(recorded: Recorded) -> Iterator[Finding]:
    """Spaces are of the enumeration, and those that the instruction may reach."""
    allowed = recorded.of_instructions("reads") | recorded.of_instructions("writes")
    for first, rows in recorded.accesses():
        known = (rows["space"] >= min(Space)) & (rows["space"] <= max(Space))
        yield from report(~known, "an unknown space", first)
        named = allowed[rows["pc"]] >> np.where(known, rows["space"], 0) & 1
        yield from report(
            known & (named == 0), "not in a space that its instruction reaches", first
        )


def check_widths(recorded: Recorded) -> Iterator[Finding]:
    """Only instructions that move bytes access memory."""
    width = recorded.of_instructions("bytes")
    for first, rows in recorded.accesses():
        yield from report(width[rows["pc"]] == 0, "its instruction moves no bytes", first)


def check_access_lanes(recorded: Recorded) -> Iterator[Finding]:
    """Only lanes that the block's threads fill access memory."""
    active = recorded.patterns[0].astype(np.int64)
    for first, rows in recorded.accesses():
        beyond = active[rows["pattern"]] & ~recorded.lanes(rows["warp"])
        yield from report(beyond != 0, "lanes that the warp does not have", first)


def check_addresses(recorded: Recorded) -> Iterator[Finding]:
    """Every active lane's bytes lie in one array, or in the block's or thread's memory; those of
    instructions of which the manifest says that they do not, where memory is mapped."""
    width = _least_bytes(recorded)
    strays = recorded.outside_lanes > 0
    for first, rows in recorded.accesses():
        for space in Space:
            windows = recorded.windows(space)
            chosen = np.flatnonzero(rows["space"] == space)
            if windows is None or not len(chosen):
                continue
            picked = {name: rows[name][chosen] for name in ("base", "pattern")}
            bad = np.zeros(len(rows["space"]), bool)
            bad[chosen] = _outside(recorded, picked, width[rows["pc"][chosen]], windows)
            if space == Space.GLOBAL and strays.any():
                bad &= ~(strays[rows["pc"]] & _is_mapped(recorded, rows, width))
            yield from report(bad, f"outside every array of {space.name.lower()} memory", first)


def check_outside_rows(recorded: Recorded) -> Iterator[Finding]:
    """No more lanes are outside of every array than the manifest says, by instruction."""
    told = recorded.outside_lanes
    width, windows = _least_bytes(recorded), recorded.windows(Space.GLOBAL)
    assert windows is not None
    counted = np.zeros_like(told)
    for _, rows in recorded.accesses():
        chosen = np.flatnonzero((rows["space"] == Space.GLOBAL) & (told[rows["pc"]] > 0))
        pc, pattern = rows["pc"][chosen], rows["pattern"][chosen]
        inside = _lanes_inside(recorded, rows["base"][chosen], pattern, width[pc], windows)
        outside = lanes_of(recorded.patterns[0][pattern]) & ~inside
        np.add.at(counted, pc, outside.sum(axis=1))
    for pc in np.flatnonzero(counted > told).tolist():
        yield Finding(
            f"pc {pc}: {counted[pc]} lanes are outside of every array, but the manifest says "
            f"{told[pc]}"
        )


def _is_mapped(recorded: Recorded, rows: dict[str, Any], width: Ints) -> Flags:
    return ~_outside(recorded, rows, width[rows["pc"]], recorded.mapped)


def _least_bytes(recorded: Recorded) -> Ints:
    """Return the bytes that each instruction is sure to move: of a formatted store one."""
    formatted = recorded.of_instructions("operation") == "formatted"
    return np.where(formatted, 1, recorded.of_instructions("bytes"))


def _outside(
    recorded: Recorded, rows: dict[str, Any], width: Ints, windows: tuple[Ints, Ints]
) -> Flags:
    """Return whether any lane of a row is outside: whole rows first, lanes only where needed."""
    low, high = recorded.extents
    active = recorded.patterns[0]
    base = np.minimum(rows["base"], np.uint64(FAR)).astype(np.int64)
    pattern = rows["pattern"]
    bad = ~_inside(base + low[pattern], base + high[pattern] + width, windows)
    doubtful = np.flatnonzero(bad)
    for some in np.split(doubtful, range(_CHUNK, len(doubtful), _CHUNK)):
        inside = _lanes_inside(recorded, base[some], pattern[some], width[some], windows)
        bad[some] = ~(inside | ~lanes_of(active[pattern[some]])).all(axis=1)
    return bad


def _lanes_inside(
    recorded: Recorded, base: Ints, pattern: Ints, width: Ints, windows: tuple[Ints, Ints]
) -> Flags:
    """Return (n, 32): whether the bytes of each lane, active or not, lie in one window."""
    low = np.minimum(base, np.uint64(FAR)).astype(np.int64) if base.dtype.kind == "u" else base
    begin = low[:, None] + recorded.patterns[1][pattern]
    return _inside(begin, begin + width[:, None], windows)


def _inside(begin: npt.NDArray[Any], end: npt.NDArray[Any], windows: tuple[Ints, Ints]) -> Flags:
    starts, ends = windows
    if not len(starts):
        return np.zeros(begin.shape, bool)
    place = np.searchsorted(starts, begin, "right") - 1
    return (place >= 0) & (end <= ends[np.maximum(place, 0)])


def check_texels(recorded: Recorded) -> Iterator[Finding]:
    """Samples have an active lane, of those that the warp has; inactive lanes have corner 0."""
    for first, rows in recorded.texels():
        active = rows["active"]
        off = ~np.repeat(lanes_of(active), 4, axis=1)
        yield from report(active == 0, "no lane is active", first)
        beyond = active & ~recorded.lanes(rows["warp"])
        yield from report(beyond != 0, "lanes that the warp does not have", first)
        yield from report(
            (rows["corner"] * off).any(axis=1), "an inactive lane has a corner", first
        )
