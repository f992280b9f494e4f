"""Distinct rows and how often each occurred: loops, compiled and as they stand, against arrays."""

import numpy as np
import pyarrow as pa
import pytest
from cases.tally_in_arrays import read_chunk, tally

from cutrace.base.errors import CutraceError
from cutrace.jit.loop import compile_module, interpret_module, loops_of, rows_asked
from cutrace.models.replay.histogram import counting
from cutrace.models.replay.histogram.counts import group_rows
from cutrace.models.replay.histogram.histogram import AccessHistogram, Bins
from cutrace.models.replay.interface.model import Kind
from cutrace.models.replay.rows import patterns as reach
from cutrace.models.replay.rows.patterns import Shapes
from cutrace.models.replay.rows.sites import SPACES, Sites, Zones, cut_zones
from cutrace.models.replay.schedule.place import Chip, Placement, place
from cutrace.traces.pattern_store import HeldPatterns
from cutrace.traces.schema import ACCESSES, Array, Sample, Space

LOADS = Sites(
    (Kind("global", "load", "ca", 4), Kind("shared", "load", "", 8)),
    np.array([-1, 0, 1, -1, -1, -1, -1, -1] * 3),  # 3 instructions; global is 1, shared is 2
    np.array([0, 4, 8, 0, 0, 0, 0, 0] * 3),
    np.zeros(3, np.int64),
)
ZONES = cut_zones(
    [
        Array("in", Space.GLOBAL, 4096, 1024, 4),
        Array("out", Space.GLOBAL, 5120, 1024, 4),
        Array("tile", Space.SHARED, 0, 512, 4),
    ]
)
BLOCKS = 40


def draw(rows: int, patterns: int, seed: int) -> tuple[pa.RecordBatch, Shapes]:
    """Rows of ACCESSES in and around the arrays, and the patterns that they name."""
    random = np.random.default_rng([rows, patterns, seed])
    columns = {
        "block": random.integers(0, BLOCKS, rows),
        "warp": np.zeros(rows),
        "step": np.arange(rows),
        "part": np.zeros(rows),
        "pc": random.integers(0, 3, rows),
        "space": random.choice([Space.GLOBAL, Space.SHARED], rows),
        "base": 4 * random.integers(0, 1600, rows),
        "pattern": np.sort(random.integers(0, patterns, rows)),
    }
    arrays = [
        pa.array(columns[column.name].astype(column.type.to_pandas_dtype())) for column in ACCESSES
    ]
    offsets = 4 * random.integers(-8, 32, (patterns, 32)).astype(np.int32)
    masks = np.full(patterns, 0xFFFFFFFF, np.uint32)
    return pa.RecordBatch.from_arrays(arrays, schema=ACCESSES), Shapes(HeldPatterns(masks, offsets))


def as_set(found: Bins) -> dict[tuple[int, ...], list[list[int]]]:
    """How often each distinct row occurred, for each device and scope."""
    columns = (found.site, found.pattern, found.phase, found.zone, found.mixed)
    keys = zip(*(column.tolist() for column in columns), strict=True)
    return dict(zip(keys, found.times.transpose(1, 0, 2).tolist(), strict=True))


@pytest.fixture(params=[-1, 1 << 60], ids=["compiled", "as they stand"], autouse=True)
def worth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops of both kinds."""
    monkeypatch.setattr(counting, "WORTH", request.param)


def count_both(
    batch: pa.RecordBatch,
    shapes: Shapes,
    period: int,
    placements: list[Placement],
    zones: Zones = ZONES,
) -> tuple[Bins, Bins]:
    """What the loops find, and what the arrays do."""
    found = AccessHistogram(LOADS, shapes, zones, period, placements).count(batch)
    chunk = read_chunk(batch, LOADS, shapes, zones)
    return found, tally(chunk, period, len(zones.names), placements)


@pytest.mark.parametrize("period", [128, 384, 1])
@pytest.mark.parametrize("patterns", [1, 3, 500])
@pytest.mark.parametrize("rows", [1, 2000])
def test_the_loops_find_the_rows_that_the_arrays_find(
    rows: int, patterns: int, period: int
) -> None:
    chips = [Chip(2, 1, 1.0), Chip(30, 3, 1.0)]
    batch, shapes = draw(rows, patterns, period)
    found, expected = count_both(batch, shapes, period, [place(chip, BLOCKS) for chip in chips])
    assert as_set(found) == as_set(expected)
    assert found.times.sum() == len(chips) * rows


def test_the_loops_count_a_sampled_block_as_often_as_it_stands_for() -> None:
    batch, shapes = draw(300, 2, 0)
    sample = Sample(tuple(range(BLOCKS)), (3,) * BLOCKS)
    placement = place(Chip(2, 1, 1.0), 3 * BLOCKS, None, sample)
    found, expected = count_both(batch, shapes, 128, [placement])
    assert as_set(found) == as_set(expected)
    assert found.times.sum() == 3 * 300


def test_the_tables_are_used_again_for_the_next_batch() -> None:
    placements = [place(Chip(2, 1, 1.0), BLOCKS)]
    batch, shapes = draw(500, 9, 1)
    counter = AccessHistogram(LOADS, shapes, ZONES, 128, placements)
    first, second = counter.count(batch), counter.count(batch)
    assert as_set(first) == as_set(second)


def test_patterns_far_apart_are_none_that_the_next_batch_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reach, "DENSE", 8)
    batch, shapes = draw(50, 9, 3)
    masks, offsets = shapes.store.take(np.arange(9))
    many = Shapes(HeldPatterns(np.resize(masks, 801), np.roll(np.resize(offsets, (801, 32)), 5)))
    number = pa.array(100 * batch["pattern"].to_numpy())  # 4 * 50 < 801 patterns
    far = batch.set_column(7, ACCESSES.field("pattern"), number)
    counter = AccessHistogram(LOADS, many, ZONES, 128, [place(Chip(2, 1, 1.0), BLOCKS)])
    for rows in (far, batch, far, batch):
        chunk = read_chunk(rows, LOADS, many, ZONES)
        expected = tally(chunk, 128, len(ZONES.names), counter.placements)
        assert as_set(counter.count(rows)) == as_set(expected)


def test_the_loops_refuse_a_row_in_a_space_that_its_instruction_cannot_reach() -> None:
    batch, shapes = draw(50, 1, 2)
    space = batch["space"].to_numpy().copy()
    space[17] = Space.LOCAL
    broken = batch.set_column(5, ACCESSES.field("space"), pa.array(space))
    with pytest.raises(CutraceError, match=f"no accesses to space {Space.LOCAL.value}, but"):
        count_both(broken, shapes, 128, [place(Chip(2, 1, 1.0), BLOCKS)])


def test_loops_are_compiled_once_enough_rows_have_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "WORTH", 1 << 13)
    monkeypatch.setitem(rows_asked, counting.__name__, counting.WORTH)
    assert loops_of(counting, 0) is interpret_module(counting.__name__)
    assert loops_of(counting, 1) is compile_module(counting.__name__)


def test_the_loops_know_how_many_spaces_there_are() -> None:
    assert counting.SPACES == SPACES


def test_sums_are_of_each_group_and_scope() -> None:
    site, zone = np.array([8, 16, 8, 8]), np.array([0, 0, 1, 0])
    times = np.array([[1, 0], [2, 3], [0, 5], [0, 7]])
    table = np.array([[10, 20, 30], [1, 0, 0]])
    groups = group_rows(site, zone, np.array([True, True, False, True]))
    many, sums = groups.sum(table, np.array([0, 1, 2, 2]), times)
    assert list(zip(groups.site, groups.zone, strict=True)) == [(8, 0), (16, 0)]
    assert many.tolist() == [[1, 2], [7, 3]]
    assert sums[0].tolist() == [[1 * 10, 1 * 1], [2 * 20, 0]]
    assert sums[1].tolist() == [[7 * 30, 0], [3 * 20, 0]]
