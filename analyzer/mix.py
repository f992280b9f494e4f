"""The instruction mix: what kinds of instructions ran, and how many lanes ran them.

A *kind* is what NVIDIA's profilers tell apart: half, single and double precision (arithmetic,
comparisons, minima), integers, conversions, control flow, exchange between lanes, and the rest.
What an assembler turns into nothing (`models/control.py`) is of no kind. Memory instructions are
counted by their accesses.

Source: PTX ISA; the lists of the inst_ and flop_count_ metrics, Profiler User's Guide 10.1.
"""

from collections.abc import Iterator, Mapping

import polars as pl
import pyarrow as pa

from ..models.control import BRANCHES, FREE
from ..models.replay.seam import ACCESSES
from .arithmetic import PRECISIONS
from .widen import widen

Instruction = Mapping[str, object]

CONTROL = frozenset({*BRANCHES, "call", "ret", "exit", "trap"})
EXCHANGE = frozenset({"shfl", "vote", "match", "redux", "activemask", "elect"})
CONVERSION = frozenset({"cvt"})
MEMORY = frozenset(
    {
        *("ld", "ldu", "st", "atom", "red", "cp", "ldmatrix", "stmatrix", "wmma", "prefetch"),
        *("prefetchu", "tex", "tld4", "suld", "sust", "sured"),
    }
)
INTEGER = frozenset(
    {
        *("add", "sub", "addc", "subc", "mul", "mul24", "mad", "mad24", "madc", "div", "rem"),
        *("sad", "min", "max", "abs", "neg", "dp4a", "dp2a", "set", "setp"),
        *("and", "or", "xor", "not", "cnot", "lop3", "shl", "shr", "shf", "bmsk", "szext"),
        *("bfe", "bfi", "bfind", "fns", "brev", "popc", "clz", "prmt"),
    }
)
FLOATING = frozenset(
    {
        *("add", "sub", "mul", "fma", "mad", "div", "rcp", "sqrt", "rsqrt", "min", "max", "abs"),
        *("neg", "set", "setp", "sin", "cos", "lg2", "ex2", "tanh", "testp", "copysign"),
    }
)
OPERATION: Mapping[str, str] = {
    **dict.fromkeys(("add", "sub"), "add"),
    "mul": "mul",
    **dict.fromkeys(("fma", "mad"), "fma"),
    **dict.fromkeys(("div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh"), "special"),
}
WIDTHS = (1, 2, 4, 8, 16)
KINDS = ("half", "single", "double", "integer", "conversion", "control", "exchange", "other")
OPERATIONS = tuple(
    f"{precision}_{operation}"
    for precision in ("half", "single", "double")
    for operation in ("add", "mul", "fma", "special")
)
EXECUTED = ("lanes_executed", "lanes_on", "control_instructions")
LANES = tuple(f"{space}_{a}_lanes" for space, accesses in ACCESSES.items() for a in accesses)
ATOMICS = tuple(f"{s}_{a}" for s in ("global", "shared") for a in ("atomic", "reduction"))
COLUMNS = (
    *EXECUTED,
    *(f"lanes_{kind}" for kind in KINDS),
    *(f"lanes_{operation}" for operation in OPERATIONS),
    *(f"global_{access}_lanes_{width}" for access in ("load", "store") for width in WIDTHS),
    *(f"{space}_compared" for space in ("global", "shared")),
)
"""The raw counters that `with_mix` adds."""


def with_mix(counts: pl.DataFrame, instructions: pa.Table) -> pl.DataFrame:
    """The counts of a launch with COLUMNS beside them.

    Reads the column `lanes` of `arithmetic.with_lanes`: lanes whose predicate was on. `lanes_on`
    counts every executed lane whose predicate was on: of a memory instruction with a predicate
    those that made an access, of a branch with one those that took it. `lanes_<operation>` counts
    the values of packed types.
    `<space>_compared` are warp instructions that compare and swap.
    """
    known = [name for name in LANES if name in counts.columns]
    accessed = pl.sum_horizontal(known) if known else pl.lit(0, pl.Int64)
    whose = pl.col("role")
    executed = pl.when(whose != "free").then(pl.col("thread_instructions")).otherwise(0)
    on = (
        pl.when(whose == "memory")
        .then(accessed)
        .when(whose == "branch")
        .then(pl.col("lanes_taken"))
        .otherwise(pl.when(whose == "free").then(0).otherwise(pl.col("lanes")))
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
    }
    columns = [value.cast(pl.Int64).alias(name) for name, value in added.items()]
    return widen(counts, _kinds(instructions), columns)


def without_mix(counts: pl.DataFrame) -> pl.DataFrame:
    """Counts of accesses over several arrays, with COLUMNS of zeros: they are counted elsewhere."""
    return counts.with_columns([pl.lit(0, pl.Int64).alias(name) for name in COLUMNS])


def _kinds(instructions: pa.Table) -> pl.DataFrame:
    """For each pc its role, kind, operation and number of values, bytes, and whether it compares.

    A role is `free`, `memory` or `branch` (either with a predicate), or `plain`.
    """
    names = ["pc", "opcode", "mnemonic", "type", "predicate", "space", "bytes"]
    rows = [tuple(_row(row)) for row in instructions.select(names).to_pylist()]
    schema = {
        "pc": pl.UInt32,
        "role": pl.String,
        "kind": pl.String,
        "operation": pl.String,
        "values": pl.Int64,
        "bytes": pl.Int64,
        "compares": pl.Boolean,
    }
    return pl.DataFrame(rows, schema, orient="row")


def _row(row: Instruction) -> Iterator[object]:
    role, kind = _role(row), _kind(row)
    precision, values = PRECISIONS.get(str(row["type"]), ("", 0))
    operation = OPERATION.get(str(row["opcode"]), "") if kind == precision else ""
    yield from (row["pc"], role, "" if role == "free" else kind)
    yield from (f"{precision}_{operation}" if operation else "", values, row["bytes"])
    yield "cas" in str(row["mnemonic"]).split(".")


def _role(row: Instruction) -> str:
    opcode = str(row["opcode"])
    if opcode in BRANCHES:
        return "branch" if row["predicate"] else ("plain" if opcode == "brx" else "free")
    if opcode in FREE or (opcode == "ld" and row["space"] == "param"):
        return "free"
    return "memory" if opcode in MEMORY and row["predicate"] else "plain"


def _kind(row: Instruction) -> str:
    """One of KINDS; empty for memory."""
    opcode, type_ = str(row["opcode"]), str(row["type"])
    if opcode in MEMORY:
        return ""
    for kind, opcodes in (
        ("control", CONTROL),
        ("exchange", EXCHANGE),
        ("conversion", CONVERSION),
    ):
        if opcode in opcodes:
            return kind
    if type_ in PRECISIONS and opcode in FLOATING:
        return PRECISIONS[type_][0]
    return "integer" if opcode in INTEGER else "other"
