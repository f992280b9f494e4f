"""The order of tests: what takes minutes to set up comes first: no core waits at the end."""

import pytest

FIRST = "test_counters.py"
"""Compares a thousand launches with a chip; all of its tests read what one fixture records."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != FIRST)
