"""Loading of modules: their variables in device memory, and what else their functions need."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import TypeAlias

import numpy as np

from ....base.dataclass import dataclass
from ....base.errors import CutraceError
from ....traces.schema import Space
from ...ptx.kernel import (
    TYPE_BYTES,
    Function,
    Instruction,
    Kernel,
    Module,
    Special,
    Variable,
)
from ..kernel.function_pointer import function_address
from ..kernel.layout import local_layout, parameter_bytes, parameter_offsets, shared_layout
from ..memory.memory import ALIGNMENT, WINDOWS, Allocation, Memory

WORKSPACE_BYTES = 256
TAKES_FROM_HEAP = (
    *("malloc", "free"),
    *("__cudaCDP2GetParameterBufferV2", "__cudaCDP2Malloc", "__cudaCDP2Free"),
)
"""CUDA functions for which a module needs a heap."""


class NoRoomError(CutraceError):
    """Raised when memory has no room for a module's variable."""

    def __init__(self, problem: str, variable: Variable) -> None:
        super().__init__(f"PTX line {variable.line}: {problem}")
        self.problem = problem
        self.variable = variable.name


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """A module with its `.global` and `.const` variables allocated."""

    module: Module
    symbols: Mapping[str, Allocation]
    handles: dict[str, int] = field(default_factory=dict)
    """Handles bound to the texture and surface references (`.texref`, `.surfref`) of the PTX."""
    parameters: Allocation | None = None
    """Memory of a launch's arguments, for kernels that take a generic address of a parameter."""
    workspace: Allocation | None = None
    """Memory of the grid barrier (`grid.sync()`): its size, then the barrier.

    The driver passes its address in `%envreg1` (high half) and `%envreg2` (CUDA's header
    cooperative_groups/details/driver_abi.h).
    """
    heap: Allocation | None = None
    """The device heap, for kernels that call `malloc`."""

    @property
    def parameters_start(self) -> int:
        """The first generic address of the kernel's parameters; 0 if none is taken."""
        place = self.parameters
        return 0 if place is None else WINDOWS[Space.CONST][0] + place.address


PARAMETERS = "[parameters]"
"""The name of the place that generic addresses of the kernel's parameters point to."""

Symbols: TypeAlias = Mapping[tuple[int, str], int]
"""Addresses of variables in their own state spaces by (function, name), with function -1 for module
variables."""


def symbols_of(kernel: Kernel, loaded: LoadedModule) -> dict[tuple[int, str], int]:
    """Return the addresses of a kernel's variables."""
    addresses = {(-1, name): placed.address for name, placed in loaded.symbols.items()}
    addresses.update(local_layout(kernel).offsets)
    addresses.update(shared_layout(kernel).offsets)
    if loaded.parameters is not None:
        addresses[-1, PARAMETERS] = loaded.parameters_start
    return addresses


def symbol_address(kernel: Kernel, symbols: Symbols, function: int, name: str) -> int | None:
    """Return the address of a name in a function: of a variable, of a parameter of the kernel, or
    of a function; None if it has none."""
    start = symbols.get((function, name), symbols.get((-1, name)))
    if start is None and function == 0:
        start = parameter_offsets(kernel).get(name)
    return function_address(kernel.module, name) if start is None else start


def load_module(memory: Memory, module: Module) -> LoadedModule:
    """Allocate a module's variables, write their initialisers, then relocate the addresses in
    them.
    """
    variables = module.variables.values()
    placed = {v.name: _place(memory, v) for v in variables if _has_place(v)}
    meets = any(map(_meets_grid, module.functions.values()))
    workspace = _grid_workspace(memory) if meets else None
    takes = not module.functions.keys().isdisjoint(TAKES_FROM_HEAP)
    loaded = LoadedModule(
        module,
        placed,
        parameters=_bank(memory, module),
        workspace=workspace,
        heap=memory.set_heap_aside() if takes else None,
    )
    for variable in variables:
        if variable.relocations and variable.name in placed:
            _relocate(memory, variable, loaded)
    return loaded


def _bank(memory: Memory, module: Module) -> Allocation | None:
    """Reserve space behind the constants for the arguments of any kernel with `cvta.param`."""
    sizes = [
        sum(p.size + p.align for p in function.parameters)
        for function in module.functions.values()
        if function.is_entry
    ]
    if not any(map(_points_at_parameters, module.functions.values())):
        return None
    return _reserve(memory, max(sizes, default=0))


def _reserve(memory: Memory, size: int) -> Allocation:
    memory.const.widen(size + ALIGNMENT)
    return memory.const.allocate(size, "kernel parameters", ALIGNMENT)


def add_bank(memory: Memory, loaded: LoadedModule, kernel: Kernel, start: int) -> LoadedModule:
    """Return a module of machine code with space for a kernel's arguments if it takes their
    address.

    They begin at `start` in constant bank 0, which decides how far each is aligned.
    """
    if loaded.parameters or not any(_points_at_parameters(f.function) for f in kernel.functions):
        return loaded
    skip = start % ALIGNMENT
    place = _reserve(memory, skip + parameter_bytes(kernel))
    return replace(
        loaded, parameters=replace(place, address=place.address + skip, size=place.size - skip)
    )


def _grid_workspace(memory: Memory) -> Allocation:
    allocation = memory.allocate(WORKSPACE_BYTES, "grid workspace", itemsize=4)
    memory.view(allocation)[:4] = np.array([WORKSPACE_BYTES], dtype="<u4").view(np.uint8)
    memory.mark_written(allocation)
    return allocation


def _place(memory: Memory, variable: Variable) -> Allocation:
    space = Space.CONST if variable.space == "const" else Space.GLOBAL
    align = max(variable.align, ALIGNMENT) if space == Space.GLOBAL else max(variable.align, 1)
    itemsize = TYPE_BYTES.get(variable.element, 0)
    try:
        allocation = memory.arena(space).allocate(
            variable.size, variable.name, align, itemsize=itemsize
        )
    except CutraceError as error:
        raise NoRoomError(str(error), variable) from None
    data = np.frombuffer(variable.initializer, dtype=np.uint8)
    memory.view(allocation)[: data.size] = data
    memory.mark_written(allocation)
    return allocation


def _relocate(memory: Memory, variable: Variable, loaded: LoadedModule) -> None:
    into = memory.view(loaded.symbols[variable.name])
    for offset, symbol, addend in variable.relocations:
        target = loaded.symbols.get(symbol)
        address = target.address if target else function_address(loaded.module, symbol)
        if address is None:
            raise CutraceError(f"`{variable.name}` refers to `{symbol}`, which has no address")
        value = np.array([address + addend], dtype="<u8").view(np.uint8)
        into[offset : offset + 8] = value


def _has_place(variable: Variable) -> bool:
    return variable.space in ("global", "const") and not variable.is_extern


def _meets_grid(function: Function) -> bool:
    return any(
        isinstance(i.operands[-1], Special) and i.operands[-1].name == "%envreg2"
        for i in function.instructions
        if i.opcode == "mov" and i.operands
    )


def _points_at_parameters(function: Function) -> bool:
    return any(takes_parameter_address(i) for i in function.instructions)


def takes_parameter_address(instruction: Instruction) -> bool:
    """Return whether an instruction converts the address of a parameter to a generic one."""
    modifiers = instruction.modifiers
    return instruction.opcode == "cvta" and instruction.space == "param" and "to" not in modifiers
