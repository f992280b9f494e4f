"""Arrays in device memory with Numba's interface and optional pitched rows."""

from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ...base.errors import CutraceError
from ...traces.schema import Array, Event, Space
from ..simt.memory.memory import Allocation
from .recording import Recording

Shape: TypeAlias = int | tuple[int, ...]

PITCH = 256
"""Row alignment of pitched arrays in bytes: a row of 60 floats takes 256 bytes, not 240."""


class DeviceArray:
    """An array in the session's global memory: row-major, rows `pitch` bytes apart.

    `address` is the device pointer, `name` its name in tables, `nbytes` the bytes of its elements
    (without the padding of rows).
    """

    def __init__(
        self,
        recording: Recording,
        allocation: Allocation,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        pitch: int,
    ) -> None:
        self._recording = recording
        self._allocation = allocation
        self.shape = shape
        self.dtype = dtype
        self.pitch = pitch

    @property
    def name(self) -> str:
        """Return its name in tables."""
        return self._allocation.name

    @property
    def address(self) -> int:
        """Return the device pointer to its first byte."""
        return self._allocation.address

    @property
    def size(self) -> int:
        """Return the number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Return the bytes of its elements, without padding."""
        return self.size * self.dtype.itemsize

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<device array {self.name}: {self.dtype}{list(self.shape)}>"

    def belongs_to(self, recording: Recording) -> bool:
        """Return True if it is allocated in this session's memory."""
        return self._recording is recording

    def view(self, dtype: DTypeLike) -> "DeviceArray":
        """Return the same memory as elements of another type of the same size."""
        other = np.dtype(dtype)
        if other.itemsize != self.dtype.itemsize:
            raise CutraceError(
                f"`{self.name}` has elements of {self.dtype.itemsize} bytes: "
                f"it cannot be viewed as {other}, of {other.itemsize} bytes"
            )
        return DeviceArray(self._recording, self._allocation, self.shape, other, self.pitch)

    def copy_to_host(self) -> NDArray[Any]:
        """Return a host copy: a new array of its shape and dtype."""
        self._recording.note(Event("copy", self.nbytes, "DtoH", self.name))
        return self.elements().copy()

    def copy_to_device(self, source: "DeviceArray | ArrayLike") -> None:
        """Write all elements from a host array, a device array or nested lists of its shape."""
        if isinstance(source, DeviceArray):
            values, direction = source.elements(), "DtoD"
        else:
            values, direction = self._read_host(source), "HtoD"
        if values.dtype.newbyteorder("<") != self.dtype or values.shape != self.shape:
            raise CutraceError(
                f"`{self.name}` is {self.dtype} of shape {self.shape}, "
                f"got {values.dtype} of shape {values.shape}"
            )
        self._recording.note(Event("copy", self.nbytes, direction, self.name))
        self.elements()[...] = values
        self._mark_written(source if isinstance(source, DeviceArray) else None)

    def fill(self, value: int | float) -> None:
        """Set every element to `value`."""
        try:
            element = np.array(value, dtype=self.dtype)
            fits = self.dtype.kind not in "biu" or element == value
        except (OverflowError, TypeError, ValueError):
            fits = False
        if not fits:
            raise CutraceError(f"`{self.name}` is {self.dtype}: it cannot hold {value!r}")
        self._recording.note(Event("set", self.nbytes, array=self.name))
        self.elements()[...] = element
        self._mark_written()

    def _read_host(self, source: ArrayLike) -> NDArray[Any]:
        is_typed = isinstance(source, np.ndarray | np.generic)
        return np.asarray(source, dtype=None if is_typed else self.dtype)

    def elements(self) -> NDArray[Any]:
        """Return a view of its elements in the arena, valid until the next allocation."""
        return self._arrange(self._recording.memory.view(self._allocation), self.dtype)

    def _arrange(self, data: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[Any]:
        outer = self.shape[:-1]
        strides = [self.pitch * prod(outer[axis + 1 :]) for axis in range(len(outer))]
        return np.ndarray(self.shape, dtype, data, 0, (*strides, dtype.itemsize))

    def _mark_written(self, source: "DeviceArray | None" = None) -> None:
        """Mark its elements as written, or only those that are written in `source`."""
        written, bytes_ = self._written(), self.dtype.itemsize
        if written is not None:
            written[...] = np.void(b"\1" * bytes_) if source is None else source._written()

    def _written(self) -> NDArray[Any] | None:
        """Return the written marks of each element's bytes as one item; None if unchecked."""
        data = self._recording.memory.view_written(self._allocation)
        return None if data is None else self._arrange(data, np.dtype(f"V{self.dtype.itemsize}"))


def allocate_array(
    recording: Recording, shape: Shape, dtype: DTypeLike, name: str | None, *, is_pitched: bool
) -> DeviceArray:
    """Allocate an array of zeros; `is_pitched` pads each row to a multiple of PITCH bytes."""
    recording.check_open()
    element = np.dtype(dtype).newbyteorder("<")
    sizes = _read_shape(shape, element, name)
    row = sizes[-1] * element.itemsize
    pitch = -(-row // PITCH) * PITCH if is_pitched else row
    padded = prod(sizes[:-1]) * pitch
    label = recording.new_name(name)
    try:
        allocation = recording.memory.allocate(
            padded, label, element.itemsize, sizes, pitch if is_pitched else 0
        )
    except MemoryError:
        raise CutraceError(f"`{label}`: this machine cannot hold its {padded} bytes") from None
    recording.arrays.append(describe(allocation))
    array = DeviceArray(recording, allocation, sizes, element, pitch)
    if recording.options.final_values is not None:
        recording.values[label] = array.elements
    return array


def describe(allocation: Allocation) -> Array:
    """Return the trace's description of an allocation."""
    return Array(
        allocation.name,
        Space(allocation.space),
        allocation.offset,
        allocation.size,
        allocation.itemsize,
        allocation.shape,
        allocation.pitch,
    )


def _read_shape(shape: Shape, element: np.dtype[Any], name: str | None) -> tuple[int, ...]:
    what = f"array `{name}`" if name else "an array"
    if element.hasobject or element.itemsize == 0:
        raise CutraceError(f"{what} of {element}: expected numbers or structures of numbers")
    sizes = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if not sizes or any(not isinstance(s, int | np.integer) or s < 1 for s in sizes):
        raise CutraceError(f"{what} of shape {shape!r}: expected sizes of 1 or more")
    return tuple(int(size) for size in sizes)
