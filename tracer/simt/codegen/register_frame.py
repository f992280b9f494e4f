"""The register frame of a warp: the place of each register, and of the special registers.

Registers share places as a linear-scan register allocator would give them, those that outlive their
basic block within a function, and those of functions that are never active together. A register
that only holds a parameter of the kernel needs no place: all lanes have the same constant in it.
Special registers are in tables of the launch, of a thread block and of a warp.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Set
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....base.dataclass import dataclass
from ...ptx.digraph import order_components
from ...ptx.kernel import (
    TYPE_BYTES,
    Address,
    Instruction,
    Kernel,
    Operand,
    Register,
    Special,
    Symbol,
)
from ...ptx.opcodes import destinations, sources
from ..decode.load_module import Symbols, symbol_address
from ..decode.special_register import (
    OF_ONE_LAUNCH,
    block_values,
    place_values,
    thread_values,
)
from ..kernel.function_pointer import calls
from ..kernel.launch import Launch
from ..kernel.layout import local_stride, parameter_offsets
from ..kernel.passing import ANY, Passing, Piece, piece_register, shared_register
from ..ops.lanes import LANES, Array
from .block_part import RUN, WARP, kind_of, reads_parameter


def parameter_registers(kernel: Kernel, escaped: Container[int] = ()) -> dict[tuple[int, str], int]:
    """Return the offset into the parameters for each register that holds one, (function, name).

    A single instruction writes it, in every lane and before any read, and only computing
    instructions read it. The others, and those that the array engine runs (`escaped`), read the
    frame.
    """
    offsets = parameter_offsets(kernel)
    own = [pc for b in kernel.blocks if b.function == 0 for pc in range(b.first, b.last)]
    instructions = [kernel.instructions[pc] for pc in sorted(own)]
    written = Counter(r.name for i in instructions for r in destinations(i))
    placed = _read_from_frames(kernel, escaped)
    register_offsets: dict[tuple[int, str], int] = {}
    for instruction in instructions:
        to = instruction.operands[0] if instruction.operands else None
        if not isinstance(to, Register) or instruction.guard is not None or to.name in placed:
            continue
        offset = _offset(instruction, offsets, register_offsets)
        if offset is not None and written[to.name] == 1 and _fits(instruction, to):
            register_offsets[0, to.name] = offset
    return register_offsets


def _read_from_frames(kernel: Kernel, escaped: Container[int]) -> set[str]:
    """Return the registers that are read before they are written, or by a non-computing
    instruction."""
    names = {name for _, name in kernel.live_in[kernel.functions[0].entry]}
    for block in kernel.blocks:
        for pc in range(block.first, block.last):
            instruction = kernel.instructions[pc]
            if pc == block.last - 1 or pc in escaped or kind_of(instruction) != RUN:
                names.update(register.name for register in sources(instruction))
            if pc in escaped:
                names.update(register.name for register in destinations(instruction))
    return names


def _offset(
    instruction: Instruction, offsets: dict[str, int], register_offsets: dict[tuple[int, str], int]
) -> int | None:
    """Return the offset of the parameter that an instruction loads into a register, else None."""
    source = instruction.operands[-1]
    if reads_parameter(instruction) and isinstance(source, Address):
        base = source.base
        if isinstance(base, Symbol) and base.name in offsets:
            return offsets[base.name] + base.offset + source.offset
    is_copy = instruction.opcode == "mov"
    if is_copy or (instruction.opcode == "cvta" and instruction.space == "global"):
        return register_offsets.get((0, source.name)) if isinstance(source, Register) else None
    return None


def _fits(instruction: Instruction, to: Register) -> bool:
    return to.type != "pred" and TYPE_BYTES[to.type] == TYPE_BYTES[instruction.type]


ALIGN = 64

CARRY = Register("%cc", "pred")
"""The carry flag of extended-precision sums: each function has its own, and it outlives its
block."""


@dataclass(frozen=True, slots=True)
class Place:
    """The offset in the frame, and the bytes per lane."""

    offset: int
    size: int


Span: TypeAlias = tuple[tuple[int, str], int, int]
"""A register, (function, name), with the first and the last part or basic block that uses it."""


class Frame:
    """The places of registers, (function, name). Those that outlive a basic block share places with
    others that are never live at the same time, the others between blocks. `specials` are the
    places of special registers.

    `symbols` are the addresses of variables, (function, name). `parameters` are the registers
    without a place, with offsets into the parameters; `overlaid` are those that share theirs. The
    array engine runs the instructions `escaped` (pcs). `others` are the places of pieces of
    function parameters, (function, name, offset, bytes). `depth` is the place of each lane's
    recursion depth; a level has `local_stride` bytes of local memory.
    """

    def __init__(
        self,
        kernel: Kernel,
        symbols: Symbols,
        escaped: Container[int] = (),
    ) -> None:
        self.kernel = kernel
        self._symbols = symbols
        self._places: dict[tuple[int, str], Place] = {}
        self.passing = Passing(kernel)
        self.local_stride = local_stride(kernel)
        self.specials = Specials(special_names(kernel))
        self.parameters = parameter_registers(kernel, escaped)
        live = frozenset().union(*kernel.live_in, *kernel.live_out, passed_registers(kernel))
        self.passed = passed_registers(kernel)
        self.carries = frozenset((function, CARRY.name) for function in _carrying(kernel))
        self.lasting = (live | self.carries) - self.parameters.keys()
        self.size = 0
        self.overlaid = self.lasting - self._exclusive(escaped)
        for key in sorted(self.lasting - self.overlaid):
            self._places[key] = self._reserve(self._size(key))
        self._overlay(self.overlaid)
        self.others: dict[Piece, Place] = {}
        for piece in self.passing.pieces():
            self.others[piece] = self._share(piece_register(piece), self._reserve(piece[3]))
        for function, name in passed_registers(kernel):
            shared = shared_register(kernel, function, name)
            self._share(shared, self._places[function, name])
        self.depth = self._reserve(4) if self.passing.recursive else Place(0, 4)
        self._lasting_size = self.size

    def _exclusive(self, escaped: Container[int]) -> Set[tuple[int, str]]:
        """Return the registers that no function may overwrite.

        They pass values between functions, are read before they are written (as zero, or as the
        last call left them), lanes read them that are elsewhere, or a barrier writes them in all
        lanes.
        """
        kernel = self.kernel
        entries = (kernel.live_in[span.entry] for span in kernel.functions)
        exchanged: set[tuple[int, str]] = set()
        for block in kernel.blocks:
            for pc in range(block.first, block.last):
                instruction = kernel.instructions[pc]
                is_barrier = instruction.opcode in ("bar", "barrier")
                if is_barrier or pc in escaped or kind_of(instruction) == WARP:
                    registers = (*sources(instruction), *destinations(instruction))
                    exchanged.update((block.function, register.name) for register in registers)
        return frozenset().union(self.passed, self.carries, exchanged, *entries)

    def _overlay(self, keys: Set[tuple[int, str]]) -> None:
        """Reserve places as a stack has frames: those of a function begin behind those of all its
        callers, so that functions that are never active together share them.

        Lanes of a warp may be at different instructions at a time. A place is therefore shared only
        between registers of the same size, in which each lane has the same bytes.
        """
        functions = range(len(self.kernel.functions))
        graph: dict[int, set[int]] = {number: set() for number in functions}
        for caller, _, callee in calls(self.kernel):
            graph[caller].add(callee)
        spans: dict[tuple[int, int], list[Span]] = {}
        for span in spans_of_blocks(self.kernel, keys):
            spans.setdefault((self._size(span[0]), span[0][0]), []).append(span)
        for size in sorted({size for size, _ in spans}, reverse=True):
            stack: list[Place] = []
            base = dict.fromkeys(graph, 0)
            for part in order_components(graph):  # callers first; functions of a cycle are one part
                end = max(base[number] for number in part)
                for number in sorted(part):
                    slots = scan(spans.get((size, number), ()))
                    first, end = end, end + max(slots.values(), default=-1) + 1
                    stack += [self._reserve(size) for _ in range(end - len(stack))]
                    self._places.update({key: stack[first + slot] for key, slot in slots.items()})
                for callee in {callee for number in part for callee in graph[number]}:
                    base[callee] = max(base[callee], end)

    def _share(self, register: Register, place: Place) -> Place:
        """Share a register between all functions."""
        self._places[ANY, register.name] = place
        self.lasting |= {(ANY, register.name)}
        return place

    def is_shared(self, name: str) -> bool:
        """Return whether all functions share a register of this name: it outlives every basic
        block."""
        return (ANY, name) in self.lasting

    def _reserve(self, size: int) -> Place:
        place = Place(self.size, size)
        self.size = -(-(self.size + LANES * size) // ALIGN) * ALIGN
        return place

    def _size(self, key: tuple[int, str]) -> int:
        function, name = key
        if name == CARRY.name:
            return TYPE_BYTES[CARRY.type]
        return TYPE_BYTES[self.kernel.functions[function].function.registers[name]]

    @property
    def row_bytes(self) -> dict[str, int]:
        """Bytes of a warp's frame, and of the rows of the special register tables."""
        rows = self.specials.row_bytes
        return {
            "FRAME_BYTES": self.size,
            "OF_WARP_BYTES": rows[THREAD],
            "OF_BLOCK_BYTES": rows[BLOCK],
        }

    def place(self, function: int, name: str) -> Place:
        """Return the place of a register."""
        own_place = self._places.get((function, name))
        return self._places[ANY, name] if own_place is None else own_place

    def has_place(self, function: int, name: str) -> bool:
        """Return whether a register has a place, for somebody reads it."""
        return (function, name) in self._places or (ANY, name) in self._places

    def lasting_place(self, key: object) -> Place | None:
        """Return the place of a register, or of a piece of a parameter, that outlives its basic
        block; None for others, and for what is constant."""
        match key:
            case (int(function), str(name), int(offset), int(size)):
                return self.others.get((function, name, offset, size))
            case (int(function), str(name)) if (function, name) in self.lasting:
                return self.place(function, name)
        return None

    def begin_block(self, spans: Iterable[Span]) -> None:
        """Allocate places to the registers of a block that do not outlive it.

        Each comes with the first and last part that uses it. A place is free from the part after
        the last use on: one part may read the one register and write the other.
        """
        by_size: dict[int, list[Span]] = {}
        for span in spans:
            by_size.setdefault(self._size(span[0]), []).append(span)
        self.size, end = self._lasting_size, self.size
        for size, group in sorted(by_size.items(), reverse=True):
            slots = scan(group)
            places = [self._reserve(size) for _ in range(max(slots.values()) + 1)]
            self._places.update({key: places[slot] for key, slot in slots.items()})
        self.size = max(self.size, end)

    def address_of(self, function: int, operand: Operand) -> int | None:
        """Return the address of a variable, None if it has no known address."""
        if not isinstance(operand, Symbol):
            return None
        start = symbol_address(self.kernel, self._symbols, function, operand.name)
        return None if start is None else start + operand.offset


def spans_of_blocks(kernel: Kernel, keys: Set[tuple[int, str]]) -> list[Span]:
    """Return the first and the last basic block in which each register is live or used."""
    first: dict[tuple[int, str], int] = {}
    last: dict[tuple[int, str], int] = {}
    for block in kernel.blocks:
        instructions = kernel.instructions[block.first : block.last]
        registers = (r for i in instructions for r in (*sources(i), *destinations(i)))
        used = {(block.function, register.name) for register in registers}
        for key in used.union(kernel.live_in[block.number], kernel.live_out[block.number]) & keys:
            first.setdefault(key, block.number)
            last[key] = block.number
    return [(key, first[key], last[key]) for key in sorted(first)]


def scan(spans: Iterable[Span]) -> dict[tuple[int, str], int]:
    """Allocate registers to slots 0, 1, ...: a linear scan. Those with disjoint spans share.

    >>> scan([((0, "a"), 0, 2), ((0, "b"), 1, 3), ((0, "c"), 3, 4)])
    {(0, 'a'): 0, (0, 'b'): 1, (0, 'c'): 0}
    """
    slots: dict[tuple[int, str], int] = {}
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    for key, first, last in sorted(spans, key=lambda span: span[1]):
        while busy and busy[0][0] < first:
            heappush(free, heappop(busy)[1])
        slots[key] = heappop(free) if free else len(busy)
        heappush(busy, (last, slots[key]))
    return slots


def _carrying(kernel: Kernel) -> set[int]:
    """Return the functions that have a carry flag."""
    return {
        block.function
        for block in kernel.blocks
        for instruction in kernel.instructions[block.first : block.last]
        if "cc" in instruction.modifiers or instruction.opcode in ("addc", "subc", "madc")
    }


def passed_registers(kernel: Kernel) -> set[tuple[int, str]]:
    """Return the registers that pass values between functions."""
    return {
        (number, variable.name)
        for number, span in enumerate(kernel.functions)
        for variable in (*span.function.parameters, *span.function.returns)
        if variable.space == "reg"
    }


def special_names(kernel: Kernel) -> list[str]:
    """Return the special registers that a kernel reads."""
    return sorted(
        {o.name for i in kernel.instructions for o in i.operands if isinstance(o, Special)}
    )


LAUNCH, BLOCK, THREAD = "launch", "block", "thread"
"""The owner of a special register. Its table has one row, one row per block of the wave, or one row
per warp of a block with 32 contiguous lanes."""

TABLE_ALIGN = 8


@dataclass(frozen=True, slots=True)
class SpecialPlace:
    """The table, the offset in its row, and the bytes of a value."""

    table: str
    offset: int
    size: int


_OF_WORKSPACE = ("%envreg1", "%envreg2")
"""The registers that hold the address of the cooperative groups workspace, where a module has
one."""


def _kinds() -> dict[str, tuple[str, int]]:
    """Return the owner and the bytes of each special register."""
    launch = Launch((1, 1, 1), (2 * LANES, 1, 1), 0, (), print)
    kinds = {
        name: (THREAD if value.shape[1] > 1 else LAUNCH, value.dtype.itemsize)
        for name, value in thread_values(launch).items()
    }
    first = np.zeros(1, dtype=np.int64)
    blocks = block_values(launch, first) | place_values(launch, first)
    for name in _OF_WORKSPACE:
        del kinds[name]
    del blocks["%warpid"]  # each warp of each block has its own: the array engine knows it
    return kinds | {name: (BLOCK, value.dtype.itemsize) for name, value in blocks.items()}


_KINDS = _kinds()


class Specials:
    """Places of the special registers `names`, of those that are constant for a thread."""

    def __init__(self, names: Iterable[str]) -> None:
        self.places: dict[str, SpecialPlace] = {}
        self.row_bytes = {LAUNCH: 0, BLOCK: 0, THREAD: 0}
        self._of_launch: tuple[tuple[object, ...], dict[str, NDArray[np.uint8]]] = (), {}
        for name in names:
            if name in _KINDS:
                table, size = _KINDS[name]
                self.places[name] = SpecialPlace(table, self.row_bytes[table], size)
                row = size * LANES if table == THREAD else size
                self.row_bytes[table] += -(-row // TABLE_ALIGN) * TABLE_ALIGN

    def table_of_blocks(self, launch: Launch, numbers: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the table of the blocks with these numbers."""
        blocks = block_values(launch, numbers) if self.row_bytes[BLOCK] else {}
        if "%smid" in self.places:
            blocks |= place_values(launch, numbers)
        return self._table(BLOCK, len(numbers), blocks)

    def tables(self, launch: Launch) -> dict[str, NDArray[np.uint8]]:
        """Return the tables of a launch and of the warps of each block."""
        number = 0 if OF_ONE_LAUNCH.isdisjoint(self.places) else launch.number
        key = launch.grid, launch.block, launch.shared_dynamic, launch.cluster, number
        last, tables = self._of_launch
        if last != (*key, launch.chip):
            values = thread_values(launch)
            tables = {
                LAUNCH: self._table(LAUNCH, 1, values),
                THREAD: self._table(THREAD, -(-launch.threads // LANES), values),
            }
            self._of_launch = (*key, launch.chip), tables
        return tables

    def _table(self, table: str, rows: int, values: Mapping[str, Array]) -> NDArray[np.uint8]:
        made: NDArray[np.uint8] = np.zeros((rows, self.row_bytes[table] or 1), dtype=np.uint8)
        for name, place in self.places.items():
            if place.table == table:
                bytes_ = np.ascontiguousarray(values[name].reshape(rows, -1)).view(np.uint8)
                made[:, place.offset : place.offset + bytes_.shape[1]] = bytes_
        return made
