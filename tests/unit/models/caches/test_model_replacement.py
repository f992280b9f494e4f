"""Replacement policies beside references in plain Python, one set of four lines."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from cases.cache_case import LOAD, ask, batch_of, make_cache, totals

from cutrace.base.errors import CutraceError
from cutrace.jit.loop import compile_module, rows_asked
from cutrace.models.replay.stateful import cache_sim

WAYS = 4
BELADY = [1, 2, 3, 4, 1, 2, 5, 1, 2, 3, 4, 5]
"""Belady, Nelson and Shedler, CACM 12 (1969), 349: more room, and more faults."""


def lru(lines: Sequence[int], ways: int = WAYS) -> int:
    kept: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for line in lines:
        hits += line in kept
        kept[line] = None
        kept.move_to_end(line)
        if len(kept) > ways:
            kept.popitem(last=False)
    return hits


def fifo(lines: Sequence[int], ways: int = WAYS) -> int:
    queue: list[int] = []
    hits = 0
    for line in lines:
        hits += line in queue
        if line not in queue:
            queue = [*queue, line][-ways:]
    return hits


def rrip(lines: Sequence[int], ways: int = WAYS) -> int:
    """Jaleel et al. 2010, figure 3: predictions 0 (near) to 3 (distant), the first distant goes."""
    blocks: list[int] = []
    predicted: list[int] = []
    hits = 0
    for line in lines:
        if line in blocks:
            hits += 1
            predicted[blocks.index(line)] = 0
        elif len(blocks) < ways:
            blocks.append(line)
            predicted.append(2)
        else:
            while 3 not in predicted:
                predicted = [value + 1 for value in predicted]
            victim = predicted.index(3)
            blocks[victim], predicted[victim] = line, 2
    return hits


def hits_of(lines: Sequence[int], **keys: object) -> int:
    cache = make_cache(**{"bytes": 128 * WAYS, **keys})
    return totals(ask(cache, *((LOAD, 128 * line) for line in lines))).get("read_hits", 0)


@pytest.mark.parametrize(("policy", "reference"), [("lru", lru), ("fifo", fifo), ("rrip", rrip)])
@pytest.mark.parametrize("is_compiled", [False, True])
def test_a_policy_finds_what_its_reference_finds(
    policy: str,
    reference: Callable[[Sequence[int]], int],
    is_compiled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if is_compiled:
        monkeypatch.setitem(rows_asked, cache_sim.__name__, cache_sim.WORTH)
    draw = np.random.default_rng(5)
    mixed = (draw.zipf(1.3, 1500) % 9).tolist()
    scans = [
        line for turn in range(60) for line in (0, 1, 2, 0, 1, 2, *range(9 * turn, 9 * turn + 6))
    ]
    for lines in (mixed, scans, BELADY):
        assert hits_of(lines, policy=policy) == reference(lines)


def test_one_loop_serves_any_number_of_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reference's hits; a sweep over sizes would compile a loop for each of them."""
    monkeypatch.setitem(rows_asked, cache_sim.__name__, cache_sim.WORTH)
    simulate, lines = compile_module(cache_sim.__name__).simulate, [*range(17)] * 3 + BELADY
    hits_of(lines, bytes=128 * 3)
    compiled = len(simulate._made)
    for ways in (1, 2, 5, 16, 17, 63):
        assert hits_of(lines, bytes=128 * ways) == lru(lines, ways)
    assert len(simulate._made) == compiled


@pytest.mark.parametrize(
    ("policy", "ways", "faults"), [("fifo", 3, 9), ("fifo", 4, 10), ("lru", 3, 10), ("lru", 4, 8)]
)
def test_faults_are_those_of_beladys_anomaly(policy: str, ways: int, faults: int) -> None:
    found = hits_of(BELADY, policy=policy, bytes=128 * ways)
    assert len(BELADY) - found == faults


def test_random_replacement_finds_some_of_what_goes_round_in_circles() -> None:
    """Eight ways, nine lines in turn: a line stays until its next turn through 8 or 9 draws of one
    way in 8, of those 8 misses at most: between (7/8)^8 = 34 % and all.
    """
    rounds = list(range(9)) * 200
    found = [hits_of(rounds, policy="random", bytes=1024, seed=seed) for seed in (0, 1, 1)]
    assert all(0.34 * len(rounds) < hits < 0.95 * len(rounds) for hits in found)
    assert found[0] != found[1] == found[2]


def test_random_replacement_is_the_same_in_batches_of_any_size() -> None:
    lines = (np.random.default_rng(2).zipf(1.2, 600) % 40).tolist()
    cache, requests = make_cache(bytes=512, policy="random"), [(LOAD, 128 * n) for n in lines]
    parts = [cache.step(batch_of(requests[at : at + 7])) for at in range(0, len(requests), 7)]
    assert totals(*parts).get("read_hits", 0) == hits_of(lines, policy="random")


def test_free_room_is_taken_before_any_line_goes() -> None:
    for policy in ("lru", "fifo", "random", "rrip"):
        assert hits_of([1, 2, 3, 4] * 5, policy=policy) == 16


def test_an_unknown_policy_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(CutraceError, match="no replacement policy `lfu`; there are lru, fifo"):
        make_cache(policy="lfu")
