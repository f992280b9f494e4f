"""The decoder's context: resolves operands, results, register slots and symbols of a kernel."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from ....base.errors import CutraceError
from ....jit.ufunc import select
from ....traces.schema import Space
from ...ptx.kernel import (
    BasicBlock,
    Bucket,
    Immediate,
    Instruction,
    Kernel,
    Not,
    Operand,
    Part,
    Register,
    Special,
    Sum,
    Symbol,
    Variable,
)
from ..kernel.function_pointer import apart, function_address, parameter_places
from ..kernel.launch import Launch
from ..kernel.layout import (
    local_layout,
    local_stride,
    most_levels,
    parameter_offsets,
    parameter_pieces,
    recursive_functions,
    shared_layout,
)
from ..memory.memory import LoadedModule, Memory
from ..ops.lanes import DTYPES, Array, scalar
from .program import Step, spoken_name
from .slot import Fetch, Slots, Store, immediate

Return: TypeAlias = tuple[int, Variable, Register | Symbol]
"""The callee, its return variable, and the caller's operand that receives the value."""


class Decoder:
    """Context of decoding; `function`, `block` and `pc` locate the current instruction."""

    def __init__(
        self, kernel: Kernel, launch: Launch, memory: Memory, loaded: LoadedModule
    ) -> None:
        self.kernel = kernel
        self.launch = launch
        self.memory = memory
        self.loaded = loaded
        self.shared = shared_layout(kernel)
        self.local = local_layout(kernel)
        self.shared_bytes = self.shared.size + launch.shared_dynamic
        self.local_stride = local_stride(kernel)
        self.slots = Slots(kernel, launch)
        self.recursive = recursive_functions(kernel)
        self.apart = apart(kernel, self.recursive)
        self.parameters = parameter_places(kernel, self.apart)
        self.pieces = parameter_pieces(kernel, parameter_places(kernel))
        self.levels = most_levels(kernel)
        self.saved: dict[int, tuple[int, ...]] = {}
        self.returned: dict[int, list[Return]] = {}
        self.function = 0
        self.pc = 0
        self.position = 0
        self.block: BasicBlock = kernel.blocks[0]

    def calls_itself(self, callee: int) -> bool:
        """Return whether a call from the current function to `callee` may be recursive."""
        return self.function in self.recursive and callee in self.recursive

    def has_frames(self, name: str) -> bool:
        """Return whether `name` is a local variable of the current function, and that is
        recursive.
        """
        return self.function in self.recursive and (self.function, name) in self.local.offsets

    def live_slots(self, block: int) -> tuple[int, ...]:
        """Return the slots of the registers that are live at the start of a block."""
        return tuple(sorted(self.slots.of_key(key) for key in self.kernel.live_in[block]))

    def refuse(self, why: str) -> CutraceError:
        """Return an error that names the current instruction, its PTX line and source line."""
        instruction = self.kernel.instructions[self.pc]
        place = instruction.location
        source = f", from {place.file}:{place.line}" if place else ""
        return CutraceError(
            f"kernel `{spoken_name(self.kernel, self.launch)}`: {why}: `{instruction.text}` "
            f"(PTX line {instruction.ptx_line}{source})"
        )

    def symbol_address(self, name: str) -> int:
        """Return the address of a variable in its state space (generic for global memory)."""
        for layout in (self.shared, self.local):
            for owner in (self.function, -1):
                if (owner, name) in layout.offsets:
                    return layout.offsets[owner, name]
        if name in self.loaded.symbols:
            return self.loaded.symbols[name].address
        if self.function == 0 and name in parameter_offsets(self.kernel):
            return parameter_offsets(self.kernel)[name]
        function = function_address(self.kernel.module, name)
        if function is not None:
            return function
        raise self.refuse(f"`{name}` has no address")

    def symbol_space(self, name: str) -> Space | None:
        """Return the state space of a variable; None if `name` is no variable, or its space is
        unknown.
        """
        for layout, space in ((self.shared, Space.SHARED), (self.local, Space.LOCAL)):
            if (self.function, name) in layout.offsets or (-1, name) in layout.offsets:
                return space
        return self.loaded.symbols[name].space if name in self.loaded.symbols else None

    def fetch(self, operand: Operand, kind: str) -> Fetch:
        """Return a function that reads an operand from a frame as the PTX type `kind`."""
        dtype = DTYPES[kind]
        match operand:
            case Register():
                return self.slots.fetch_slot(self.slots.of(self.function, operand), dtype)
            case Part(register):
                return self.slots.fetch_slot(self.slots.of(self.function, register), dtype)
            case Not(register):
                plain = self.slots.fetch_slot(self.slots.of(self.function, register), dtype)
                return lambda frame: ~plain(frame)
            case Special("%envreg1" | "%envreg2" as name) if self.loaded.workspace:
                address = self.loaded.workspace.address
                return constant(scalar(address >> 32 if name == "%envreg1" else address, dtype))
            case Special("%total_smem_size"):
                unit = self.launch.chip.shared_unit
                return constant(scalar(-(-self.shared_bytes // unit) * unit, dtype))
            case Special("%aggr_smem_size"):
                reserved = self.launch.chip.shared_reserved
                return constant(scalar(self.shared_bytes + reserved, dtype))
            case Special(name):
                slot = self.slots.of_special(name)
                if slot is None:
                    raise self.refuse(f"cutrace does not know the special register `{name}`")
                return self.slots.fetch_slot(slot, dtype)
            case Immediate():
                return constant(immediate(operand, kind))
            case Sum(register, addend) if dtype.kind in "iu":
                base = self.slots.fetch_slot(self.slots.of(self.function, register), dtype)
                by = scalar(addend, dtype)
                return lambda frame: base(frame) + by
            case Symbol(name, offset):
                return constant(scalar(self.symbol_address(name) + offset, dtype))
        raise self.refuse("an operand is not of a form that this instruction takes")

    def store(self, operand: Operand, kind: str) -> Store | None:
        """Return a function that writes a value of type `kind` to a frame; None for `_`.

        The value is extended to the register's width. Lanes with a false guard keep the old value.
        """
        if isinstance(operand, Bucket):
            return None
        if isinstance(operand, Part):
            operand = operand.register
        if not isinstance(operand, Register):
            raise self.refuse("a result has to be a register")
        slot = self.slots.of(self.function, operand)
        return self.store_slot(slot, kind)

    def store_slot(self, slot: int, kind: str) -> Store:
        """Return a function that writes a value of type `kind` to a slot, as `store` does."""
        guard = self.guard()
        self.slots.write(slot, maybe=guard is not None)
        size = self.slots.zeros[slot].dtype.itemsize
        extend = DTYPES[kind].itemsize != size
        if extend and 16 in (size, DTYPES[kind].itemsize):
            raise self.refuse("a result of 128 bits goes into such a register, and no other does")
        wide = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{size}") if extend else DTYPES[kind]
        narrow = DTYPES[kind if DTYPES[kind].kind != "f" else f"b{8 * DTYPES[kind].itemsize}"]

        def put(frame: list[Array], value: Array) -> None:
            if extend:
                value = value.view(narrow).astype(wide)
            frame[slot] = value if guard is None else select(guard(frame), value, frame[slot])

        return put

    def argument_bytes(self, key: tuple[int, str, int, int]) -> Array | None:
        """Return bytes of a kernel argument as a (1, 1) integer; None for a callee's parameter."""
        function, name, offset, size = key
        for parameter, data in zip(self.kernel.parameters, self.launch.arguments, strict=True):
            if function == 0 and parameter.name == name:
                piece = int.from_bytes(data[offset : offset + size], "little")
                return scalar(piece, DTYPES[f"b{8 * size}"])
        return None

    def guard(self) -> Fetch | None:
        """Return a function to the lanes with a true guard; None if the instruction has no
        guard.
        """
        guard = self.kernel.instructions[self.pc].guard
        if guard is None:
            return None
        holds = self.fetch(guard.register, "pred")
        return (lambda frame: ~holds(frame)) if guard.negated else holds


def constant(value: Array) -> Fetch:
    """Return a fetch that gives `value` for any frame."""
    return lambda frame: value


StepTable: TypeAlias = Mapping[str, Callable[[Decoder, Instruction], Step | None]]
"""Opcode to the function that decodes its instructions; it returns None for a form that another
family has: `cp.async.bulk` is none of `cp.async`.
"""


def skip(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode an instruction without an effect."""
    return lambda group: None
