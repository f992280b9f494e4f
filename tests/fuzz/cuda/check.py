"""Random kernels on cutrace: both engines against the oracle, and their traces with each other."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast
from unittest.mock import patch

import llvmlite.binding as binding
import numpy as np
from engines import compiled_where_known, files_of
from fuzz.cuda.batch import OUTPUTS, Arrays, Source, cuda_text, first_arrays, scalars
from fuzz.cuda.oracle import Building
from fuzz.run import without_assembler
from numpy.typing import NDArray

import cutrace
from cutrace.errors import CutraceError
from cutrace.tracer.engine import choice, native, object_cache
from cutrace.tracer.front import nvrtc
from cutrace.traces.reader import read_trace
from cutrace.traces.verify import verify

OPTIONS = ("--gpu-architecture=compute_75", "--fmad=false", "-w")
MOST_INSTRUCTIONS = 1 << 22
ENGINES = ("array", "auto")


@dataclass(frozen=True)
class Found:
    """What became of a kernel: `kind` is "" where all agree."""

    kernel: Source
    kind: str
    text: str = ""
    refused: str = ""
    """Why the compiled engine did not run it."""


def check_kernels(
    kernels: Sequence[Source], engines: tuple[str, ...] = ENGINES, verified: bool = True
) -> list[Found]:
    """Compile some kernels at once and check each."""
    building = Building(kernels)
    ptx = to_ptx(kernels)
    return [
        check(kernel, ptx, wanted, engines, verified)
        for kernel, wanted in zip(kernels, building.results(), strict=True)
    ]


def to_ptx(kernels: Sequence[Source]) -> str:
    """Compile kernels by NVRTC, without contraction of products and sums."""
    outcome = nvrtc.compile_program(cuda_text(kernels), "kernels.cu", OPTIONS)
    if outcome.ptx is None:
        raise RuntimeError(f"NVRTC: {outcome.log[:3000]}")
    return outcome.ptx


def check(
    kernel: Source, ptx: str, wanted: Arrays | str, engines: tuple[str, ...] = ENGINES,
    verified: bool = True,
) -> Found:  # fmt: skip
    """Run a kernel in both engines, or in some."""
    if isinstance(wanted, str):
        return Found(kernel, "undefined", wanted)
    refused: list[str] = []
    traces: list[dict[str, bytes]] = []
    with TemporaryDirectory(prefix="fuzz") as folder:
        for engine in engines:
            try:
                path = Path(folder) / f"{engine}.cutrace"
                with _listening(refused):
                    found = run(kernel, ptx, path, engine)
                problem = difference(kernel, found, wanted)
                if problem:
                    how = "array" if engine == "array" or refused else "compiled"
                    return Found(kernel, f"{how} values", problem, _why(refused))
                traces.append(files_of(path))
                findings = verify(read_trace(path)) if verified and engine == "array" else []
                if findings:
                    return Found(kernel, "verify", str(findings[0]), _why(refused))
            except CutraceError as error:
                return Found(kernel, f"{engine} fault", str(error), _why(refused))
            except Exception as error:
                return Found(kernel, f"{engine} crash", f"{type(error).__name__}: {error}")
    first, last = traces[0], traces[-1]
    odd = sorted(name for name in first.keys() | last.keys() if first.get(name) != last.get(name))
    if odd:
        return Found(kernel, "traces", f"the engines' traces differ in {', '.join(odd)}")
    return Found(kernel, "", "", _why(refused))


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
        values: list[Any] = [held.get(name, words.get(name)) for name in kernel.parameters]
        function = gpu.load_ptx(ptx).get_function(kernel.name)
        function[kernel.launch.grid, kernel.launch.block](*values)
        return {name: held[name].copy_to_host() for name in OUTPUTS if name in held}


def difference(kernel: Source, found: Arrays, wanted: Arrays) -> str:
    """Where the results differ first, "" where they do not; all that is no number is alike."""
    for name, ours in found.items():
        theirs = wanted[name]
        odd = np.flatnonzero(~_alike(ours, theirs))
        if len(odd):
            k = odd[0]
            return (
                f"{name}[{k}] is {ours[k]!r}, the oracle has {theirs[k]!r} "
                f"({len(odd)} of {len(ours)} elements differ)"
            )
    return ""


def _alike(ours: NDArray[Any], theirs: NDArray[Any]) -> NDArray[Any]:
    same = ours.view(f"u{ours.itemsize}") == theirs.view(f"u{ours.itemsize}")
    if ours.dtype.kind == "f":
        same = same | (np.isnan(ours) & np.isnan(theirs))
    return np.asarray(same)


@contextmanager
def code_that_is_not_kept(quick: bool = False) -> Iterator[None]:
    """Keep no machine code of random kernels; with `quick` LLVM does not optimise it, which takes
    a tenth of the time and gives the same numbers."""
    compile_, keep = native._compile, object_cache.keep_object
    of_kernel = False

    def compile_quickly(assembly: str, vectors: bool, effort: int) -> bytes:
        nonlocal of_kernel
        of_kernel = effort == 1
        if not (quick and of_kernel):
            return compile_(assembly, vectors, effort)
        module = binding.parse_assembly(assembly)
        return cast(bytes, native._machine(0).emit_object(module))

    def keep_some(key: str, code: bytes) -> None:
        if not of_kernel:
            keep(key, code)

    with (
        patch.object(native, "_compile", compile_quickly),
        patch.object(native, "keep_object", keep_some),
    ):
        yield


@contextmanager
def _listening(refused: list[str]) -> Iterator[None]:
    """Keep what the compiled engine says when it refuses a kernel."""
    fall_back = choice._array

    def listen(program: Any, why: str) -> Any:
        if why != "the array engine was asked for":
            refused.append(why)
        return fall_back(program, why)

    with patch.object(choice, "_array", listen):
        yield


def _why(refused: Sequence[str]) -> str:
    return refused[0] if refused else ""


def same_failure(outcome: Found) -> Callable[[Sequence[Source]], list[bool]]:
    """Return what tells which kernels fail as this one does; it runs no more than it needs."""
    of_one = outcome.kind in ("array values", "array fault", "array crash", "verify")
    engines = ENGINES[:1] if of_one else ENGINES[1:] if "values" in outcome.kind else ENGINES

    def fails(kernels: Sequence[Source]) -> list[bool]:
        try:
            found = check_kernels(kernels, engines, outcome.kind == "verify")
        except RuntimeError:  # one of them is no C: ask for each
            if len(kernels) == 1:
                return [False]
            return [answer for kernel in kernels for answer in fails([kernel])]
        return [each.kind == outcome.kind and _alike_said(each, outcome) for each in found]

    return fails


def _alike_said(one: Found, other: Found) -> bool:
    """Faults are alike when they begin alike."""
    return "values" in one.kind or one.text.split(":")[0] == other.text.split(":")[0]
