"""Module variables, `__device__`, `__constant__` and `__shared__`, by C name."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ...base.errors import CutraceError
from ...traces.schema import Array, Event, Space
from ..front.demangle import demangle
from ..front.syntax.syntax import definitions, marking_words
from ..front.texture_reference import is_handle
from ..ptx.kernel import TYPE_BYTES, Variable
from ..ptx.variable import OPAQUE
from ..simt.decode.load_module import LoadedModule
from ..simt.kernel.layout import Layout
from ..simt.memory.memory import Allocation
from .recording import Recording

_LOCAL_NAME = re.compile(r"E(?P<length>\d+)(?P<rest>[A-Za-z_]\w*)$")


class Symbol:
    """A `__device__` or `__constant__` variable with bytes to copy to and from."""

    def __init__(self, recording: Recording, name: str, allocation: Allocation) -> None:
        self._recording = recording
        self._allocation = allocation
        self.name = name

    @property
    def nbytes(self) -> int:
        """Return its size in bytes."""
        return self._allocation.size

    def copy_to_device(self, values: NDArray[Any] | np.generic) -> None:
        """Write an array's bytes to the symbol's start; the array may be shorter."""
        data = np.frombuffer(np.asarray(values).tobytes(), dtype=np.uint8)
        if not 0 < data.size <= self.nbytes:
            raise CutraceError(f"`{self.name}` has {self.nbytes} bytes, got {data.size} to copy")
        self._recording.note(Event("copy", data.size, "HtoD", self.name))
        self._recording.memory.view(self._allocation)[: data.size] = data

    def copy_to_host(self, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """Return its bytes as a one-dimensional array of `dtype`."""
        if self.nbytes % np.dtype(dtype).itemsize:
            raise CutraceError(
                f"`{self.name}` has {self.nbytes} bytes, not a multiple of {np.dtype(dtype)}"
            )
        self._recording.note(Event("copy", self.nbytes, "DtoH", self.name))
        return self._recording.memory.view(self._allocation).copy().view(dtype)


def plain_name(ptx_name: str) -> str:
    """Return a variable's C name: `_ZN2ns5tableE` is `ns::table`, `_ZZ4tilePfE1a` is `a`."""
    if ptx_name.startswith("_ZZ"):
        match = _LOCAL_NAME.search(ptx_name)
        return match["rest"][: int(match["length"])] if match else ptx_name
    read = demangle(ptx_name)
    return read.name if read and read.arguments is None else ptx_name


def declared_at(ptx_name: str, sources: Mapping[str, str]) -> str:
    """Return where the sources declare a variable, `table.cu:3`; `""` if they don't."""
    word = re.compile(rf"\b{re.escape(plain_name(ptx_name).rpartition('::')[2])}\b".encode())
    for path, text in sources.items():
        for each in definitions(text, marking_words([text])):
            is_variable = each.is_device and not each.is_function
            if is_variable and word.search(text.encode()[each.start : each.end]):
                return f"{path}:{each.first}"
    return ""


def name_symbols(loaded: LoadedModule) -> dict[str, Allocation]:
    """Return a module's variables in memory by C name; by PTX name where two have the same.

    References to textures and surfaces are excluded: they are bound, not copied to.
    """
    variables = loaded.module.variables
    own = [
        name
        for name in loaded.symbols
        if not is_handle(name) and variables[name].element not in OPAQUE
    ]
    return {short: loaded.symbols[n] for short, n in zip(_distinct(own), own, strict=True)}


def describe_symbols(loaded: LoadedModule) -> tuple[Array, ...]:
    """Return the trace's arrays: variables, grid-sync workspace, heap and parameter bank."""
    variables = loaded.module.variables
    described = [
        replace(
            Array(name, place.space, place.offset, place.size, _itemsize(variables[place.name])),
            memory="managed" if variables[place.name].is_managed else "",
        )
        for name, place in name_symbols(loaded).items()
    ]
    if workspace := loaded.workspace:
        described.append(
            Array(workspace.name, workspace.space, workspace.offset, workspace.size, 4)
        )
    if heap := loaded.heap:
        described.append(Array(heap.name, heap.space, heap.offset, heap.size))
    if bank := loaded.parameters:
        described.append(Array(bank.name, bank.space, bank.offset, bank.size))
    return tuple(described)


def describe_shared(
    layout: Layout, dynamic: int, own_names: Mapping[str, str]
) -> tuple[Array, ...]:
    """Return a kernel's shared variables; open-size ones have the launch's `dynamic` bytes.

    `own_names` has names of other languages by PTX name.
    """
    ptx_names = [variable.name for variable in layout.variables.values()]
    names = [
        own_names.get(n, plain) for n, plain in zip(ptx_names, _distinct(ptx_names), strict=True)
    ]
    return tuple(
        Array(
            name,
            Space.SHARED,
            layout.offsets[key],
            dynamic if variable.is_extern else variable.size,
            _itemsize(variable),
        )
        for name, (key, variable) in zip(names, layout.variables.items(), strict=True)
    )


def _itemsize(variable: Variable) -> int:
    """Return the bytes of an element; 0 for byte arrays that replace other types."""
    return 0 if variable.element == "b8" else TYPE_BYTES.get(variable.element, 0)


def _distinct(ptx_names: list[str]) -> list[str]:
    plain = [plain_name(name) for name in ptx_names]
    return [
        short if plain.count(short) == 1 else name
        for short, name in zip(plain, ptx_names, strict=True)
    ]
