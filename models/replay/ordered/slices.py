"""Requests cut where lines end, and into slices that are served at a time."""

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import numpy as np

from ..schedule.episodes import list_ranges
from ..seam import Batch, Ints


def slices_of(row: Ints, size: int) -> Iterator[slice]:
    """Yield parts of about `size` requests, the requests of a row together."""
    end = 0
    while end < len(row):
        start, end = end, min(end + size, len(row))
        while end < len(row) and row[end] == row[end - 1]:
            end += 1
        yield slice(start, end)


def cut_at_lines(batch: Batch, line: int, compiled: ModuleType | None) -> tuple[Batch, Ints]:
    """Return requests that lie in one line each, and the row of the batch that each is of."""
    widths = np.array([kind.width for kind in batch.kinds] or [0], np.int64)
    address = np.ascontiguousarray(batch.addresses[:, 0])
    whose = np.arange(len(batch))
    if compiled is not None and not compiled.leaves(address, batch.kind, widths, line):
        return batch, whose
    widths = widths[batch.kind]
    if not ((address & (line - 1)) + widths > line).any():
        return batch, whose
    over = (address % line + widths - 1) // line
    whose = np.repeat(whose, over + 1)
    pieces = batch.take(whose)
    start = list_ranges(address // line, over + 1) * line
    begin = np.maximum(address[whose], start)
    end = np.minimum((address + widths)[whose], start + line)
    many = int(widths.max()) + 1
    pairs, kind = np.unique(pieces.kind * many + end - begin, return_inverse=True)
    kinds = tuple(replace(batch.kinds[p // many], width=p % many) for p in pairs.tolist())
    return replace(pieces, kinds=kinds, kind=kind, addresses=begin[:, None]), whose
