"""Shared-memory races, found in traces written by hand: what warps did, event by event."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest
from hand_trace import Access, Entry, hand_trace, instruction, launch
from hypothesis import given, settings
from hypothesis import strategies as st
from warps import Warp, warp

from cutrace.base.errors import CutraceError
from cutrace.models.analyses import race as cells
from cutrace.models.analyses.race import Race, RaceCheck, find_races
from cutrace.models.replay.schedule import episodes
from cutrace.models.replay.schedule.episodes import pack_columns
from cutrace.traces.reader import Trace
from cutrace.traces.schema import Array, Launch, Space

BLOCKS: tuple[tuple[str, dict[str, object]], ...] = (
    ("st.shared.f32", {}),
    ("ld.shared.f32", {}),
    ("bar.sync", {"barrier": 0}),
    ("atom.shared.add.u32", {}),
    ("st.shared.v4.f32", {"bytes": 16}),
    ("ld.shared.u8", {"bytes": 1}),
    ("st.release.cta.shared.u32", {}),
    ("ld.acquire.cta.shared.u32", {}),
    ("bar.sync", {"barrier": 1, "barrier_threads": 64}),
    ("bar.sync", {"barrier": 1, "barrier_threads": 32}),
    ("bar.sync", {"barrier": -1}),
    ("bar.arrive", {"barrier": 0, "barrier_threads": 64}),
    ("bar.sync", {"barrier": 0, "predicate": "%p1"}),
    ("mbarrier.arrive.shared.b64", {}),
)
STORE, LOAD, BAR, ATOMIC, WIDE, BYTE, RELEASE, ACQUIRE = range(8)
WHOLE, PARTIAL, NAMED, ARRIVE, PREDICATED, MBARRIER = range(8, 14)
"""Basic blocks of one instruction each: block n is instruction n at line n + 1 of k.cu."""
INSTRUCTIONS = [instruction(pc, name, block=pc, **more) for pc, (name, more) in enumerate(BLOCKS)]
WIDTHS = {WIDE: 16, BYTE: 1}
TILE = Array("tile", Space.SHARED, 64, 192, 4)
PAIR = launch(block=(64, 1, 1), shared_static=256, arrays=(TILE,))
"""Two warps."""


class Event(NamedTuple):
    """A warp runs an instruction, `times` in a row; `lanes` None where it is no access."""

    pc: int
    lanes: Warp | None = None
    times: int = 1
    active: int = 0xFFFFFFFF


def at(pc: int, *addresses: int | None) -> Event:
    """An access of lane i at addresses[i]."""
    return Event(pc, warp(addresses=addresses))


WAIT = Event(BAR)
History = dict[tuple[int, int], Sequence[Event]]
"""What each (block, warp) did."""


def record(path: Path, history: History, shape: Launch = PAIR) -> Trace:
    """Write a trace in which each warp has a path of its own, in the order given."""
    paths: list[list[Entry]] = []
    control, accesses = [], []
    for block, number in history:
        control.append((block, number, 0, len(paths)))
        events = history[block, number] or [Event(LOAD)]
        paths.append([(e.pc, e.active, 0, 0, e.times) for e in events])
        step = 0
        for event in events:
            for _ in range(event.times):
                if event.lanes:
                    row = (event.lanes, event.pc, block, number, step, 0, Space.SHARED)
                    accesses.append(Access(*row))
                step += 1
    return hand_trace(
        path / "race.cutrace",
        accesses,
        launch=shape,
        instructions=INSTRUCTIONS,
        paths=paths,
        control=control,
    )


def check(path: Path, *warps: Sequence[Event], shape: Launch = PAIR) -> RaceCheck:
    """Check one block whose warps did this."""
    return find_races(record(path, {(0, n): w for n, w in enumerate(warps)}, shape).launches[0])


def races(path: Path, *warps: Sequence[Event], shape: Launch = PAIR) -> tuple[Race, ...]:
    """The races of one block; it must be one that can be checked."""
    found = check(path, *warps, shape=shape)
    assert found.refusal == ""
    return found.races


def test_a_store_and_a_load_of_another_warp_race(tmp_path: Path) -> None:
    [race] = races(tmp_path, [at(STORE, 64, 68, 72)], [at(LOAD, None, 76, 72, 72)])
    assert (race.first.act, race.first.line, race.first.warp) == ("store", 1, 0)
    assert (race.second.act, race.second.line, race.second.warp) == ("load", 2, 1)
    assert race.first.text == "st.shared.f32 ...;"
    assert (race.first.lanes, race.first.threads) == ((2,), ((2, 0, 0),))
    assert (race.second.lanes, race.second.threads) == ((2, 3), ((34, 0, 0), (35, 0, 0)))
    assert (race.address, race.variable, race.element, race.itemsize) == (72, "tile", 2, 4)
    assert (race.pairs, race.blocks, race.block) == (2, 1, (0, 0, 0))


def test_a_barrier_between_puts_them_in_order(tmp_path: Path) -> None:
    assert races(tmp_path, [at(STORE, 64), WAIT], [WAIT, at(LOAD, 64)]) == ()


def test_a_barrier_before_both_does_not(tmp_path: Path) -> None:
    [race] = races(tmp_path, [WAIT, at(STORE, 64)], [WAIT, at(LOAD, 64)])
    assert race.interval == 1


def test_what_lanes_of_one_warp_do_is_exempt(tmp_path: Path) -> None:
    assert races(tmp_path, [at(STORE, 64, 64), at(LOAD, 64)], [WAIT]) == ()


def test_loads_do_not_race(tmp_path: Path) -> None:
    assert races(tmp_path, [at(LOAD, 64)], [at(LOAD, 64)]) == ()


def test_stores_to_different_words_do_not_race(tmp_path: Path) -> None:
    assert races(tmp_path, [at(STORE, 64, 68)], [at(STORE, 72, 76)]) == ()


def test_two_stores_to_one_word_race(tmp_path: Path) -> None:
    [race] = races(tmp_path, [at(STORE, 64)], [at(STORE, 64)])
    assert (race.first.line, race.second.line, race.pairs) == (1, 1, 1)


def test_atomics_are_exempt_among_themselves(tmp_path: Path) -> None:
    assert races(tmp_path, [at(ATOMIC, 64, 64)], [at(ATOMIC, 64)]) == ()


@pytest.mark.parametrize("plain", [LOAD, STORE])
def test_an_atomic_and_a_plain_access_race(tmp_path: Path, plain: int) -> None:
    [race] = races(tmp_path, [at(ATOMIC, 64)], [at(plain, 64)])
    assert {race.first.act, race.second.act} == {"atomic", ("store", "load")[plain]}


def test_release_and_acquire_are_ordered_accesses(tmp_path: Path) -> None:
    assert races(tmp_path, [at(RELEASE, 64)], [at(ACQUIRE, 64)]) == ()


def test_the_party_with_the_lower_step_comes_first(tmp_path: Path) -> None:
    [race] = races(tmp_path, [at(LOAD, 128), at(STORE, 64)], [at(LOAD, 64)])
    assert (race.first.act, race.first.step) == ("load", 0)
    assert (race.second.act, race.second.step) == ("store", 1)


def test_a_wide_store_overlaps_narrow_loads_byte_by_byte(tmp_path: Path) -> None:
    # bytes 64..79 against bytes 79, 80 and 63: one pair, at address 79
    [race] = races(tmp_path, [at(WIDE, 64)], [at(BYTE, 79, 80, 63)])
    assert (race.address, race.pairs) == (79, 1)


def test_two_wide_accesses_are_one_pair_however_many_bytes_they_share(tmp_path: Path) -> None:
    [race] = races(tmp_path, [at(WIDE, 64)], [at(WIDE, 64), at(BYTE, 0)])
    assert race.pairs == 1


def test_pairs_count_every_repetition(tmp_path: Path) -> None:
    # 3 stores by 2 lanes each, 5 loads by 1: 30 pairs
    store = at(STORE, 64, 64)._replace(times=3)
    load = at(LOAD, 64)._replace(times=5)
    found = {(r.first.act, r.second.act): r.pairs for r in races(tmp_path, [store], [load])}
    assert found == {("store", "load"): 30}


def test_a_loop_with_a_barrier_is_counted_round_by_round(tmp_path: Path) -> None:
    # three barriers in a row, then a store: interval 3, as the other warp's load
    rounds = WAIT._replace(times=3)
    [race] = races(tmp_path, [rounds, at(STORE, 64)], [WAIT, WAIT, WAIT, at(LOAD, 64)])
    assert race.interval == 3
    assert races(tmp_path, [rounds, at(STORE, 64)], [WAIT, WAIT, at(LOAD, 64), WAIT]) == ()


def test_a_warp_that_ended_does_not_hold_the_others_up(tmp_path: Path) -> None:
    shape = launch(block=(96, 1, 1), shared_static=256)
    ended = [at(STORE, 64)]
    late = [[WAIT, at(STORE, 64), WAIT], [WAIT, WAIT, at(LOAD, 64)]]
    assert races(tmp_path, ended, *late, shape=shape) == ()


def test_each_block_has_memory_of_its_own(tmp_path: Path) -> None:
    shape = launch(grid=(2, 1, 1), shared_static=256)
    trace = record(tmp_path, {(0, 0): [at(STORE, 64)], (1, 0): [at(LOAD, 64)]}, shape)
    assert find_races(trace.launches[0]).races == ()


def test_the_lowest_block_stands_for_all_whatever_the_order_of_rows(tmp_path: Path) -> None:
    shape = launch(grid=(2, 2, 1), block=(8, 4, 2), shared_static=256)
    history: History = {}
    for block in (3, 1):
        history[block, 1] = [at(LOAD, None, 68)]
        history[block, 0] = [at(STORE, 64, 68)]
    for block in (0, 2):
        history |= {(block, 0): [WAIT], (block, 1): [WAIT]}
    [race] = find_races(record(tmp_path, history, shape).launches[0]).races
    assert (race.block, race.blocks, race.pairs) == ((1, 0, 0), 2, 2)
    assert (race.first.threads, race.second.threads) == (((1, 0, 0),), ((1, 0, 1),))


def test_races_come_in_order_of_lines_one_for_each_pair_of_lines(tmp_path: Path) -> None:
    found = races(
        tmp_path,
        [at(ATOMIC, 64), at(STORE, 128, 132)],
        [at(LOAD, 64, 128), at(STORE, 132), at(STORE, 128)],
    )
    lines = [tuple(sorted((race.first.line, race.second.line))) for race in found]
    assert lines == [(1, 1), (1, 2), (2, 4)]
    assert [race.pairs for race in found] == [2, 1, 1]


def test_outside_every_variable_elements_count_from_the_start(tmp_path: Path) -> None:
    [race] = races(tmp_path, [at(STORE, 40)], [at(LOAD, 40)])
    assert (race.variable, race.element, race.itemsize) == ("", 10, 4)


@pytest.mark.parametrize(
    ("pc", "words"),
    [
        (PARTIAL, "a barrier is for 32 of the block's 64 threads at k.cu:10"),
        (NAMED, "a register names the barrier or its threads at k.cu:11"),
        (ARRIVE, "warps arrive without waiting at k.cu:12"),
        (PREDICATED, "a barrier depends on a predicate at k.cu:13"),
        (MBARRIER, "warps also meet at an mbarrier at k.cu:14"),
    ],
)
def test_special_barriers_are_not_checked(tmp_path: Path, pc: int, words: str) -> None:
    found = check(tmp_path, [at(STORE, 64), Event(pc)], [Event(pc), at(STORE, 64)])
    assert (found.refusal, found.races) == (words, ())


def test_a_barrier_for_all_threads_of_the_block_is_whole_by_any_number(tmp_path: Path) -> None:
    assert races(tmp_path, [at(STORE, 64), Event(WHOLE)], [Event(WHOLE), at(LOAD, 64)]) == ()


def test_lanes_that_come_to_a_barrier_in_two_groups_are_not_checked(tmp_path: Path) -> None:
    halves = [WAIT._replace(active=0xFFFF), WAIT._replace(active=0xFFFF0000)]
    words = "lanes of one warp come to a barrier one after another"
    assert check(tmp_path, halves, [WAIT, WAIT]).refusal == words


def test_lanes_that_left_before_a_barrier_are_no_second_group(tmp_path: Path) -> None:
    fewer = [WAIT, WAIT._replace(active=0xFFFF)]
    assert check(tmp_path, fewer, [WAIT, WAIT]).refusal == ""


def test_an_access_outside_shared_memory_means_a_broken_trace(tmp_path: Path) -> None:
    with pytest.raises(CutraceError, match=r"broken trace: .* outside the 256 bytes of a block"):
        check(tmp_path, [at(STORE, 256)], [WAIT])


def test_an_access_of_a_warp_that_ran_nothing_means_a_broken_trace(tmp_path: Path) -> None:
    lanes = warp(addresses=[0])
    for access in (
        Access(lanes, STORE, warp=1, space=Space.SHARED),
        Access(lanes, STORE, step=7, space=Space.SHARED),
    ):
        trace = hand_trace(
            tmp_path / "broken.cutrace",
            [access],
            launch=PAIR,
            instructions=INSTRUCTIONS,
            paths=[[(STORE, 1, 0, 0, 1)]],
            control=[(0, 0, 0, 0)],
        )
        with pytest.raises(CutraceError, match=r"broken trace: .*info --verify"):
            find_races(trace.launches[0])


def test_a_trace_without_control_rows_is_not_checked(tmp_path: Path) -> None:
    trace = hand_trace(tmp_path / "bare.cutrace", [Access(warp(base=0), space=Space.SHARED)])
    refusal = find_races(trace.launches[0]).refusal
    assert refusal == "the trace does not say what its warps ran"


def test_packed_columns_keep_order_where_their_ranges_do_not_fit_into_64_bits() -> None:
    wide = np.array([0, 1 << 40, 1 << 40, 5])
    packed = pack_columns([wide, wide[::-1], np.array([2, 1, 0, 2])])
    assert np.argsort(packed).tolist() == [0, 3, 2, 1]
    assert len(np.unique(packed)) == 4


PLACES = st.integers(0, 5)
EVENTS = st.one_of(
    st.builds(lambda pc, n: at(pc, *(4 * i for i in n)), st.sampled_from([STORE, LOAD, ATOMIC]),
              st.lists(PLACES, min_size=1, max_size=3)),
    st.builds(lambda n: at(WIDE, 16 * (n // 4)), PLACES),
    st.builds(lambda n: at(BYTE, 3 * n), PLACES),
    st.just(WAIT),
)  # fmt: skip
WARPS = st.lists(EVENTS, min_size=1, max_size=6)


def by_hand(history: History) -> Counter[tuple[int, int]]:
    """Pairs that race by their lines, lane by lane."""
    seen: dict[tuple[int, int], list[tuple[int, int, range]]] = {}
    for (block, number), events in history.items():
        interval = 0
        for event in events:
            interval += event.pc == BAR
            for address in event.lanes.addresses if event.lanes else ():
                if address is not None:
                    touched = range(address, address + WIDTHS.get(event.pc, 4))
                    seen.setdefault((block, interval), []).append((number, event.pc, touched))
    pairs: Counter[tuple[int, int]] = Counter()
    for those in seen.values():
        for (one, a, here), (other, b, there) in combinations(those, 2):
            written = {a, b} & {STORE, WIDE, ATOMIC} and {a, b} != {ATOMIC}
            if one != other and written and set(here) & set(there):
                pairs[min(a, b) + 1, max(a, b) + 1] += 1
    return pairs


@settings(max_examples=60)
@given(
    st.lists(st.tuples(WARPS, WARPS, WARPS), min_size=1, max_size=3), st.booleans(), st.booleans()
)
@pytest.mark.slow
def test_pairs_are_those_that_plain_python_finds(
    blocks: list[tuple[Sequence[Event], ...]], tight: bool, collide: bool
) -> None:
    """With hardly any memory, too, so that episodes are gathered and cut in many pieces; and where
    different episodes of one length have the same hash.
    """
    history = {(b, w): block[w] for b, block in enumerate(blocks) for w in range(3)}
    shape = launch(grid=(len(blocks), 1, 1), block=(96, 1, 1), shared_static=256)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if tight:
            for module, name in ((episodes, "MOST_PENDING"), (cells, "ROWS"), (cells, "CELLS")):
                patch.setattr(module, name, 1)
        if collide:
            patch.setattr(episodes, "_WEIGHTS", np.zeros(2, np.int64))
        found = find_races(record(Path(folder), history, shape).launches[0]).races
    counted = {tuple(sorted((r.first.line, r.second.line))): r.pairs for r in found}
    assert counted == by_hand(history)
