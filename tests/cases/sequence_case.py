"""Random sequences of instructions that a GPU has run, and where cutrace differs from it."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHOWN = 4
"""Threads whose values are kept, beside a hash of all."""

CAPTURED = Path(__file__).parents[1] / "validate" / "sequences.parquet"


def digest(column: NDArray[Any]) -> int:
    """Return 64 bits that stand for all threads' values of a register."""
    data = np.ascontiguousarray(column, dtype="<u8").tobytes()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def differences(row: dict[str, Any], found: NDArray[np.uint64]) -> list[str]:
    """Return a line for every register that is not what the GPU left: the first one is the cause.

    `found` has a row a register. Registers without a hash are open.
    """
    hashes: Sequence[int | None] = row["hashes"]
    places = [
        k for k, wanted in enumerate(hashes) if wanted is not None and digest(found[k]) != wanted
    ]
    writers = _last_writers(row["ptx"])
    named = [(row["registers"][k], k) for k in places]
    ordered = sorted(named, key=lambda each: writers.get(each[0], (0, ""))[0])
    return [
        f"sequence {row['number']}: %{name}, last written by `{writers.get(name, (0, 'ld'))[1]}`: "
        f"{[hex(v) for v in found[k, :SHOWN]]}, the GPU has {[hex(v) for v in row['values'][k]]} "
        "in its first threads"
        for name, k in ordered
    ]


def _last_writers(ptx: str) -> dict[str, tuple[int, str]]:
    """Return the last line that writes each register, and its number."""
    found: dict[str, tuple[int, str]] = {}
    for number, line in enumerate(ptx.splitlines()):
        for statement in line.split(";"):
            words = re.match(r"\s*(?:@\S+\s+)?(?!st\.)[a-z]\S*\s+([^,]*(?:\{[^}]*\})?)", statement)
            for name in re.findall(r"%(\w+)", words[1]) if words else []:
                found[name] = number, line
    return found
