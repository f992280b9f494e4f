"""A random kernel on a real chip, through CuPy: a second oracle, where there is one."""

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fuzz.cuda.batch import OUTPUTS, Arrays, Source, first_arrays, scalars


def runs_on_chip(kernel: Source) -> bool:
    """Whether the arguments of a kernel are arrays and scalars: images stay with g++."""
    return set(kernel.parameters) <= first_arrays(kernel).keys() | scalars(kernel).keys()


def run_on_chip(kernel: Source, ptx: str) -> Arrays:
    """Launch a kernel on the first GPU and return the arrays it wrote."""
    import cupy

    arrays, words = first_arrays(kernel), scalars(kernel)
    held = {name: cupy.asarray(arrays[name]) for name in kernel.parameters if name in arrays}
    values = tuple(held[name] if name in held else words[name] for name in kernel.parameters)
    function = _load(ptx).get_function(kernel.name)
    function(kernel.launch.grid, kernel.launch.block, values)
    return {name: held[name].get() for name in OUTPUTS if name in held}


@lru_cache(maxsize=2)
def _load(ptx: str) -> Any:
    import cupy

    with TemporaryDirectory(prefix="fuzz") as folder:
        path = Path(folder) / "kernels.ptx"
        path.write_text(ptx, encoding="utf-8")
        module = cupy.RawModule(path=str(path))
        module.compile()
        return module
