"""A program of tests/programs on a real GPU, through CuPy: what `capture_counters.py` profiles.

Answers are not compared here: tests/programs/test_programs.py does that.
"""

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
from program import Program

SCALARS = {
    "int": np.int32,
    "unsigned": np.uint32,
    "unsigned int": np.uint32,
    "long long": np.int64,
    "unsigned long long": np.uint64,
    "size_t": np.uint64,
    "float": np.float32,
    "double": np.float64,
    "__half": np.float16,
    "bool": np.bool_,
}


KERNEL = r"__global__[^;{}]*?\bvoid\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)"


class Buffer:
    """A device array with the methods that programs use."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def fill(self, value: Any) -> None:
        """Set every element."""
        self.values.fill(value)

    def copy_to_device(self, values: Any) -> None:
        """Copy from the host."""
        self.values.set(np.ascontiguousarray(values, self.values.dtype).reshape(self.values.shape))

    def copy_to_host(self) -> Any:
        """Copy to the host."""
        return self.values.get()


class Gpu:
    """The part of a session that programs use."""

    def to_device(self, values: Any) -> Buffer:
        """Copy an array; structured ones as bytes."""
        import cupy

        host = np.ascontiguousarray(values)
        plain = host.view(np.uint8) if host.dtype.kind == "V" else host
        return Buffer(cupy.asarray(plain))

    def device_array(self, shape: Any, dtype: Any) -> Buffer:
        """Reserve an array."""
        import cupy

        wanted = np.dtype(dtype)
        if wanted.kind != "V":
            return Buffer(cupy.empty(shape, wanted))
        return Buffer(cupy.empty(int(np.prod(shape)) * wanted.itemsize, np.uint8))


class OnGpu(Program):
    """Launches without comparing."""

    def __init__(self, module: Any, text: str) -> None:
        super().__init__(Gpu(), module)
        self.text = text

    def launch(self, kernel: str, grid: Any, block: Any, *arguments: Any, shared: int = 0) -> None:
        """Launch a kernel by its name in the source."""
        import cupy

        types = parameter_types(self.text, kernel)
        passed = tuple(_passed(a, t) for a, t in zip(arguments, types, strict=True))
        extents = [tuple(np.atleast_1d(extent).tolist()) for extent in (grid, block)]
        self.module.get_function(kernel)(*extents, passed, shared_mem=shared)
        cupy.cuda.runtime.deviceSynchronize()

    def write(self, symbol: str, values: Any) -> None:
        """Copy to a variable of the module."""
        import cupy

        host = np.ascontiguousarray(values)
        pointer = self.module.get_global(symbol)
        pointer.copy_from_host(host.ctypes.data, host.nbytes)
        cupy.cuda.runtime.deviceSynchronize()

    def same(self, array: Any, expected: Any) -> None:
        """Compare nothing."""

    def close(self, array: Any, expected: Any, bound: float = 0) -> None:
        """Compare nothing."""


def kernels_of(text: str) -> list[str]:
    """Return the names of a source's kernels, without template arguments."""
    return sorted({name for name, _ in re.findall(KERNEL, text)})


def parameter_types(text: str, kernel: str) -> list[str]:
    """Return the types of a kernel's parameters, as its source writes them."""
    parameters = dict(re.findall(KERNEL, text))[kernel.partition("<")[0]]
    parts = [part.replace("const", "").strip() for part in parameters.split(",")]
    return [re.sub(r"\s*\w+$", "", part).strip() for part in parts]


def _passed(argument: Any, type_: str) -> Any:
    """Return an argument as CuPy takes it."""
    if isinstance(argument, Buffer):
        return argument.values
    if isinstance(argument, np.generic):
        return argument
    if type_ in SCALARS:
        return SCALARS[type_](argument)
    return np.float32(argument) if isinstance(argument, float) else np.int32(argument)


def run_on_gpu(script: Path) -> None:
    """Run NAME.py with NAME.cu."""
    import cupy

    said = runpy.run_path(str(script))
    text = script.with_suffix(".cu").read_text()
    templates = list(said.get("TEMPLATES", ()))
    taken = {name.partition("<")[0] for name in templates}
    module = cupy.RawModule(
        code=text,
        options=("-lineinfo", "-std=c++17", *said.get("OPTIONS", ())),
        name_expressions=[*templates, *(k for k in kernels_of(text) if k not in taken)],
    )
    said["run"](OnGpu(module, text))
