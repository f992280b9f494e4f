"""The tally as arrays: what the loops of `models/replay/histogram/counting.py` are held to."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cutrace.models.replay.histogram.histogram import READ, Bins, count_scopes
from cutrace.models.replay.interface.model import Bools, Ints
from cutrace.models.replay.rows.patterns import Shapes
from cutrace.models.replay.rows.sites import SPACE_SHIFT, Sites, Zones, number_rows
from cutrace.models.replay.schedule.place import Placement
from cutrace.traces.column import integers


def leave(zones: Zones, places: Ints, zone: Ints, low: Ints, high: Ints) -> Bools:
    """Whether rows touch bytes outside their zone: from `places + low` to `places + high`."""
    far = np.iinfo(np.int64)
    ends = np.concatenate([[far.min], zones.cuts, [far.max]])
    return (places + low < ends[zone]) | (places + high > ends[1:][zone])


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Rows of the trace as (n,) int64 columns: `site` is pc * SPACES + space."""

    block: Ints
    site: Ints
    base: Ints
    pattern: Ints
    zone: Ints
    mixed: Bools


def read_chunk(batch: pa.RecordBatch, sites: Sites, shapes: Shapes, zones: Zones) -> Chunk:
    """Return the rows of a batch of ACCESSES, attributed to zones.

    Raises `CutraceError` where a row lies in a space that its instruction cannot reach.
    """
    block, pc, space, base, pattern = integers(batch, *READ)
    site = sites.locate(pc, space)
    places = (space << SPACE_SHIFT) + base
    zone = zones.find(places)
    patterns, shape = np.unique(pattern, return_inverse=True)
    offsets = shapes.store.take(patterns)[1].astype(np.int64)
    low, high = offsets.min(axis=1), offsets.max(axis=1)
    mixed = leave(zones, places, zone, low[shape], high[shape] + sites.width[site])
    return Chunk(block, site, base, pattern, zone, mixed)


def tally(chunk: Chunk, period: int, zones: int, placements: Sequence[Placement]) -> Bins:
    """Find the distinct rows of a chunk."""
    first = int(chunk.pattern.min())
    span = int(chunk.pattern.max()) - first + 1
    pairs, pair = number_rows(
        chunk.site * span + (chunk.pattern - first), (int(chunk.site.max()) + 1) * span
    )
    phase = chunk.base & (period - 1) if period.bit_count() == 1 else chunk.base % period
    keys = ((pair * period + phase) * zones + chunk.zone) * 2 + chunk.mixed
    distinct, number = number_rows(keys, len(pairs) * period * zones * 2)
    rest, mixed = np.divmod(distinct, 2)
    rest, zone = np.divmod(rest, zones)
    found, phase = np.divmod(rest, period)
    site, pattern = np.divmod(pairs[found], span)
    times = [count_scopes(number, len(distinct), chunk.block, p) for p in placements]
    return Bins(site, pattern + first, phase, zone, mixed.astype(np.bool_), np.stack(times))
