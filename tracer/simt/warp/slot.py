"""Register slots: a number for each register, special register and parameter piece."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ...ptx.kernel import Immediate, Kernel, Register
from ..kernel.launch import Launch
from ..ops.lanes import DTYPES, Array, scalar
from .special_register import special_values

Fetch: TypeAlias = Callable[[list[Array]], Array]
"""Reads a value from a frame, as one NumPy type."""

Store: TypeAlias = Callable[[list[Array], Array], None]
"""Writes a value to a frame."""

WIDEST = 8
"""Bytes of NumPy's widest integers."""
_SPECIAL_TYPES = {"%gridid": "u64", "%clock64": "u64", "%globaltimer": "u64"}


class Slots:
    """Allocates slots for registers, special registers and parameter bytes, and tracks their use.

    `lasting` slots stay live across every block boundary (parameters). `read_first` and `written`
    describe the current block.
    """

    def __init__(self, kernel: Kernel, launch: Launch) -> None:
        self._kernel = kernel
        self._known_specials = special_values(launch, launch.numbers(0, 1))
        self._slots: dict[object, int] = {}
        self._keys: list[object] = []
        self.zeros: list[Array] = []
        self.specials: dict[str, int] = {}
        self.lasting: set[int] = set()
        self.read_first: set[int] = set()
        self.written: set[int] = set()

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

    def of_passed(self, key: tuple[int, str]) -> int:
        """Return the lasting slot of a register that passes a value between functions."""
        slot = self.of_key(key)
        self.lasting.add(slot)
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
        if name not in self._known_specials:
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
