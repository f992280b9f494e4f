"""Which pipe issues each machine instruction: raw counters `pipe_<name>`, by pipes.toml."""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import polars as pl
import pyarrow as pa

from ...base.config import read_toml
from .derived_columns import Added, widen

TABLE = Path(__file__).with_name("pipes.toml")
NONE = "-"
_READ = re.compile(r"\bSR_[A-Za-z]+")


@cache
def pipes_of(capability: tuple[int, int]) -> Mapping[str, Mapping[str, int]]:
    """Map each opcode to its pipes and how often it counts there; empty for other devices."""
    table = read_toml(TABLE.read_text(encoding="utf-8"), str(TABLE))
    pipes = table.get(f"{capability[0]}.{capability[1]}", {})
    found: dict[str, Counter[str]] = {}
    for pipe, opcodes in pipes.items():
        for opcode in opcodes.split():
            found.setdefault(opcode, Counter())[pipe] += 1
    return found


def with_pipes(
    counts: pl.DataFrame, instructions: pa.Table, capability: tuple[int, int]
) -> pl.DataFrame:
    """Add a column for each pipe, if these are machine instructions and all that ran are known."""
    known = pipes_of(capability)
    names = dict.fromkeys(pipe for pipes in known.values() for pipe in pipes if pipe != NONE)
    if not names:
        return counts
    ran = set(counts.filter(pl.col("instructions") > 0)["pc"].unique().to_list())
    rows = []
    for each in instructions.select(["pc", "opcode", "mnemonic", "text"]).to_pylist():
        pipes = _pipes(known, each["mnemonic"], each["text"]) if each["opcode"].isupper() else None
        if pipes is None:
            if each["pc"] in ran:
                return counts
            pipes = {}
        rows.append({"pc": each["pc"], **{name: pipes.get(name, 0) for name in names}})
    if not rows:
        return counts
    schema = {"pc": pl.UInt32, **dict.fromkeys(names, pl.Int64)}
    added = Added((pl.col(n) * pl.col("instructions")).alias(f"pipe_{n}") for n in names)
    return widen(counts, pl.DataFrame(rows, schema), added)


def _pipes(
    known: Mapping[str, Mapping[str, int]], mnemonic: str, text: str
) -> Mapping[str, int] | None:
    """Return the pipes of an instruction: by what it reads, two words of its opcode, or one."""
    words = mnemonic.split(".")
    read = _READ.search(text)
    names = (f"{words[0]}.{read[0]}" if read else "", ".".join(words[:2]), words[0])
    return next((known[name] for name in names if name in known), None)
