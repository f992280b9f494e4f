"""Whether the blocks of a launch can be run without one another, from the kernel's instructions."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

_SEES_OTHERS = frozenset({"volatile", "relaxed", "acquire", "mmio"})
_REACHES_OTHERS = frozenset({"gl", "sys", "gpu", "cluster"})
_FLOATS = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f64"})
_FENCES = frozenset({"membar", "fence"})


def why_dependent(instructions: pa.Table) -> str:
    """Return what makes blocks depend on one another, with its line; empty if nothing does.

    `instructions` are a kernel's as the trace has them. What two blocks do to one another by plain
    loads and stores is a race, and not seen here.
    """
    return _first(instructions, _why_dependent)


def why_in_order(instructions: pa.Table) -> str:
    """Return what keeps blocks from being run by several threads of this machine, as above."""
    return _first(instructions, lambda row: _why_dependent(row) or _why_in_order(row))


def _first(instructions: pa.Table, why: Callable[[dict[str, Any]], str]) -> str:
    """Return the first reason, with its instruction and line."""
    columns = ["opcode", "mnemonic", "space", "result_read", "file", "line"]
    for row in instructions.select(columns).to_pylist():
        if reason := why(row):
            place = f"{row['file']}:{row['line']}: " if row["line"] else ""
            return f"{place}`{row['mnemonic']}` {reason}"
    return ""


def _why_in_order(row: dict[str, Any]) -> str:
    if row["space"] not in ("global", "") or row["opcode"] not in ("atom", "red"):
        return ""
    if _FLOATS & frozenset(str(row["mnemonic"]).split(".")):
        return "adds floats, whose sum depends on the order"
    return "changes what other blocks change"


def _why_dependent(row: dict[str, Any]) -> str:
    modifiers = frozenset(str(row["mnemonic"]).split("."))
    if row["space"] not in ("global", ""):
        return ""
    if row["opcode"] == "atom" and row["result_read"] and "shared::cta" not in modifiers:
        return "reads what other blocks have added to"
    if row["opcode"] == "ld" and modifiers & _SEES_OTHERS and "cta" not in modifiers:
        return "waits for what other blocks store"
    if row["opcode"] in _FENCES and modifiers & _REACHES_OTHERS:
        return "orders what other blocks see"
    return ""
