"""Independence of the blocks of a launch, from the kernel's instructions."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ....traces.schema import STRONG_LOADS
from ...engine.op.update import is_any_order

_REACHES_OTHERS = frozenset({"sys", "gpu", "cluster"})
_OF_CLUSTERS = frozenset({"mapa", "getctarank"})
_FENCES = frozenset({"membar", "fence"})


def why_dependent(instructions: pa.Table) -> str:
    """Return what makes blocks depend on one another, with its line; empty if nothing does.

    `instructions` are a kernel's as the trace has them. What two blocks do to one another by plain
    loads and stores is a race, and not seen here.
    """
    return _first(instructions, _why_dependent)


def why_in_order(instructions: pa.Table) -> str:
    """Return what keeps blocks from being run by several threads of this machine, as above."""
    updates: dict[tuple[str, str], str] = {}

    def why(row: dict[str, Any]) -> str:
        if row["space"] in ("global", "") and row["access"] in ("atomic", "reduction"):
            operation = str(row["operation"])
            if not is_any_order(operation, row["type"]):
                what = "adds floats, and their sum" if operation == "add" else "leaves what"
                return f"{what} depends on the order of blocks"
            updates[operation, row["type"]] = row["mnemonic"]
            if len(updates) > 1:
                return f"and `{next(iter(updates.values()))}` may change one word by turns"
        return ""

    return _first(instructions, lambda row: _why_dependent(row) or why(row))


def _first(instructions: pa.Table, why: Callable[[dict[str, Any]], str]) -> str:
    """Return the first reason, with its instruction and line."""
    columns = ["opcode", "mnemonic", "type", "space", "access", "operation", "order", "scope"]
    columns += ["result_read", "file", "line"]
    for row in instructions.select(columns).to_pylist():
        if reason := why(row):
            place = f"{row['file']}:{row['line']}: " if row["line"] else ""
            return f"{place}`{row['mnemonic']}` {reason}"
    return ""


def _why_dependent(row: dict[str, Any]) -> str:
    if (
        row["opcode"] in _OF_CLUSTERS
        or row["mnemonic"].startswith("barrier.cluster")
        or ("multicast::cluster" in row["mnemonic"])
    ):
        return "waits for other blocks of its cluster, or reaches their memory"
    if row["space"] not in ("global", ""):
        return ""
    if row["access"] == "atomic" and row["result_read"]:
        return "reads what other blocks have added to"
    if row["access"] == "load" and row["order"] in STRONG_LOADS and row["scope"] != "cta":
        return "waits for what other blocks store"
    if row["opcode"] in _FENCES and row["scope"] in _REACHES_OTHERS:
        return "orders what other blocks see"
    return ""
