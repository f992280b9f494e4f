"""Checks of the table of instructions, and of the sums of active lanes."""

from collections.abc import Iterator

import numpy as np

from ..schema import ACCESS_KINDS, BARRIERS, CLASSES, COLLISIONS
from ..table.unique import sorted_unique
from .recorded import Finding, Recorded, column, report

_ALLOWED = {
    "space": frozenset({"", "const", "global", "local", "param", "shared", "tex"}),
    "class": frozenset(CLASSES),
    "access": frozenset({"", *ACCESS_KINDS}),
    "collision": frozenset({"", *COLLISIONS}),
}
"""Columns whose values are of a closed list."""


def check_instructions(recorded: Recorded) -> Iterator[Finding]:
    """Spaces and classes are known; a thread count needs a barrier, a line number a file."""
    for row in recorded.instructions.to_pylist():
        pc, name = row["pc"], row["mnemonic"]
        for key, values in _ALLOWED.items():
            if row[key] not in values:
                yield Finding(f"`{name}` in a {key} `{row[key]}`", pc)
        if bool(row["access"]) != bool(row["reads"] | row["writes"]):
            yield Finding(f"`{name}` accesses memory without a state space, or the reverse", pc)
        if row["barrier"] is None and row["barrier_threads"] is not None:
            yield Finding(f"`{name}` counts threads of no barrier", pc)
        if row["barrier"] is not None and not -1 <= row["barrier"] < BARRIERS:
            yield Finding(f"`{name}` waits at barrier {row['barrier']} of {BARRIERS}", pc)
        if row["line"] and not row["file"]:
            yield Finding(f"`{name}` has line {row['line']} of no file", pc)
        if name.partition(".")[0] != row["opcode"]:
            yield Finding(f"`{name}` with opcode `{row['opcode']}`", pc)


def check_lanes_on(recorded: Recorded) -> Iterator[Finding]:
    """Lanes on are of predicated instructions that neither access memory nor branch, once each."""
    predicated = recorded.of_instructions("predicate") != ""
    opcode = recorded.of_instructions("opcode")
    counted = predicated & (recorded.of_instructions("bytes") == 0) & (opcode != "bra")
    keys = [np.empty(0, np.int64)]
    for batch in recorded.trace.lanes_on_batches():
        pc = column(batch, "pc")
        yield from report(~counted[pc], "its instruction is not predicated, or has rows of its own")
        keys.append(column(batch, "block") * len(counted) + pc)
    sums = np.concatenate(keys)
    if len(sorted_unique(sums)) != len(sums):
        yield Finding("a block has two sums for one pc")
