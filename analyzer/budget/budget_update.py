"""Budget update: write the current numbers into a new budget file, or into an existing one."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import tomlkit
from tomlkit.items import Table

from ..counting.evaluate import Value
from ..launch_profile import LaunchProfile
from ..text.output import write_report
from .budget import Entry, Limit, read_budget
from .budget_check import Checker

FIRST: Mapping[str, str] = {
    "global_load_transactions": "global_load_transactions",
    "global_store_transactions": "global_store_transactions",
    "global_atomic_transactions": "global_atomic_transactions",
    "local_load_transactions": "local_load_transactions",
    "local_store_transactions": "local_store_transactions",
    "shared_conflicts": "shared_wavefronts",
    "constant_wavefronts": "constant_wavefronts",
    "texture_transactions": "texture_transactions",
    "divergent_branches": "branches",
}
"""Counters that a new budget limits, each if its related counter is not 0."""


def update_budget(path: Path, checker: Checker, compiler: str) -> int:
    """Write current numbers into a budget, keeping comments and layout, or create a new budget.

    Each limit becomes the worst value of the launches that it applies to. Return the number of
    limits.
    """
    return (_renew if path.exists() else _make)(path, checker, compiler)


def _renew(path: Path, checker: Checker, compiler: str) -> int:
    budget = read_budget(path)
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    document["compiler"] = compiler
    count = 0
    for entry, table in zip(budget.entries, document["budget"], strict=True):
        for limit in entry.limits:
            values = [
                checker.measure(entry, limit, launch, budget.where(entry))
                for launch in checker.launches(entry)
            ]
            if (value := _worst(limit, values)) is not None:
                table[limit.expression] = _written(limit, value)
            count += 1
    write_report(path, tomlkit.dumps(document))
    return count


def _make(path: Path, checker: Checker, compiler: str) -> int:
    profile = checker.profile
    document = tomlkit.document()
    able = [
        d for d in profile.devices if not all(p.refusal for p in profile.launches if p.device == d)
    ]
    document["devices"] = able
    document["compiler"] = compiler
    tables = tomlkit.aot()
    devices = able if len(able) > 1 else [""]
    kernels = dict.fromkeys(p.launch.name for p in profile.launches)
    for kernel in kernels:
        for device in devices:
            entry = Entry(len(tables), (), kernel, device=device)
            running = [p for p in checker.launches(entry) if not p.refusal]
            if numbers := dict(_numbers(running)):
                tables.append(_table(entry, numbers))
    document["budget"] = tables
    write_report(path, tomlkit.dumps(document))
    return sum(len(table) - 1 - ("device" in table) for table in tables)


def _numbers(launches: Iterable[LaunchProfile]) -> Iterator[tuple[str, int | float]]:
    """Yield the worst value of each counter that a kernel uses."""
    every = list(launches)
    for counter, used in FIRST.items():
        values = [p.counters[counter] for p in every if p.counters[used]]
        valid = [value for value in values if value is not None]
        if valid:
            yield counter, max(valid)


def _table(entry: Entry, numbers: Mapping[str, int | float]) -> Table:
    table = tomlkit.table()
    table["kernel"] = entry.kernel
    if entry.device:
        table["device"] = entry.device
    for name, value in numbers.items():
        table[name] = value
    return table


def _worst(limit: Limit, values: Iterable[Value]) -> int | float | None:
    """Return the extreme value, which all values satisfy as a limit."""
    valid = [value for value in values if value is not None]
    if not valid:
        return None
    return min(valid) if limit.operator.startswith(">") else max(valid)


def _written(limit: Limit, value: int | float) -> int | float | str:
    """Return a limit in the form it had: a number for "not more than", otherwise a string with its
    operator.
    """
    return value if limit.operator == "<=" else f"{limit.operator} {value}"
