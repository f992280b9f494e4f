"""The decoder's context: resolves operands, results, register slots and symbols of a kernel."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from ....base.errors import CutraceError
from ....jit.ufunc import select
from ....traces.schema import Space
from ...ptx.isa_section import isa_note
from ...ptx.kernel import (
    BasicBlock,
    Bucket,
    CallTarget,
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
    key_of,
)
from ..access.access import Fetch as Fetch
from ..kernel.launch import Launch
from ..kernel.layout import (
    local_layout,
    local_stride,
    shared_layout,
)
from ..kernel.passing import Passing
from ..memory.memory import Memory
from ..ops.lanes import DTYPES, Array, scalar
from ..warp.program import Step
from .load_module import LoadedModule, symbol_address, symbols_of
from .special_register import constant_specials
from .spill import spills_of

Store: TypeAlias = Callable[[list[Array], Array], None]
"""Writes a value to a frame."""


def discard(frame: list[Array], value: Array) -> None:
    """Drop the value: the result is unused."""


WIDEST = 8
"""Bytes of NumPy's widest integers."""
_SPECIAL_TYPES = {"%gridid": "u64", "%clock64": "u64", "%globaltimer": "u64"}


class Slots:
    """Allocates slots for registers, special registers and parameter bytes, and tracks their use.

    `lasting` slots stay live across every block boundary: parameters, and registers that pass a
    value between functions. `read_first` and `written` describe the current block.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._slots: dict[object, int] = {}
        self._keys: list[object] = []
        self.zeros: list[Array] = []
        self.specials: dict[str, int] = {}
        self.lasting: set[int] = set()
        self.read_first: set[int] = set()
        self.written: set[int] = set()
        for index, span in enumerate(kernel.functions):
            for variable in (*span.function.returns, *span.function.parameters):
                if variable.space == "reg":
                    self.lasting.add(self.of_key((index, variable.name)))

    def begin_block(self) -> None:
        """Reset the tracked reads and writes."""
        self.read_first = set()
        self.written = set()

    def of_key(self, key: tuple[int, str]) -> int:
        """Return the slot of a register given as (function index, name)."""
        function, name = key
        kind = self._kernel.functions[function].function.registers[name]
        return self._slot(key, kind)

    def of(self, function: int, register: Register) -> int:
        """Return the slot of a register."""
        return self._slot((function, register.name), register.type)

    def of_parameter(self, key: tuple[int, str, int, int], value: Array | None = None) -> int:
        """Return the lasting slot of bytes of a parameter: (function, name, offset, bytes)."""
        slot = self._slot(key, f"b{8 * key[3]}")
        self.lasting.add(slot)
        if value is not None:
            self.zeros[slot] = value
        return slot

    def of_carry(self, function: int) -> int:
        """Return the slot of a function's carry flag."""
        slot = self._slot((function, "%cc"), "pred")
        self.lasting.add(slot)
        return slot

    def of_stack(self) -> int:
        """Return the slot of the bytes of stack that a thread has allocated."""
        slot = self._slot((0, "%stack"), "u64")
        self.lasting.add(slot)
        return slot

    def of_special(self, name: str) -> int | None:
        """Return the slot of a special register that is constant for a thread, else None."""
        if name not in constant_specials():
            return None
        self.specials[name] = self._slot(name, _SPECIAL_TYPES.get(name, "u32"))
        return self.specials[name]

    def _slot(self, key: object, kind: str) -> int:
        if key not in self._slots:
            self._slots[key] = len(self.zeros)
            self._keys.append(key)
            self.zeros.append(scalar(0, DTYPES[kind]))
        return self._slots[key]

    def key_of(self, slot: int) -> object:
        """Return the key of a slot: (function, register), (function, parameter, offset, bytes) or
        the name of a special register.
        """
        return self._keys[slot]

    def read(self, slot: int) -> int:
        """Record that the block reads `slot`; return it."""
        if slot not in self.written:
            self.read_first.add(slot)
        return slot

    def write(self, slot: int, maybe: bool = False) -> int:
        """Record that the block writes `slot`; return it. With `maybe` lanes may keep the old
        value.
        """
        if maybe:
            self.read(slot)
        self.written.add(slot)
        return slot

    def fetch_slot(self, slot: int, dtype: np.dtype[Any]) -> Fetch:
        """Return a function that reads `slot` from a frame as `dtype`, truncated if the slot is
        wider.
        """
        self.read(slot)
        size = self.zeros[slot].dtype.itemsize
        if size == dtype.itemsize:

            def fetch(frame: list[Array]) -> Array:
                value = frame[slot]
                return value if value.dtype is dtype else value.view(dtype)

            return fetch
        if max(size, dtype.itemsize) > WIDEST:
            raise ValueError(f"a register of {size} bytes is read as one of {dtype.itemsize}")
        bits = np.dtype(f"u{size}")
        cut = np.dtype(f"u{dtype.itemsize}")
        return lambda frame: frame[slot].view(bits).astype(cut).view(dtype)


def immediate(operand: Immediate, kind: str) -> Array:
    """Return a literal as a (1, 1) array of a PTX type."""
    dtype = DTYPES[kind]
    if operand.kind == "int":
        return scalar(bool(operand.bits) if kind == "pred" else operand.bits, dtype)
    bits, source = ("u4", np.float32) if operand.kind == "f32" else ("u8", np.float64)
    value = np.array([[operand.bits]], dtype=bits).view(source)
    return value.astype(dtype) if dtype.kind == "f" else value.view(bits).astype(dtype)


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
        self.slots = Slots(kernel)
        self.passing = Passing(kernel)
        self.spills = spills_of(key_of(kernel))
        self._symbols = symbols_of(kernel, loaded)
        self.returned: dict[int, tuple[int, CallTarget, list[int]]] = {}
        self.function = 0
        self.pc = 0
        self.position = 0
        self.block: BasicBlock = kernel.blocks[0]

    def refuse(self, why: str) -> CutraceError:
        """Return an error that names the current instruction, its PTX line and source line, its
        section of the ISA and the devices that have it."""
        instruction = self.kernel.instructions[self.pc]
        place = instruction.location
        source = f", from {place.file}:{place.line}" if place else ""
        return CutraceError(
            f"kernel `{spoken_name(self.kernel, self.launch)}`: {why}: `{instruction.text}` "
            f"(PTX line {instruction.ptx_line}{source}"
            f"{isa_note(instruction.opcode, instruction.modifiers)})"
        )

    def symbol_address(self, name: str) -> int:
        """Return the address of a variable in its state space (generic for global memory)."""
        address = symbol_address(self.kernel, self._symbols, self.function, name)
        if address is None:
            raise self.refuse(f"`{name}` has no address")
        return address

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

    def store(self, operand: Operand, kind: str) -> Store:
        """Return a function that writes a value of type `kind` to a frame: `discard` for `_`.

        The value is extended to the register's width. Lanes with a false guard keep the old value.
        """
        if isinstance(operand, Bucket):
            return discard
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


def spoken_name(kernel: Kernel, launch: Launch) -> str:
    """Return the kernel's name in messages: its C name if the host gave one."""
    return launch.name or kernel.name


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
