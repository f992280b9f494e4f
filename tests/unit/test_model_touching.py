"""What lanes touch, counted by compiled loops, against sets of bytes and against arrays."""

import numpy as np
import pytest

from cutrace.models.coalescer import Coalescer
from cutrace.models.replay import lanes, touching
from cutrace.models.replay.compiled import compile_if_worth
from cutrace.models.replay.seam import Batch, Bools, Ints, Kind

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


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the first row be worth compiling for."""
    monkeypatch.setattr(lanes, "WORTH", 0)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("spread", [64, 4096, 1 << 40])
@pytest.mark.parametrize("seed", [0, 1])
def test_distinct_bytes_are_those_of_a_set(width: int, spread: int, seed: int) -> None:
    addresses, active = draw(width, spread, seed)
    found = lanes.distinct_bytes(addresses, active, width)
    expected = [len(units(*pair, width, 1)) for pair in zip(addresses, active, strict=True)]
    assert found.tolist() == expected


@pytest.mark.usefixtures("compiled")
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


def test_loops_are_compiled_once_enough_rows_have_come() -> None:
    name = touching.__name__
    assert compile_if_worth(name, 0, 1 << 60) is None
    assert compile_if_worth(name, 1, 0) is not None


def test_the_table_is_empty_again_after_each_group() -> None:
    keys, masks, order = touching.make_table()
    distinct = np.zeros(2, np.int64)
    twice = np.array([[0, 40], [0, 40]])
    touching.count_bytes(twice, np.ones((2, 2), np.bool_), 4, keys, masks, order, distinct)
    assert distinct.tolist() == [8, 8]
    assert (keys == touching.EMPTY).all()
