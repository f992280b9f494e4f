"""Caches asked by hand: one request after another, and what each finds."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from cutrace.models.cache import Cache
from cutrace.models.replay.interface.model import Batch, Kind, Step

SECTOR = 32
LOAD = Kind("global", "load", "ca", SECTOR)
STORE = Kind("global", "store", "", SECTOR)
ATOMIC = Kind("global", "atomic", "", SECTOR)
LOCAL_LOAD = Kind("local", "load", "", SECTOR)
LOCAL_STORE = Kind("local", "store", "", SECTOR)


def make_cache(**keys: Any) -> Cache:
    """A cache of one set of two lines of 128 bytes in sectors of 32, unless told otherwise."""
    plain: dict[str, Any] = {
        "bytes": 256,
        "line": 128,
        "sector": SECTOR,
        "sets": 1,
        "serves": ["global", "local"],
    }
    return Cache(**(plain | keys))


def batch_of(requests: Sequence[tuple[Kind, int]], rows: Sequence[int] | None = None) -> Batch:
    """Requests as (kind, address), each a row of its own unless `rows` says whose it is."""
    kinds = tuple(dict.fromkeys(kind for kind, _ in requests))
    return Batch(
        kinds,
        np.array([kinds.index(kind) for kind, _ in requests], np.int64),
        np.array([[address] for _, address in requests], np.int64).reshape(-1, 1),
        np.ones((len(requests), 1), np.bool_),
        np.arange(len(requests)) if rows is None else np.array(rows, np.int64),
        passes_on=True,
    )


def ask(cache: Cache, *requests: tuple[Kind, int], rows: Sequence[int] | None = None) -> Step:
    """Serve requests as one batch."""
    return cache.step(batch_of(requests, rows))


def totals(*steps: Step) -> dict[str, int]:
    """What the steps counted in all, those counters that are not zero."""
    names = Cache.counters
    sums = {name: sum(int(step.counts[name].sum()) for step in steps) for name in names}
    return {name: value for name, value in sums.items() if value}


def column(step: Step, name: str) -> list[int]:
    """One counter, request by request."""
    return [int(value) for value in step.counts[name]]


def passed(step: Step) -> list[tuple[str, int, int]]:
    """What goes to the next stage: (access, address, bytes)."""
    out = step.out
    assert out is not None
    kinds = [out.kinds[number] for number in out.kind.tolist()]
    return [
        (k.access, a, k.width) for k, a in zip(kinds, out.addresses[:, 0].tolist(), strict=True)
    ]
