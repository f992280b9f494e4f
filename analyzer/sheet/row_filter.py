"""Sorting rows by a counter, and leaving out those below a threshold."""

from collections.abc import Sequence
from functools import partial

from ...errors import CutraceError
from ..counting.evaluate import Value
from ..counting.vocabulary import Counter, check_parts, find_counters
from .block import Block, Row
from .view import COUNTERS, View

SHARED_OUT = frozenset({"ratio", "FLOP/byte", "FLOP/word", "times"})
"""Units in which rows have no share of a total."""


def check_sifting(by: str, sort: str | None, threshold: float | None) -> None:
    """Raise `CutraceError` for a counter to sort by, or a threshold, that there cannot be."""
    asked = [n for n, v in (("--sort", sort), ("--threshold", threshold)) if v is not None]
    if asked and by == "launch":
        raise CutraceError(f"{asked[0]} is for smaller rows: add --by line, array or instruction")
    sorting = find_counters([sort] if sort is not None else [])
    check_parts(sorting, by)
    if threshold is None:
        return
    if not 0 <= threshold <= 100:
        raise CutraceError(f"--threshold {threshold:g}: expected per cent, 0 to 100")
    if sorting and not any(map(_adds_up, sorting)):
        raise CutraceError(f"--threshold {threshold:g}: {sort} is no sum that rows have a part of")


def sift(blocks: Sequence[Block], view: View) -> tuple[tuple[Block, ...], str]:
    """The rows to show as the view asks, and a sentence about those left out, or nothing.

    A row is kept if its part of the counter by which it is sorted, or else of any on the page,
    reaches the view's threshold on any device.
    """
    ordered = sorted(blocks, key=partial(_rank, view=view)) if view.sort else list(blocks)
    if not view.threshold:
        return tuple(ordered), ""
    totals = _totals(blocks, view)
    least = view.threshold / 100
    kept = tuple(block for block in ordered if _share(block, totals) >= least)
    missing = len(ordered) - len(kept)
    if not missing:
        return kept, ""
    what = view.sort or "every counter"
    rows = f"{missing} {view.by}{'s' * (missing > 1)}"
    return kept, f"left out: {rows} with less than {view.threshold:g} % of {what}"


def _rank(block: Block, view: View) -> float:
    """The sort key: the highest value on any device first, rows without one last."""
    known = [value for row in _sorting(block, view) for value in row.values if value is not None]
    return -max(known, default=-1)


def _sorting(block: Block, view: View) -> list[Row]:
    """The rows of the counter by which the blocks are sorted."""
    return [row for row in block.every if view.sort in (row.counter.name, row.counter.qualified)]


def _totals(blocks: Sequence[Block], view: View) -> dict[tuple[str, int], Value]:
    """The sum over all rows of each counter that decides, by its name and the device."""
    totals: dict[tuple[str, int], Value] = {}
    shown = view.counters or COUNTERS[view.by]
    for block in blocks:
        for row in _sorting(block, view) if view.sort else block.every:
            if not _adds_up(row.counter) or not (view.sort or row.counter.name in shown):
                continue
            for device, value in enumerate(row.values):
                key = row.counter.qualified, device
                totals[key] = (totals.get(key) or 0) + (value or 0)
    return totals


def _share(block: Block, totals: dict[tuple[str, int], Value]) -> float:
    """A row's largest part of any total."""
    shares = (
        value / total
        for row in block.every
        for device, value in enumerate(row.values)
        if value and (total := totals.get((row.counter.qualified, device)))
    )
    return max(shares, default=0.0)


def _adds_up(counter: Counter) -> bool:
    return counter.unit not in SHARED_OUT
