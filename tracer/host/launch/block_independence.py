"""Independence of the blocks of a launch, from the kernel's instructions."""

from typing import Any

import pyarrow as pa

from ....traces.schema import STRONG_LOADS

_REACHES_OTHERS = frozenset({"sys", "gpu", "cluster"})
_OF_CLUSTERS = frozenset({"mapa", "getctarank"})
_FENCES = frozenset({"membar", "fence"})


def why_dependent(instructions: pa.Table) -> str:
    """Return what makes blocks depend on one another, with its line; empty if nothing does.

    `instructions` are a kernel's as the trace has them. What two blocks do to one another by plain
    loads and stores is a race, and not seen here.
    """
    columns = ["opcode", "mnemonic", "type", "space", "access", "operation", "order", "scope"]
    columns += ["result_read", "file", "line"]
    for row in instructions.select(columns).to_pylist():
        if reason := _why_dependent(row):
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
