"""Patterns that are kept in memory or in a temporary file, by number."""

import numpy as np
import pytest

from cutrace.traces import pattern_store


def test_spilled_patterns_are_found_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_store, "HELD_BYTES", 4 * 132)
    store = pattern_store.PatternSpill()
    for number in range(10):
        mask = np.array([number + 1], np.uint32)
        assert store.add(mask, np.full((1, 32), -number, np.int32)) == number
    active, offsets = store.take(np.array([9, 0, 5, 0]))
    assert active.tolist() == [10, 1, 6, 1]
    assert offsets[:, 31].tolist() == [-9, 0, -5, 0]
