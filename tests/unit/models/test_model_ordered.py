"""What caches find: in which order the rows of a launch reach them, and what is there at first.

Every load here is of one sector by all lanes, and L1 has room for a single line.
"""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hand_trace import Access, instruction, launch, write_rows
from warps import BASE, warp

from cutrace.jit.loop import rows_asked
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.histogram.counting import Bounds
from cutrace.models.replay.interface.options import ReplayOptions
from cutrace.models.replay.replay import replay
from cutrace.models.replay.schedule import schedule as schedules
from cutrace.models.replay.schedule import turns
from cutrace.models.replay.schedule.schedule import ISSUE_SLOT
from cutrace.models.replay.stateful import ordered, reorder_buffer, reorder_loops
from cutrace.models.replay.stateful import ordered as distinct
from cutrace.models.replay.stateful import ordered as line
from cutrace.models.replay.stateful import ordered as units
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.writer import TraceWriter

LINE = 128
LOADS = 2 * ISSUE_SLOT
ONE_LINE: dict[str, object] = {"l1.bytes": LINE, "l1.ways": 1, "l1.beside_shared": False}
ONE_SM: dict[str, object] = ONE_LINE | {"chip.sms": 1, "chip.sms_per_cluster": 1}


def write(path: Path, *launches: list[Access]) -> Trace:
    """A trace of launches whose blocks have two warps."""
    with TraceWriter(path) as trace:
        for rows in launches:
            blocks = 1 + max(row.block for row in rows)
            with trace.launch(launch(grid=(blocks, 1, 1), block=(64, 1, 1))) as writer:
                write_rows(writer, rows, [instruction(0)])
    return read_trace(path)


def loads(number: int, block: int = 0, wid: int = 0, times: int = 1) -> list[Access]:
    """A warp loads a word of a line again and again, an instruction each."""
    lanes = warp(stride=0, base=BASE + LINE * number)
    return [Access(lanes, block=block, warp=wid, step=step) for step in range(times)]


def found(
    trace: Trace,
    number: int = 0,
    schedule: str = "round-robin",
    settings: dict[str, object] = ONE_LINE,
    l2: str = "cold",
) -> dict[str, int]:
    """The sectors that each cache of a V100 was asked for, and that it had."""
    device = load_device("v100", settings)
    (counts,) = replay(trace.launches[number], [device], ReplayOptions(schedule=schedule, l2=l2))
    names = [f"{cache}_{what}" for cache in ("l1", "l2") for what in ("reads", "read_hits")]
    return {name: int(counts.counts[f"global_load_{name}"].sum()) for name in names}


def test_a_launch_finds_nothing_that_an_earlier_one_left(tmp_path: Path) -> None:
    """Two launches load a line twice each: one miss and one hit in L1, one miss in L2, each."""
    trace = write(tmp_path / "a.cutrace", loads(0, times=2), loads(0, times=2))
    expected = {"l1_reads": 2, "l1_read_hits": 1, "l2_reads": 1, "l2_read_hits": 0}
    assert found(trace, 0) == found(trace, 1) == expected


def test_a_warm_l2_has_what_the_same_launch_left_and_l1_has_nothing(tmp_path: Path) -> None:
    """Two loads of a line: one miss and one hit in L1, and L2 has the line that L1 misses."""
    trace = write(tmp_path / "a.cutrace", loads(0, times=2))
    expected = {"l1_reads": 2, "l1_read_hits": 1, "l2_reads": 1, "l2_read_hits": 1}
    assert found(trace, l2="warm") == expected


def test_a_warm_l2_has_no_more_than_it_holds(tmp_path: Path) -> None:
    """Four lines in turn, in an L2 of one set of two lines: the last two have pushed the first two
    out, which then push out these; of two lines, both are there.
    """
    small = ONE_SM | {"l2.bytes": 2 * LINE, "l2.ways": 2, "l2.sets": None, "l2.fetch": 0}
    for lines, hits in ((4, 0), (2, 2)):
        rows = [Access(warp(stride=0, base=BASE + LINE * n), step=n) for n in range(lines)]
        trace = write(tmp_path / f"{lines}.cutrace", rows)
        expected = {"l1_reads": lines, "l1_read_hits": 0, "l2_reads": lines, "l2_read_hits": hits}
        assert found(trace, settings=small, l2="warm") == expected


def test_a_block_finds_in_l2_and_not_in_l1_what_another_sm_has_read(tmp_path: Path) -> None:
    """Three blocks on three SMs: three misses in L1, of which L2 has two after the first."""
    trace = write(tmp_path / "a.cutrace", [row for b in range(3) for row in loads(0, block=b)])
    expected = {"l1_reads": 3, "l1_read_hits": 0, "l2_reads": 3, "l2_read_hits": 2}
    assert found(trace) == expected


def test_l2_is_one_behind_units_that_join_what_their_sms_read(tmp_path: Path) -> None:
    """Twelve blocks on twelve SMs of an H200, four a unit: three reads of L2, two after the first.

    What is behind the units belongs to none of them.
    """
    trace = write(tmp_path / "a.cutrace", [row for b in range(12) for row in loads(0, block=b)])
    (counts,) = replay(trace.launches[0], [load_device("h200")], ReplayOptions())
    names = ("lrc_joined", "l2_reads", "l2_read_hits")
    assert [int(counts.counts[f"global_load_{name}"].sum()) for name in names] == [9, 3, 2]


def test_blocks_of_one_sm_find_in_l1_what_each_other_has_read(tmp_path: Path) -> None:
    trace = write(tmp_path / "a.cutrace", [row for b in range(3) for row in loads(0, block=b)])
    expected = {"l1_reads": 3, "l1_read_hits": 2, "l2_reads": 1, "l2_read_hits": 0}
    assert found(trace, settings=ONE_SM) == expected


@pytest.mark.parametrize("apart", ["warps", "blocks"])
@pytest.mark.parametrize("schedule", ["round-robin", "greedy-oldest"])
def test_the_schedule_decides_what_l1_still_has(apart: str, schedule: str, tmp_path: Path) -> None:
    """Two warps of one SM load a line of their own each, where there is room for one.

    In turns of TURN instructions each takes the other's line away: in every turn the first load
    misses. One after the other, each misses once. What L1 misses is in L2 after the first time.
    """
    place = {"wid": 1} if apart == "warps" else {"block": 1}
    rows = loads(0, times=LOADS) + loads(1, times=LOADS, **place)
    trace = write(tmp_path / "a.cutrace", rows)
    misses = 2 if schedule == "greedy-oldest" else 2 * LOADS // ISSUE_SLOT
    assert found(trace, schedule=schedule, settings=ONE_SM) == {
        "l1_reads": 2 * LOADS,
        "l1_read_hits": 2 * LOADS - misses,
        "l2_reads": misses,
        "l2_read_hits": misses - 2,
    }


def test_rows_are_put_in_order_however_they_lie_in_the_trace(tmp_path: Path) -> None:
    """The second block's rows come first: the oldest block still runs to its end before it."""
    first, second = loads(0, block=0, times=LOADS), loads(1, block=1, times=LOADS)
    mixed = [row for pair in zip(second, first, strict=True) for row in pair]
    trace = write(tmp_path / "a.cutrace", mixed)
    assert found(trace, schedule="greedy-oldest", settings=ONE_SM)["l1_read_hits"] == 2 * (
        LOADS - 1
    )


def many_loads(path: Path) -> Trace:
    """Three blocks load 24 lines each, every lane one, some of them from one another's arrays."""
    rows = [
        Access(
            warp(stride=4 * (1 + step % 3), base=BASE + LINE * ((block + step) % 24)),
            step=step,
            block=block,
        )
        for step in range(24)
        for block in range(3)
    ]
    return write(path, rows)


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (reorder_buffer, "FEW", 1),
        (reorder_buffer, "FEW_BASES", Bounds(0, 0)),
        (reorder_buffer, "NUMBERS", 0),
        (schedules, "SHORT", 1),
        (schedules, "SHORT", 16),
        (units, "WORD", 0),
        (distinct, "POOLED", 1),
        (distinct, "POOLED_REQUESTS", 3),
        (ordered, "QUEUED_REQUESTS", 1),
        (ordered, "ROWS_PER_BATCH", 5),
        (line, "WORTH", 0),
        (reorder_loops, "WORTH", -1),
        (turns, "WORTH", -1),
    ],
)
def test_nothing_depends_on_how_many_rows_are_looked_at_together(
    where: ModuleType, name: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Little room for groups, numbers and distinct rows, few rows at a time, more threads,
    loops that are compiled."""
    for loop in (reorder_loops, turns):
        monkeypatch.setitem(rows_asked, loop.__name__, 0)
    trace = many_loads(tmp_path / "a.cutrace")
    expected = found(trace, settings={})
    assert expected["l1_reads"] == 3 * 8 * (4 + 8 + 12)
    assert 0 < expected["l1_read_hits"] < expected["l1_reads"]
    monkeypatch.setattr(where, name, value)
    for loop in (reorder_loops, turns):
        monkeypatch.setitem(rows_asked, loop.__name__, 0)
    assert found(trace, settings={}) == expected


def test_what_goes_wrong_in_another_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "WORTH", 0)
    with line.assembly_line(1) as both:
        assert both is not None
        both.submit(0, int, "seven")
        with pytest.raises(ValueError, match="seven"):
            both.finish()
        assert both.behind is not None
        both.submit(0, both.behind.submit, 0, int, "eight")
        with pytest.raises(ValueError, match="eight"):
            both.finish()
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    with line.assembly_line(1) as alone:
        assert alone is None


def test_what_is_read_ahead_comes_in_order_and_then_what_went_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read() -> Iterator[int]:
        yield from range(5)
        raise ValueError("broken")

    monkeypatch.setattr(line, "WORTH", 0)
    with line.read_ahead(read(), 1) as numbers:
        assert [next(numbers) for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(ValueError, match="broken"):
            next(numbers)
