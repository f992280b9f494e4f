"""Whole traces written by hand, through the public TraceWriter."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from warps import Warp

from cutrace.tracer.isa.table import facts_of
from cutrace.tracer.ptx.kernel import Guard, Instruction, Register
from cutrace.traces.reader import Trace, read_trace
from cutrace.traces.schema import INSTRUCTIONS, Array, Launch, Space
from cutrace.traces.writer import LaunchWriter, TraceWriter

MEGABYTE = 1 << 20
Entry: TypeAlias = tuple[int, int, int, int, int]
"""One entry of a path: (block, active, taken, targets, repeat)."""

DEVICE_ARRAY = Array("data", Space.GLOBAL, 0x1000_0000, MEGABYTE, 4, (MEGABYTE // 4,))


@dataclass(frozen=True)
class Access:
    """One row of ACCESSES."""

    lanes: Warp
    pc: int = 0
    block: int = 0
    warp: int = 0
    step: int = 0
    part: int = 0
    space: Space = Space.GLOBAL


def instruction(pc: int, mnemonic: str = "ld.global.f32", **columns: object) -> dict[str, object]:
    """One row of INSTRUCTIONS: 4 bytes a lane at line pc + 1 of `k.cu`, unless told otherwise."""
    words = mnemonic.split(".")
    row: dict[str, object] = {
        "pc": pc,
        "block": 0,
        "function": "k",
        "opcode": words[0],
        "mnemonic": mnemonic,
        "predicate": "",
        "space": next((w for w in words if w in ("global", "shared", "local", "const")), ""),
        "type": words[-1] if len(words) > 1 else "",
        "bytes": 4 if words[0] in ("ld", "st", "atom", "red") else 0,
        "cache": "",
        "barrier": None,
        "barrier_threads": None,
        "result_read": True,
        "file": "k.cu",
        "line": pc + 1,
        "column": 1,
        "inlined_at": [],
        "text": f"{mnemonic} ...;",
    }
    row |= facts(mnemonic, columns.get("predicate"), bool(columns.get("result_read", True)))
    assert columns.keys() <= row.keys()
    return row | columns


def facts(mnemonic: str, predicate: object, result_read: bool) -> dict[str, object]:
    """What a mnemonic says of itself, as the tracer has it; its lanes never share an address."""
    opcode, *modifiers = mnemonic.split(".")
    guard = Guard(Register(str(predicate), "pred")) if predicate else None
    columns = asdict(
        facts_of(Instruction(opcode, tuple(modifiers), (), guard, mnemonic, 0), result_read)
    )
    collision = "serial" if opcode in ("atom", "red") else ""
    return {"class": columns.pop("kind"), **columns, "collision": collision}


def instruction_table(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows of `instruction` as a table of schema INSTRUCTIONS."""
    return pa.Table.from_pylist([dict(row) for row in rows], schema=INSTRUCTIONS)


def launch(**fields: object) -> Launch:
    """A launch of one block of 32 threads with one megabyte of global memory at 0x10000000."""
    plain: dict[str, object] = {
        "kernel": "k",
        "signature": "k(float *data)",
        "grid": (1, 1, 1),
        "block": (32, 1, 1),
        "shared_static": 0,
        "shared_dynamic": 0,
        "local_bytes": 0,
        "arrays": (DEVICE_ARRAY,),
    }
    return Launch(**(plain | fields))  # type: ignore[arg-type]


def write_rows(
    rows: LaunchWriter,
    accesses: Iterable[Access] = (),
    instructions: Sequence[Mapping[str, object]] = (),
    paths: Sequence[Sequence[Entry]] = (),
    control: Sequence[tuple[int, int, int, int]] = (),
) -> None:
    """Write one launch; `control` rows are (block, warp, step, path).

    Without `instructions` each pc of `accesses` is a load of 4 bytes a lane.
    """
    listed = list(accesses)
    count = 1 + max((access.pc for access in listed), default=0)
    table = instructions or [instruction(pc) for pc in range(count)]
    rows.instructions(instruction_table(table))
    for access in listed:
        pattern = rows.patterns([access.lanes.active], [access.lanes.offsets])
        place = (access.block, access.warp, access.step, access.part, access.pc)
        rows.accesses(*place, access.space, access.lanes.base, pattern)
    for entries in paths:
        blocks, active, taken, targets, repeat = zip(*entries, strict=True)
        rest = [a ^ t if n else t for a, t, n in zip(active, taken, targets, strict=True)]
        rows.paths([len(entries)], blocks, active, rest, targets, repeat)
    for row in control:
        rows.control(*row)


def hand_trace(
    path: Path,
    accesses: Iterable[Access] = (),
    *,
    launch: Launch | None = None,
    instructions: Sequence[Mapping[str, object]] = (),
    paths: Sequence[Sequence[Entry]] = (),
    control: Sequence[tuple[int, int, int, int]] = (),
) -> Trace:
    """Write a trace of one launch to `path` and read it."""
    with TraceWriter(path) as trace, trace.launch(launch or _LAUNCH) as rows:
        write_rows(rows, accesses, instructions, paths, control)
    return read_trace(path)


_LAUNCH = launch()
