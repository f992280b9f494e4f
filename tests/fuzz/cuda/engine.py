"""One launch of a random kernel in one of cutrace's engines."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from engines import compiled_where_known
from fuzz.cuda.batch import OUTPUTS, Arrays, Source, first_arrays, scalars
from fuzz.cuda.texture import images
from fuzz.run import without_assembler
from llvmlite import binding
from numpy.typing import NDArray

import cutrace
from cutrace.base.cache import Cache
from cutrace.base.errors import CutraceError
from cutrace.jit import machine_code
from cutrace.tracer.simt.tier import LaunchTier

MOST_INSTRUCTIONS = 1 << 22


def run(kernel: Source, ptx: str, path: Path, engine: str) -> Arrays:
    """Launch a kernel and return the arrays it wrote."""
    arrays, words = first_arrays(kernel), scalars(kernel)
    with (
        without_assembler(),
        compiled_where_known(),
        cutrace.Session(
            path, engine=engine, output=StringIO(), max_instructions=MOST_INSTRUCTIONS
        ) as gpu,
    ):
        held = {name: gpu.to_device(arrays[name]) for name in kernel.parameters if name in arrays}
        known = {**words, **held, **_images(gpu, kernel, arrays["in_u"])}
        values = [known[name] for name in kernel.parameters]
        function = gpu.load_ptx(ptx).get_function(kernel.name)
        function[kernel.launch.grid, kernel.launch.block](*values)
        return {name: held[name].copy_to_host() for name in OUTPUTS if name in held}


def _images(gpu: cutrace.Session, kernel: Source, in_u: NDArray[Any]) -> dict[str, Any]:
    """The textures and the surface that a kernel takes."""
    return {
        name: gpu.surface(image.texels)
        if name == "surf"
        else gpu.texture(
            gpu.to_device(image.texels) if image.is_linear else image.texels,
            image.address_modes, image.filter_mode, image.normalized,
        )
        for name, image in images(in_u).items()
        if name in kernel.parameters
    }  # fmt: skip


@contextmanager
def code_that_is_not_kept(quick: bool = False) -> Iterator[None]:
    """Keep no machine code of random kernels; with `quick` LLVM does not optimise it, which takes
    a tenth of the time and gives the same numbers."""
    compile_ = machine_code._compile
    of_kernel = False

    def compile_quickly(assembly: str, vectors: bool, effort: int) -> bytes:
        nonlocal of_kernel
        of_kernel = effort == 1
        if not (quick and of_kernel):
            return compile_(assembly, vectors, effort)
        module = binding.parse_assembly(assembly)
        return cast(bytes, machine_code._machine(0).emit_object(module))

    kept = machine_code._CODE
    some = Cache[bytes](kept.kind, kept.most, lambda code: None if of_kernel else code, bytes)
    with (
        patch.object(machine_code, "_compile", compile_quickly),
        patch.object(machine_code, "_CODE", some),
    ):
        yield


@contextmanager
def listening(refused: list[str]) -> Iterator[None]:
    """Keep what the compiled engine says when it refuses a kernel."""
    compile_ = LaunchTier._compile

    def listen(tier: LaunchTier) -> None:
        try:
            compile_(tier)
        except CutraceError as problem:
            refused.append(str(problem))
            raise

    with patch.object(LaunchTier, "_compile", listen):
        yield
