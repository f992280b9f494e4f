"""The machine code of a kernel as the engine runs it: assembled, lifted, linked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from ...base.dataclass import dataclass
from ...base.errors import CutraceError
from ...traces.imports.sass import facts_of
from ...traces.machine_schedule import CODE_BYTES, pack_schedule
from ..front.resources import assemble_for, find_body, mark_lines, single_kernel
from ..front.sass import read_lines, read_schedule, sections
from ..isa.table import instruction_rows, to_table
from ..ptx.kernel import CallTarget, Kernel, Location, Module, Symbol, Variable
from ..ptx.kernel import Instruction as Operation
from ..ptx.link import link_kernel
from ..ptx.parse import parse_module
from ..simt.kernel.layout import shared_layout
from ..simt.kernel.spin_loop import link_with_divergent_sync
from . import (
    access,
    arithmetic,
    bulk,
    call,
    conversion,
    exchange,
    floating,
    half,
    move,
    product,
    tensor_memory,
    texture,
)
from .cubin import Code, Cubin, Instruction, read_code, reading
from .lift import Lifted, Lifter
from .reconvergence import find_meetings, reconverge

_FAMILIES = (
    *(arithmetic, floating, half, conversion, move, access, texture, product, exchange, call),
    *(bulk, tensor_memory),
)
HANDLERS = {opcode: handler for each in _FAMILIES for opcode, handler in each.HANDLERS.items()}
_STACK = "machine_stack"
_RESERVED = "reserved_shared_memory"
_CLUSTERED = frozenset({"reqnctapercluster", "maxclusterrank", "explicitcluster"})
"""Directives of kernels whose addresses of shared memory have a block's rank."""


@dataclass(frozen=True)
class MachineKernel:
    """The lifted kernel, and the machine's instructions by row, of an architecture (`sm_89`).

    `schedule` has the stalls of all instructions, with their rows as pcs. `parameters` is where
    those of a cubin's kernel begin in constant bank 0.
    """

    arch: str
    kernel: Kernel
    instructions: tuple[Instruction, ...]
    schedule: str = ""
    parameters: int = 0

    @property
    def table(self) -> pa.Table:
        """The machine's instructions as a table of the trace."""
        return _table(self)


def machine_kernel(
    ptx: str, module: Module, like: Kernel, arch: str, options: Sequence[str] = ()
) -> MachineKernel:
    """Return a kernel's machine code for an architecture (`sm_89`), as ptxas makes it."""
    single = single_kernel(ptx, like.name)
    cubin = assemble_for(mark_lines(single), arch, ("-lineinfo", *options))
    code = read_code(cubin, like.name)
    places = _places(cubin, code, module.functions[like.name].instructions)
    return _lifted(single, like, code, places)


def cubin_kernel(cubin: Cubin, frame: str, like: Kernel) -> MachineKernel:
    """Return a kernel of a cubin; `frame` declares it (frame.py), and `like` is that kernel."""
    with reading(cubin.file):
        code = cubin.code(like.name)
    machine = _lifted(single_kernel(frame, like.name), like, code, {})
    return replace(machine, parameters=code.parameters)


def _lifted(
    single: str, like: Kernel, code: Code, places: Mapping[int, Location | None]
) -> MachineKernel:
    directives = like.functions[0].function.directives
    lifted = Lifter(code, like.parameters, not _CLUSTERED.isdisjoint(directives)).lift(
        HANDLERS, tensor_memory.prepare_pairs
    )
    text, first = _text(single, like.name, lifted)
    parsed = parse_module(text)
    linked = link_with_divergent_sync(parsed, like.name)
    if lifted.flow.rejoins:  # lanes come back from a recursion apart
        meetings = {
            pc for pc, each in enumerate(linked.instructions)
            if each.mnemonic == "bar.warp.sync"
            and (owner := lifted.lines.get(each.ptx_line - first))
            and owner.address % CODE_BYTES
        }  # fmt: skip
        linked = link_kernel(parsed, like.name, linked.meetings | meetings)
    machine = _with_rows(linked, like, code, lifted, first, places)
    if others := find_meetings(machine.kernel) - linked.meetings:
        linked = link_kernel(parsed, like.name, linked.meetings | others)
        machine = _with_rows(linked, like, code, lifted, first, places)
    return machine


def _text(ptx: str, kernel: str, lifted: Lifted) -> tuple[str, int]:
    """Return PTX with the lifted body in place of the kernel's, and the body's first line."""
    start, end = find_body(ptx, kernel)
    frame = f".local .align 16 .b8 {_STACK}[{lifted.frame}];" if lifted.frame else ""
    head = f"{ptx[:start]}{{{frame}\n"
    return f"{head}{lifted.text}\n{ptx[end - 1 :]}", head.count("\n") + 1


def _places(
    cubin: bytes, code: Code, instructions: Sequence[Operation]
) -> Mapping[int, Location | None]:
    """Return the place in the source of each address."""
    table = next((each for each in sections(cubin) if each.name == ".debug_line"), None)
    lines = read_lines(table.of(cubin)) if table else {}
    by_line = {i.ptx_line: i.location for i in instructions}
    places: dict[int, Location | None] = {}
    last: Location | None = None
    for each in code.instructions:
        if each.address in lines:
            last = by_line.get(lines[each.address], last)
        places[each.address] = last
    return places


def _with_rows(
    linked: Kernel, like: Kernel, code: Code, lifted: Lifted, first: int,
    places: Mapping[int, Location | None],
) -> MachineKernel:  # fmt: skip
    owners: list[Instruction] = []
    rows: list[int] = []
    instructions = []
    for each in linked.instructions:
        owner = lifted.lines.get(each.ptx_line - first, owners[-1] if owners else None)
        if owner is None:
            raise CutraceError(f"kernel `{like.name}`: an operation belongs to no instruction")
        if each.opcode == "trap" and not owner.opcode.startswith("BPT"):
            rows.append(len(owners))  # the trap of a switch lies behind the code: a separate row
        else:
            if not owners or owners[-1].address < owner.address:
                owners.append(owner)
            rows.append(len(owners) - 1)
        text = f"/*{owner.address:04x}*/ {owner.text}{_callee(each)}"
        instructions.append(replace(each, text=text, location=places.get(owner.address)))
    if rows[-1] == len(owners):
        owners.append(Instruction(owners[-1].address + CODE_BYTES, "BPT.TRAP", ("0x1",), "", 1))
    (span,) = linked.functions
    layout = shared_layout(like)
    shared = tuple(replace(v, space="shared") for v in layout.variables.values())
    if lifted.reserved:
        shared = (Variable(_RESERVED, "shared", "b8", lifted.reserved, lifted.reserved), *shared)
    stack = tuple(v for v in span.function.variables if v.name == _STACK)
    function = replace(
        span.function, variables=(*shared, *stack), instructions=tuple(instructions),
        directives=like.functions[0].function.directives,
    )  # fmt: skip
    kernel = replace(
        linked,
        functions=(replace(span, function=function),),
        instructions=tuple(instructions),
        rows=tuple(rows),
    )
    addresses = [owners[row].address for row in rows]
    kernel = reconverge(kernel, addresses, lifted.flow)
    return MachineKernel(f"sm_{code.capability}", kernel, tuple(owners), _schedule(code, owners))


def _callee(operation: Operation) -> str:
    """Return the name of the driver's function that an operation calls, in parentheses."""
    for operand in operation.operands:
        if isinstance(operand, CallTarget) and isinstance(operand.callee, Symbol):
            return f" ({operand.callee.name})"
    return ""


def _schedule(code: Code, owners: Sequence[Instruction]) -> str:
    """Return the schedule of the code; unreachable words have a pc of no instruction."""
    pcs = dict.fromkeys(range(0, len(code.text), CODE_BYTES), len(owners))
    pcs |= {each.address: row for row, each in enumerate(owners)}
    return pack_schedule([*read_schedule(code.text, pcs, code.capability)])


def _table(machine: MachineKernel) -> pa.Table:
    kernel = machine.kernel
    traps = {pc for pc, each in enumerate(kernel.instructions) if each.opcode == "trap"}
    last = {row: pc for pc, row in reversed([*enumerate(kernel.rows)])}  # of a trap the first
    last |= {row: pc for pc, row in enumerate(kernel.rows) if pc not in traps}
    block_of = {pc: b.number for b in kernel.blocks for pc in range(b.first, b.last)}
    operations = instruction_rows(kernel)
    touching = dict[int, int]()
    for pc, row in enumerate(kernel.rows):
        if operations[pc]["access"]:
            touching[row] = pc
    calls = {
        row: each.text
        for row, each in zip(kernel.rows, kernel.instructions, strict=True)
        if each.opcode == "call"
    }
    rows = []
    for row, each in enumerate(machine.instructions):
        pc = touching.get(row, last[row])
        facts, lifted = facts_of(each.opcode), operations[pc]
        entry = {
            **lifted,
            "pc": row,
            "block": block_of[last[row]],
            "opcode": facts.opcode,
            "mnemonic": each.opcode,
            "predicate": "" if each.guard in ("PT", "UPT") else each.guard,
            "text": calls.get(row, lifted["text"]),
            "class": facts.kind if facts.kind != "memory" or row in touching else "other",
            "operation": facts.operation or (lifted["operation"] if facts.access else ""),
            "values": facts.values,
            "flops": facts.flops,
            "collision": facts.collision,
        }
        if facts.access or row not in touching:
            entry |= {
                name: getattr(facts, name)
                for name in ("access", "reads", "writes", "order", "scope", "cache", "space")
            }
            entry["bytes"] = lifted["bytes"] if row in touching else facts.bytes
        if each.address % CODE_BYTES:  # no instruction of the code
            entry["class"] = "free"
        rows.append(entry)
    numbers = {block: n for n, block in enumerate(dict.fromkeys(row["block"] for row in rows))}
    for entry in rows:  # blocks inside of an instruction have no number
        entry["block"] = numbers[entry["block"]]
    return to_table(rows)
