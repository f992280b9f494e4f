"""What is passed on for distinct rows, repeated: addresses by hand, compiled or not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases.cache_case import ATOMIC, LOAD, LOCAL_LOAD, LOCAL_STORE, STORE, make_cache
from hypothesis import given, settings
from hypothesis import strategies as st

from cutrace.jit.loop import interpret_module, rows_asked
from cutrace.models import cache as cache_module
from cutrace.models.cache import Cache
from cutrace.models.replay.histogram import counting
from cutrace.models.replay.histogram.histogram import Pool, Repeated, extend_pool, make_pool
from cutrace.models.replay.interface.model import Batch, Kind, Step
from cutrace.models.replay.stateful import cache_sim, row_lines
from cutrace.models.replay.stateful.cache_sim import WORTH
from cutrace.models.replay.stateful.ordered import ROW_DTYPE

GLOBAL, LOCAL = Kind("global", "load", "ca", 32), Kind("local", "load", "", 128)


@pytest.mark.parametrize("compiled", [False, True])
def test_rows_have_the_requests_of_the_row_that_they_repeat_moved(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row 0 makes two requests, row 1 none, row 2 one of local memory, which moves 32 times."""
    pool = Pool(
        (GLOBAL, LOCAL), np.array([0, 0, 1]), np.array([0, 32, 1024]), np.array([0, 2, 2, 3])
    )
    number, shift, row = np.array([2, 0, 1, 0]), np.array([4, 64, 8, 0]), np.array([5, 6, 7, 9])
    monkeypatch.setitem(rows_asked, counting.__name__, counting.WORTH if compiled else 0)
    made = pool.repeat(number, shift, row)
    assert made.addresses[:, 0].tolist() == [1024 + 4 * 32, 64, 32 + 64, 0, 32]
    assert made.kind.tolist() == [1, 0, 0, 0, 0]
    assert made.row.tolist() == [5, 6, 6, 9, 9]
    assert made.active.shape == (5, 1)
    assert made.active.all()


CACHES: tuple[dict[str, Any], ...] = (
    {"store": "through", "bytes": 1024, "sets": 2, "on_the_way": [3, 6], "wavers": True},
    {"store": "evict", "local_store": "back", "bytes": 1024, "sets": 4},
    {"store": "back", "fetch": 64, "dirty_bytes": 384, "bytes": 1536, "sets": 3},
    {"serves": ["local"], "store": "back", "bytes": 512},
)
KINDS = (LOAD, STORE, ATOMIC, LOCAL_LOAD, LOCAL_STORE)
REQUEST = st.tuples(st.sampled_from((0, 0, 0, *range(len(KINDS)))), st.integers(0, 24))
"""A kind, mostly loads, and which sector: those of three lines side by side, and of more."""


def pool_of(rows: list[list[tuple[int, int]]]) -> Pool:
    """Rows of requests, a list each."""
    each = [(kind, 32 * sector) for row in rows for kind, sector in row]
    first = np.cumsum([0, *map(len, rows)])
    kind, address = np.array(each, np.int64).reshape(-1, 2).T
    return Pool(KINDS, kind, np.ascontiguousarray(address), first)


def answer(step: Step) -> tuple[dict[str, list[int]], list[tuple[Kind, int, int]]]:
    """All counts by group, and all that goes on."""
    assert step.out is not None
    out = step.out
    kinds = [out.kinds[number] for number in out.kind.tolist()]
    went = list(zip(kinds, out.addresses[:, 0].tolist(), out.row.tolist(), strict=True))
    return {name: step.counts[name].tolist() for name in Cache.counters}, went


@settings(max_examples=50)
@given(
    keys=st.sampled_from(CACHES),
    pool=st.lists(st.lists(REQUEST, max_size=7), min_size=1, max_size=6).map(pool_of),
    data=st.data(),
)
def test_rows_that_repeat_find_what_their_requests_find_written_down(
    keys: dict[str, Any], pool: Pool, data: st.DataObject
) -> None:
    """Three units and two groups, in two parts; rows lie whole lines apart."""
    cache, other = make_cache(**keys), make_cache(**keys)
    each = st.tuples(
        st.integers(0, len(pool.first) - 2), st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)
    )
    for _ in range(2):
        told = data.draw(st.lists(each, min_size=1, max_size=30))
        number, shift, unit, group = np.array(told, np.int64).T
        rows = np.zeros(len(told), ROW_DTYPE)
        rows["number"], rows["shift"], rows["group"] = number, 128 * shift, group
        batch = pool.repeat(number, 128 * shift, np.arange(len(told)))
        batch = replace(batch, unit=unit[batch.row], group=group[batch.row], groups=2)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(rows_asked, cache_sim.__name__, WORTH + 1)
            patch.setattr(
                cache_module, "compile_module", lambda _: interpret_module(row_lines.__name__)
            )
            found = cache.step_repeated(Repeated(pool, rows, unit, 2, True))
        assert found is not None
        assert answer(found) == answer(other.step(replace(batch, passes_on=True)))


def test_requests_of_one_line_that_move_unlike_each_other_are_looked_up_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Local memory moves 32 bytes for each of its row: 128 bytes on they are 32 lines apart."""
    monkeypatch.setitem(rows_asked, cache_sim.__name__, WORTH + 1)
    monkeypatch.setattr(
        cache_module, "compile_module", lambda _: interpret_module(row_lines.__name__)
    )
    rows = np.zeros(1, ROW_DTYPE)
    rows["shift"] = 128
    found = make_cache(bytes=1024).step_repeated(
        Repeated(pool_of([[(0, 0), (3, 0)]]), rows, None, 1, True)
    )
    assert found is not None
    assert [address for _, address, _ in answer(found)[1]] == [128, 128 * 32]


@pytest.mark.parametrize(
    ("pool", "shift", "worth"),
    [
        (pool_of([[(0, 3)]]), 32, WORTH + 1),  # half a line away
        (Pool((GLOBAL, LOCAL), np.array([1]), np.array([64]), np.array([0, 1])), 0, WORTH + 1),
        (pool_of([[(0, 3)]]), 0, WORTH - 2),  # too few rows
    ],
)
def test_rows_that_a_loop_cannot_repeat_are_written_down(
    pool: Pool, shift: int, worth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that lies elsewhere in its line, and 128 bytes that begin in the middle of one."""
    rows = np.zeros(1, ROW_DTYPE)
    rows["shift"] = shift
    monkeypatch.setitem(rows_asked, cache_sim.__name__, worth)
    assert make_cache().step_repeated(Repeated(pool, rows)) is None


def test_more_rows_of_a_pool_keep_their_requests() -> None:
    """Two rows, then two more of which the second makes a request of another kind."""
    pool = extend_pool(None, pool_of([[(0, 1)], []]), 0)
    more = Pool((STORE, ATOMIC), np.array([1, 0]), np.array([64, 96]), np.array([0, 0, 2]))
    both = extend_pool(pool, more, 2)
    assert both.first.tolist() == [0, 1, 1, 1, 3]
    assert [both.kinds[kind] for kind in both.kind.tolist()] == [LOAD, ATOMIC, STORE]
    assert both.address.tolist() == [32, 64, 96]
    nothing: Batch | None = None
    assert extend_pool(None, make_pool(nothing, 3), 2).first.tolist() == [0] * 6
