"""Reuse beside fully associative LRU caches that are replayed, size by size."""

from dataclasses import replace

import numpy as np
import pytest
from cases.cache_case import ATOMIC, LOAD, STORE, ask, batch_of, make_cache, totals

from cutrace.errors import CutraceError
from cutrace.models.replay.native.compiled import rows_asked
from cutrace.models.replay.ordered import stack_distances
from cutrace.models.reuse import WORTH, Reuse

ROOMS = (1, 2, 3, 5, 8, 16, 31, 64, 100, 128, 256, 300)


def make_reuse(*rooms: int, line: int = 128) -> Reuse:
    return Reuse(line, [line * room for room in rooms], ["global"])


def test_an_access_hits_where_fewer_lines_than_there_is_room_for_came_between() -> None:
    """a b b a: b after no other line, a after one."""
    requests = [(LOAD, 128 * line) for line in (7, 9, 9, 7)]
    counts = make_reuse(1, 2).step(batch_of(requests)).counts
    assert counts["cold"].tolist() == [1, 1, 0, 0]
    assert counts["misses_128"].tolist() == [1, 1, 0, 1]
    assert counts["misses_256"].tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("many", [7, 100, 3000])
def test_misses_are_those_of_replays_at_twelve_sizes(
    many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3,000 accesses in batches of `many`, which the tree of a unit has no room for at first."""
    if many > 7:
        monkeypatch.setitem(rows_asked, stack_distances.__name__, WORTH)
    lines = np.random.default_rng(3).zipf(1.3, 3000) % 300
    requests = [(LOAD, 128 * int(line)) for line in lines]
    reuse, found = make_reuse(*ROOMS), dict.fromkeys(ROOMS, 0)
    for begin in range(0, len(requests), many):
        counts = reuse.step(batch_of(requests[begin : begin + many])).counts
        for room in ROOMS:
            found[room] += int(counts[f"misses_{128 * room}"].sum())
    for room, misses in found.items():
        cache = make_cache(bytes=128 * room, sector=128)
        hits = totals(ask(cache, *requests)).get("read_hits", 0)
        assert misses == len(requests) - hits


def test_units_reuse_nothing_of_each_other() -> None:
    batch = replace(batch_of([(LOAD, 0)] * 4), unit=np.array([0, 1, 0, 1]))
    assert make_reuse(1).step(batch).counts["cold"].tolist() == [1, 1, 0, 0]


def test_what_is_not_asked_for_is_not_looked_up() -> None:
    counts = make_reuse(1).step(batch_of([(STORE, 0), (ATOMIC, 0), (LOAD, 0)])).counts
    assert counts["accesses"].tolist() == [0, 0, 1]
    assert counts["cold"].tolist() == [0, 0, 1]


def test_a_size_that_is_no_whole_number_of_lines_is_refused() -> None:
    with pytest.raises(CutraceError, match="a size of 100 bytes; expected whole lines of 128"):
        Reuse(128, [100], ["global"])
