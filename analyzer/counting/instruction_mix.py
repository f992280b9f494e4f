"""The instruction mix: which kinds of instructions ran, and how many lanes ran them.

A *kind* follows NVIDIA's profilers: half, single and double precision (arithmetic, comparisons,
minima), integer, conversion, control flow, exchange between lanes, and other. Instructions that the
assembler removes (class `free` of the trace) have no kind. Memory instructions are counted by their
accesses. Of machine code, `with_pipes` adds which pipe issues each instruction, by pipes.toml: raw
counters `pipe_<name>`.

Source: PTX ISA; the lists of the inst_ and flop_count_ metrics, Profiler User's Guide 10.1.
"""

import re
from collections import Counter
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

import polars as pl
import pyarrow as pa

from ...base.config import read_toml
from ...models.replay.interface.model import ACCESSES
from ...traces.identity_cache import cached_by_identity
from .derived_columns import LAUNCH_COLUMN, Added, widen

WIDTHS = (1, 2, 4, 8, 16)
KINDS = ("half", "single", "double", "integer", "conversion", "control", "exchange", "other")
OPERATIONS = tuple(
    f"{precision}_{operation}"
    for precision in ("half", "single", "double")
    for operation in ("add", "mul", "fma", "special")
)
EXECUTED = ("lanes_executed", "lanes_on", "control_instructions")
LANES = tuple(
    f"{space}_{access}_lanes"
    for space, accesses in ACCESSES.items()
    for access in accesses
    if space != "bulk"  # whose lanes are pieces of a copy
)
ATOMICS = tuple(f"{s}_{a}" for s in ("global", "shared") for a in ("atomic", "reduction"))
MIX_COLUMNS = (
    *EXECUTED,
    *(f"lanes_{kind}" for kind in KINDS),
    *(f"lanes_{operation}" for operation in OPERATIONS),
    *(f"global_{access}_lanes_{width}" for access in ("load", "store") for width in WIDTHS),
    *(f"{space}_compared" for space in ("global", "shared")),
    "product_passes",
)
"""The raw counters that `with_mix` adds."""
_WARPGROUP_PRODUCT = r"(?:wgmma\.mma_async\S*\.m64n|[BHIQ]GMMA\.(?:SP\.)?64x)(\d+)"
_A_IN_SHARED = r"mma_async\S* \{[^}]*\}, [^{]|GMMA\S* R\d+, gdesc"
_SPARSE = r"mma_async\.sp\.|GMMA\.SP\."


def with_mix(counts: pl.DataFrame, instructions: pa.Table) -> pl.DataFrame:
    """Add MIX_COLUMNS to the counts of a launch.

    Reads the column `lanes` of `with_lanes`: lanes whose predicate was on. `lanes_on` counts every
    executed lane whose predicate was on: for a predicated memory instruction the lanes that made an
    access, for a predicated branch those that took it. `lanes_<operation>` counts the values of
    packed types. `<space>_compared` counts warp instructions that compare and swap.
    `product_passes` counts the wavefronts of shared memory that read the operands of a warpgroup's
    products: 128 bytes each, a quarter of them for each warp.
    """
    lane_columns = tuple(name for name in LANES if name in counts.columns)
    return widen(counts, _kinds(instructions), _mix(lane_columns))


@lru_cache(maxsize=64)
def _mix(lane_columns: tuple[str, ...]) -> Added:
    """Return the expressions of MIX_COLUMNS for counts that have these of LANES."""
    accessed = pl.sum_horizontal(lane_columns) if lane_columns else pl.lit(0, pl.Int64)
    source = tuple(name for name in lane_columns if name.startswith("global_load"))
    copied = pl.sum_horizontal(source) if source else pl.lit(0, pl.Int64)
    role = pl.col("role")
    executed = pl.when(role != "free").then(pl.col("thread_instructions")).otherwise(0)
    on = (
        pl.when(role == "memory")
        .then(accessed)
        .when(role == "copy")
        .then(copied)
        .when(role == "branch")
        .then(pl.max_horizontal("lanes_taken", "lanes"))
        .otherwise(pl.when(role == "free").then(0).otherwise(pl.col("lanes")))
    )
    added = {
        "lanes_executed": executed,
        "lanes_on": on,
        "control_instructions": pl.when(pl.col("kind") == "control")
        .then(pl.col("instructions"))
        .otherwise(0),
        **{f"lanes_{k}": pl.when(pl.col("kind") == k).then(on).otherwise(0) for k in KINDS},
        **{
            f"lanes_{o}": pl.when(pl.col("operation") == o).then(on * pl.col("values")).otherwise(0)
            for o in OPERATIONS
        },
        **{
            f"global_{a}_lanes_{w}": pl.when(pl.col("bytes") == w)
            .then(pl.col(f"global_{a}_lanes"))
            .otherwise(0)
            for a in ("load", "store")
            for w in WIDTHS
        },
        **{
            f"{space}_compared": pl.when("compares")
            .then(pl.col(f"{space}_atomic_requests") + pl.col(f"{space}_reduction_requests"))
            .otherwise(0)
            for space in ("global", "shared")
        },
        "product_passes": pl.col("passes") * pl.col("instructions"),
    }
    return Added(value.cast(pl.Int64).alias(name) for name, value in added.items())


@cached_by_identity
def _kinds(instructions: pa.Table) -> pl.DataFrame:
    """Return per pc its role, kind, operation, number of values, bytes, and whether it compares.

    A role is `free`, `memory`, `copy` or `branch` (each with a predicate), or `plain`. Memory and
    free instructions have an empty kind.
    """
    names = ["pc", "predicate", "class", "operation", "access", "values", "bytes", "text"]
    kind, operation, predicated = pl.col("class"), pl.col("operation"), pl.col("predicate") != ""
    computes = kind.is_in(["half", "single", "double"]) & (operation != "")
    return pl.DataFrame(instructions.select(names)).select(
        "pc",
        role=pl.when(kind == "free")
        .then(pl.lit("free"))
        .when(predicated & (operation == "branch"))
        .then(pl.lit("branch"))
        .when(predicated & (pl.col("access") == "copy"))
        .then(pl.lit("copy"))
        .when(predicated & (kind == "memory"))
        .then(pl.lit("memory"))
        .otherwise(pl.lit("plain")),
        kind=pl.when(kind.is_in(KINDS)).then(kind).otherwise(pl.lit("")),
        operation=pl.when(computes).then(kind + "_" + operation).otherwise(pl.lit("")),
        values=pl.col("values").cast(pl.Int64),
        bytes=pl.col("bytes").cast(pl.Int64),
        compares=operation == "cas",
        passes=_operand_passes(pl.col("text")),
    )


def _operand_passes(text: pl.Expr) -> pl.Expr:
    """Return the wavefronts of a warp's quarter of a product's operands in shared memory.

    A row of A or a column of B has 32 bytes; a column of B has 64 if A is sparse. An H100 reads
    each operand once.
    """
    columns = text.str.extract(_WARPGROUP_PRODUCT).cast(pl.Int64)
    of_a = pl.when(text.str.contains(_A_IN_SHARED)).then(64 * 32 // 128 // 4).otherwise(0)
    of_b = columns * pl.when(text.str.contains(_SPARSE)).then(64).otherwise(32) // 128 // 4
    return (of_a + of_b).fill_null(0)


FLOP_COLUMNS = tuple(f"flops_{name}" for name in ("half", "single", "double"))
FLOPS = Added((pl.col(name).fill_null(0) * pl.col("lanes")).alias(name) for name in FLOP_COLUMNS)


@cached_by_identity
def flops_of(instructions: pa.Table) -> pl.DataFrame:
    """Return the instructions that compute: `pc`, `predicated`, and FLOP_COLUMNS per lane."""
    table = pl.DataFrame(instructions.select(["pc", "predicate", "class", "flops"]))
    each = [
        pl.when(pl.col("class") == name.removeprefix("flops_"))
        .then("flops")
        .otherwise(0)
        .cast(pl.Int64)
        .alias(name)
        for name in FLOP_COLUMNS
    ]
    predicated = (pl.col("predicate") != "").alias("predicated")
    return table.filter(pl.col("flops") > 0).select("pc", predicated, *each)


def with_lanes(
    counts: pl.DataFrame, lanes_on: pl.DataFrame, instructions: pa.Table
) -> pl.DataFrame:
    """Add `lanes` to the counts of launches: the lanes that ran each instruction.

    The source is the models' `thread_instructions`. For predicated instructions it is `lanes_on`,
    the lanes whose predicate was on; predicated memory instructions and branches have 0. Both
    frames have the launch in LAUNCH_COLUMN.
    """
    predicated = _predicated(instructions).lazy()
    lanes = lanes_on.lazy().join(predicated, on="pc").select(LAUNCH_COLUMN, "pc", "scope", "lanes")
    joined = (
        counts.lazy()
        .select(LAUNCH_COLUMN, "pc", "array", "scope", "thread_instructions")
        .join(predicated, on="pc", how="left", maintain_order="left")
        .join(lanes, on=[LAUNCH_COLUMN, "pc", "scope"], how="left", maintain_order="left")
    )
    on = pl.when("predicated").then(pl.col("lanes").fill_null(0)).otherwise("thread_instructions")
    own = pl.when(pl.col("array") == "").then(on).otherwise(0)
    return counts.hstack(joined.select(lanes=own).collect())


@cached_by_identity
def _predicated(instructions: pa.Table) -> pl.DataFrame:
    """Return the `pc` of each predicated instruction, with the column `predicated`."""
    table = pl.DataFrame(instructions.select(["pc", "predicate"]))
    return table.filter(pl.col("predicate") != "").select("pc", predicated=pl.lit(True))


def with_flops(counts: pl.DataFrame, instructions: pa.Table) -> pl.DataFrame:
    """Add FLOP_COLUMNS to the counts of a launch: operations per lane, times `lanes`."""
    return widen(counts, flops_of(instructions), FLOPS)


NOTHING = (
    "no thread loaded or stored anything; if the kernel checks its bounds, none passed: give other"
    " numbers, or another shape"
)
NOT_KEPT = "no thread stored anything to global memory"
KEEPING = (
    *("global_store", "global_atomic", "global_reduction", "surface_store"),
    *("bulk_store", "bulk_reduction"),
)
"""Accesses whose effect outlives the launch."""
READING = ("const_",)
"""Accesses that a bounds check makes."""


def did_nothing(sums: Mapping[str, int]) -> bool:
    """Return whether no thread of a launch with these sums accessed memory other than constants."""
    return not any(not name.startswith(READING) for name in _used(sums))


def kept_nothing(sums: Mapping[str, int]) -> bool:
    """Return whether no thread changed memory that outlives the launch."""
    return not any(name.startswith(KEEPING) for name in _used(sums))


def _used(sums: Mapping[str, int]) -> list[str]:
    """Return the raw counters of requests that are not zero."""
    return [name for name, many in sums.items() if many and name.endswith("_requests")]


_PIPES = Path(__file__).with_name("pipes.toml")
_NO_PIPE = "-"
_READ = re.compile(r"\bSR_[A-Za-z]+")


@cache
def pipes_of(capability: tuple[int, int]) -> Mapping[str, Mapping[str, int]]:
    """Map each opcode to its pipes and how often it counts there; empty for other devices."""
    table = read_toml(_PIPES.read_text(encoding="utf-8"), str(_PIPES))
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
    names = dict.fromkeys(pipe for pipes in known.values() for pipe in pipes if pipe != _NO_PIPE)
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
