import doctest
import importlib
import linecache
import pkgutil

import pytest

import cutrace

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(cutrace.__path__, "cutrace.")
    if module.name.split(".")[1] not in {"tests", "scripts", "docs", "__main__"}
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_hold(name: str) -> None:
    linecache.clearcache()  # else doctest looks at each file of it, for each docstring
    assert doctest.testmod(importlib.import_module(name)).failed == 0
