"""What lanes touch, counted by compiled loops and over arrays, against sets."""

from collections import Counter

import numpy as np
import pytest

from cutrace.models.coalescer import Coalescer
from cutrace.models.replay.interface.model import Batch, Bools, Ints, Kind
from cutrace.models.replay.rows import touching
from cutrace.models.replay.rows.lanes import count_true, distinct_bytes, order_lanes
from cutrace.models.replay.rows.patterns import Shapes
from cutrace.traces.pattern_store import HeldPatterns

ROWS = 200


def draw(width: int, spread: int, seed: int) -> tuple[Ints, Bools]:
    """Addresses (ROWS, 32) within `spread` bytes, some of them negative, and the active lanes."""
    random = np.random.default_rng([width, spread, seed])
    addresses = random.integers(-spread // 2, spread // 2, (ROWS, 32))
    if seed % 2:
        addresses -= addresses % width
    return addresses, random.random((ROWS, 32)) < random.random((ROWS, 1))


def units(row: Ints, active: Bools, width: int, unit: int) -> set[int]:
    """The aligned units that some lanes of one group touch."""
    return {byte // unit for start in row[active].tolist() for byte in range(start, start + width)}


@pytest.fixture(params=[0, 1 << 60], ids=["compiled", "arrays"])
def worth(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Let the first row be worth compiling for, or none."""
    monkeypatch.setattr(touching, "WORTH", request.param)


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("spread", [64, 4096, 1 << 40])
@pytest.mark.parametrize("seed", [0, 1])
def test_distinct_bytes_are_those_of_a_set(width: int, spread: int, seed: int) -> None:
    addresses, active = draw(width, spread, seed)
    found = distinct_bytes(order_lanes(addresses, active), width)
    expected = [len(units(*pair, width, 1)) for pair in zip(addresses, active, strict=True)]
    assert found.tolist() == expected


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("rule", ["line", "sector"])
@pytest.mark.parametrize("lanes_together", [32, 8])
@pytest.mark.parametrize("width", [1, 4, 16])
@pytest.mark.parametrize("seed", [0, 1])
def test_transactions_are_those_that_arrays_list(
    rule: str, lanes_together: int, width: int, seed: int
) -> None:
    together = (lanes_together,) * 3
    model = Coalescer(rule, rule, rule, rule, rule, together, together)
    addresses, active = draw(width, 4096, seed)
    kinds, rows = (Kind("global", "load", "ca", width),), np.arange(ROWS)
    batch = Batch(kinds, np.zeros(ROWS, np.int64), addresses, active, rows)
    listed = Batch(kinds, batch.kind, addresses, active, rows, passes_on=True)
    counted, expected = model.step(batch), model.step(listed)
    assert counted.out is None
    assert expected.out is not None
    for name in Coalescer.counters:
        assert counted.counts[name].tolist() == expected.counts[name].tolist(), name
    size = 128 if rule == "line" else 32
    many = [
        sum(len(units(a, m, width, size)) for a, m in zip(groups, masks, strict=True))
        for groups, masks in zip(
            addresses.reshape(ROWS, -1, lanes_together),
            active.reshape(ROWS, -1, lanes_together),
            strict=True,
        )
    ]
    assert counted.counts["transactions"].tolist() == many
    assert counted.counts["bytes_moved"].tolist() == [size * transactions for transactions in many]
    lines = [  # by sectors touched: those of one line leave together
        Counter(sector // 4 for sector in units(a, m, width, 32)).values()
        for a, m in zip(addresses, active, strict=True)
    ]
    if rule == "sector" and lanes_together == 32:
        for sectors in range(1, 5):
            of_size = [list(row).count(sectors) for row in lines]
            assert counted.counts[f"transactions_{32 * sectors}"].tolist() == of_size


@pytest.mark.parametrize("many", [4, 8, 16, 32, 248, 256, 512])
def test_lanes_that_are_on_are_counted_however_many_there_are(many: int) -> None:
    flags = np.arange(many) < np.array([[0], [1], [many - 1], [many]])
    assert count_true(flags).tolist() == [0, 1, many - 1, many]


@pytest.mark.parametrize("spread", [64, 4096, 1 << 31])
def test_what_rows_touch_is_counted_once_for_all_stages(
    spread: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(touching, "WORTH", 0)
    random = np.random.default_rng(spread)
    offsets = random.integers(-spread // 2, spread // 2, (ROWS, 32)).astype(np.int32)
    masks = random.integers(1, 1 << 32, ROWS, np.uint32)
    kinds = tuple(Kind("global", "load", "ca", width) for width in (1, 4, 16, 160))
    kind, base = random.integers(0, len(kinds), ROWS), random.integers(1 << 33, 1 << 34, ROWS)
    shapes = Shapes(HeldPatterns(masks, offsets))
    rows = kinds, kind, base, np.arange(ROWS)
    plain, batch = shapes.rebuild(*rows), shapes.measure(*rows)
    assert (batch.addresses == plain.addresses).all()
    assert (batch.active == plain.active).all()
    assert batch.touched is not None
    for row in range(ROWS):
        lanes, width = (batch.addresses[row], batch.active[row]), kinds[kind[row]].width
        by_line = Counter(sector // 4 for sector in units(*lanes, width, 32))
        sizes = Counter(by_line.values())
        assert batch.touched.lines[row].tolist() == [sizes[n] for n in (1, 2, 3, 4)]
        assert batch.touched.bytes[row] == len(units(*lanes, width, 1))
        assert batch.touched.lanes[row] == int(masks[row]).bit_count()
