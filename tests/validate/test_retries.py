"""Loops of atomics: cutrace's counters beside an H100's, of 94 launches of `retries.cu`.

ptxas makes loops of adds of floating-point numbers and of 64-bit atomics to shared memory, and of
adds of one half to any. What becomes of a warp alone is the rule of
`models/replay/atomic_loops.py`, and equal but for what is named here. Of warps that meet nobody
knows the turns: each run has others.
"""

from collections import Counter
from collections.abc import Iterator

import pytest
from silicon.launches import BY_ADDRESSES, Launched, Pair, launched, pairs

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"
LOADED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
ATOMICS = "smsp__sass_inst_executed_op_shared_atom.sum"
LOADS = "smsp__sass_inst_executed_op_shared_ld.sum"
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"
NAMED = ("f32_at", "f32_odd", "f32_fetch", "f32_turns", "f64_at", "u64_at", "u64_xor", "i64_min")
"""Kernels of one warp at a time whose addresses are in shared memory by their instructions."""
GENERIC = ("half_at", "brain_at")
GLOBAL = ("half_global", "brain_global", "half_named", "half_own")
OWN = ("f32_own", "f64_own")
MEET = ("f32_meet", "f64_meet")
ROUNDED = {67}
"""A launch whose words hold halves of earlier launches, which are large numbers as bfloat16: adding
one leaves some as they were, and lanes that swap equal values are done together."""
SCATTERED = {65, 66, 68, 71, 72}
"""Launches whose words lie further apart than 512 bytes."""


@pytest.fixture(scope="module")
def launches() -> tuple[Launched, ...]:
    """Every launch of the capture, counted here."""
    return launched("h100_retries.json")


@pytest.fixture(scope="module")
def compared(launches: tuple[Launched, ...]) -> list[Pair]:
    """Every count of them that can be held to equality."""
    return [pair for pair in pairs(launches) if pair.verdict in ("equal", "unequal")]


def of(launches: tuple[Launched, ...], *kernels: str) -> Iterator[Launched]:
    """The launches of some kernels."""
    found = [one for one in launches if one.kernel in kernels]
    assert found
    return iter(found)


def by_address(launch: Launched) -> float:
    """How many more wavefronts the profiler counts by addresses than cutrace."""
    return (launch.counted[BY_ADDRESSES] or 0) - (launch.ours.counters[BY_ADDRESSES] or 0)


@pytest.mark.parametrize("metric", [ATOMICS, LOADS, WAVEFRONTS, LOADED])
def test_a_warp_alone_takes_the_turns_that_the_rule_says(
    launches: tuple[Launched, ...], metric: str
) -> None:
    found = list(of(launches, *NAMED, "half_shared"))
    assert len(found) == 45
    assert [one.ours.counters[metric] for one in found] == [one.counted[metric] for one in found]


def test_every_count_of_a_warp_alone_is_equal(compared: list[Pair]) -> None:
    """But one more wavefront where merged pairs of lanes conflict, by addresses only."""
    alone = [pair for pair in compared if pair.launched.kernel in (*NAMED, "half_shared")]
    unequal = {(p.launched.kernel, p.launched.number) for p in alone if p.verdict == "unequal"}
    assert len(alone) > 1750
    assert unequal == {("u64_at", 33), ("i64_min", 36)}


def test_a_generic_address_adds_one_wavefront_to_a_loop_that_loads_again(
    launches: tuple[Launched, ...],
) -> None:
    for one in of(launches, "pairs_at"):
        assert one.counted[WAVEFRONTS] == (one.ours.counters[WAVEFRONTS] or 0) + 1
        assert by_address(one) == 0


def test_halves_in_shared_memory_are_swapped_as_often(launches: tuple[Launched, ...]) -> None:
    for one in of(launches, *GENERIC):
        for metric in (ATOMICS, WAVEFRONTS, LOADED, BY_ADDRESSES):
            assert one.ours.counters[metric] == one.counted[metric]


def test_halves_in_global_memory_are_swapped_as_often(launches: tuple[Launched, ...]) -> None:
    for one in of(launches, *GLOBAL):
        if one.number in ROUNDED:
            assert (one.ours.counters[REQUESTS], one.counted[REQUESTS]) == (4, 3)
            continue
        assert one.ours.counters[REQUESTS] == one.counted[REQUESTS]
        short = (one.counted[SECTORS] or 0) - (one.ours.counters[SECTORS] or 0)
        assert 0 <= short <= 2 * (one.number in SCATTERED)


def test_warps_with_words_of_their_own_take_their_turns(launches: tuple[Launched, ...]) -> None:
    """And up to four wavefronts more, which no address accounts for."""
    for one in of(launches, *OWN):
        for metric in (ATOMICS, LOADS, LOADED):
            assert one.ours.counters[metric] == one.counted[metric]
        more = (one.counted[WAVEFRONTS] or 0) - (one.ours.counters[WAVEFRONTS] or 0)
        assert 0 <= more <= 4


def test_warps_that_meet_take_other_turns_each_time(launches: tuple[Launched, ...]) -> None:
    """The profiler's own counts of them, each of another run, are not those of one run."""
    for one in of(launches, *MEET):
        ours, chip = one.ours.counters[ATOMICS] or 0, one.counted[ATOMICS] or 0
        assert ours * 0.7 <= chip <= 2 * ours
    ran = [sum(t for o, t in one.sass.items() if "SPIN" in o) for one in of(launches, *MEET)]
    assert ran != [one.counted[ATOMICS] for one in of(launches, *MEET)]


def test_as_one_atomic_none_of_these_launches_was_counted_right(
    launches: tuple[Launched, ...],
) -> None:
    found = Counter(
        one.by_ptx[LOADS] == one.counted[LOADS] for one in of(launches, *NAMED, *OWN, "pairs_at")
    )
    assert found == {False: 57}
