"""Compute CuPy's calls of cuRAND and Thrust with NumPy.

Both libraries are machine code, which cannot be recorded. Device memory is mapped in the recorded
process, so NumPy operates on it in place.
"""

import ctypes
import itertools
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

_warned: set[str] = set()


def _warn(library: str) -> None:
    if library not in _warned:
        _warned.add(library)
        print(
            f"cutrace: {library} is machine code, which is not recorded: NumPy does on the host "
            "what CuPy asks of it, and it is not counted",
            file=sys.stderr,
        )


def _view(address: int, shape: Sequence[int], kind: Any) -> Any:
    """Return a NumPy array over device memory."""
    import numpy

    dtype = numpy.dtype(kind)
    count = int(numpy.prod(shape, dtype=numpy.int64))
    data = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return numpy.frombuffer(data, dtype, count).reshape(shape)


def sort_on_host(thrust: Any) -> None:
    """Replace `cupy.cuda.thrust` by sorts along the last axis on the host."""
    import numpy

    def sort(dtype: Any, data: int, keys: int, shape: Sequence[int]) -> None:
        _warn("Thrust")
        if data:
            _view(data, shape, dtype).sort(axis=-1)

    def argsort(dtype: Any, indices: int, data: int, keys: int, shape: Sequence[int]) -> None:
        _warn("Thrust")
        if data:
            order = numpy.argsort(_view(data, shape, dtype), axis=-1, kind="stable")
            _view(indices, shape, numpy.intp)[...] = order

    def lexsort(dtype: Any, indices: int, keys: int, count: int, length: int) -> None:
        _warn("Thrust")
        if keys:
            _view(indices, (length,), numpy.intp)[:] = numpy.lexsort(
                _view(keys, (count, length), dtype)
            )

    thrust.sort, thrust.argsort, thrust.lexsort = sort, argsort, lexsort


class Generators:
    """NumPy generators by handle, in place of cuRAND's."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._all: dict[int, Any] = {}

    def create(self, kind: int) -> int:
        """Make a generator; all kinds behave alike."""
        import numpy

        _warn("cuRAND")
        number = next(self._numbers)
        self._all[number] = numpy.random.default_rng(0)
        return number

    def seed(self, number: int, seed: int) -> None:
        """Reset a generator to a seed."""
        import numpy

        self._all[number] = numpy.random.default_rng(seed)

    def fill(self, kind: str, draw: Callable[..., Any]) -> Callable[..., None]:
        """Return a function that draws from a generator by `draw` and writes to device memory."""

        def generate(number: int, address: int, count: int, *parameters: float) -> None:
            _view(address, (count,), kind)[:] = draw(self._all[number], count, *parameters)

        return generate

    def forget(self, number: int) -> None:
        """Delete a generator."""
        self._all.pop(number, None)


_INTEGERS = {"generate": "uint32", "generateLongLong": "uint64"}
_DRAWS: dict[str, Callable[..., Any]] = {
    "Uniform": lambda random, count: 1 - random.random(count),  # (0, 1], as in cuRAND
    "Normal": lambda random, count, mean, deviation: random.normal(mean, deviation, count),
    "Poisson": lambda random, count, mean: random.poisson(mean, count),
    "LogNormal": lambda random, count, mean, deviation: random.lognormal(mean, deviation, count),
}


def draw_on_host(curand: Any) -> None:
    """Replace the generators of `cupy_backends.cuda.libs.curand` by ones on the host."""
    generators = Generators()
    curand.createGenerator, curand.destroyGenerator = generators.create, generators.forget
    curand.setPseudoRandomGeneratorSeed = generators.seed
    curand.setStream = curand.setGeneratorOffset = lambda number, value: None
    curand.setGeneratorOrdering = lambda number, order: None
    for name, kind in _INTEGERS.items():
        most = 1 << int(kind.removeprefix("uint"))

        def integers(random: Any, count: int, most: int = most, kind: str = kind) -> Any:
            return random.integers(0, most, count, dtype=kind)

        setattr(curand, name, generators.fill(kind, integers))
    for name, draw in _DRAWS.items():
        kind = "uint32" if name == "Poisson" else "float32"
        setattr(curand, f"generate{name}", generators.fill(kind, draw))
        setattr(curand, f"generate{name}Double", generators.fill("float64", draw))


CHANGES: dict[str, Callable[[Any], None]] = {
    "cupy.cuda.thrust": sort_on_host,
    "cupy_backends.cuda.libs.curand": draw_on_host,
}
if os.environ.get("CUTRACE_LIBRARIES") == "run":  # `cutrace record --libraries run`
    CHANGES.clear()
