"""Reuse beside fully associative LRU caches that are replayed, size by size."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases.cache_case import ATOMIC, LOAD, STORE, ask, batch_of, make_cache, totals

from cutrace.analyzer.reuse.reuse import error_of
from cutrace.base.errors import CutraceError
from cutrace.jit.loop import rows_asked
from cutrace.models.replay.interface.model import Batch
from cutrace.models.replay.stateful import cache_sim, stack_distances
from cutrace.models.reuse import Reuse

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
        monkeypatch.setitem(rows_asked, stack_distances.__name__, stack_distances.WORTH)
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


@pytest.mark.parametrize(
    "keys",
    [
        {"sector": 32},
        {"sector": 32, "fetch": 64},
        {"sector": 32, "store": "back"},
        {"sector": 32, "store": "through"},
        {"sector": 64, "sets": 4},
    ],
    ids=str,
)
def test_sectors_stores_and_sets_miss_what_replays_miss(
    keys: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 loads and stores of sectors, of which some lines are asked for often."""
    for loops in (stack_distances, cache_sim):
        monkeypatch.setitem(rows_asked, loops.__name__, 1 << 14)
    random, sets = np.random.default_rng(5), keys.get("sets", 1)
    lines, part = random.zipf(1.3, 2000) % 300, random.integers(0, 4, 2000)
    kinds = [(LOAD, STORE)[n] for n in random.integers(0, 2 if "store" in keys else 1, 2000)]
    requests = [
        (kind, int(128 * line + 32 * at)) for kind, line, at in zip(kinds, lines, part, strict=True)
    ]
    sizes = [128 * room * sets for room in ROOMS]
    reuse = Reuse(128, sizes, ["global"], **keys)
    counts = reuse.step(batch_of(requests)).counts
    for size in sizes:
        found = totals(ask(make_cache(bytes=size, **({"sets": 1} | keys)), *requests))
        assert int(counts[f"misses_{size}"].sum()) == found["reads"] - found.get("read_hits", 0)
    assert int(counts["accesses"].sum()) == kinds.count(LOAD)
    assert reuse.histogram.sum() == kinds.count(LOAD)


def test_a_sample_is_within_its_error_of_the_exact_curve_19_times_in_20(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """30 streams of 20,000 requests each for up to 5,000 lines, of which one in 8 is looked at: at
    95 in 100, 4 of 30 streams or more lie outside one time in 16, 6 or more one in 300.
    """
    monkeypatch.setitem(rows_asked, stack_distances.__name__, stack_distances.WORTH)
    rooms, many = (64, 256, 1024, 2048), 20_000
    outside, told = dict.fromkeys(rooms, 0), dict.fromkeys(rooms, 0)
    row = np.arange(many)
    for seed in range(30):
        lines = np.random.default_rng(seed).zipf(1.2, many) % 5_000
        active = np.ones((many, 1), np.bool_)
        batch = Batch((LOAD,), 0 * row, 128 * lines[:, None], active, row)
        exact, sample = (Reuse(128, [128], ["global"], sampled=part) for part in (1, 8))
        for reuse in (exact, sample):
            reuse.step(batch)
        assert sample.requests == exact.requests == many
        assert sample.lines == pytest.approx(exact.lines, rel=0.2)
        for room in rooms:
            found, true = (int(reuse.misses(room).sum()) for reuse in (sample, exact))
            outside[room] += abs(found - true) > error_of(sample, room)
            told[room] += error_of(sample, room)
        assert error_of(exact, 256) == 0
    assert max(outside.values()) < 6
    assert told[1024] / 30 < 0.1 * many  # it says something


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
    with pytest.raises(CutraceError, match="expected whole lines of 128 in each of 4 sets"):
        Reuse(128, [256], ["global"], sets=4)
