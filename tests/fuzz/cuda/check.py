"""Random kernels on cutrace: both engines against the oracle, and their traces with each other."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from engines import files_of
from fuzz.cuda.batch import Arrays, Source
from fuzz.cuda.compiler import NotC, to_ptx
from fuzz.cuda.engine import code_that_is_not_kept, listening, run
from fuzz.cuda.oracle import Building, Wanted
from fuzz.cuda.silicon import run_on_chip, runs_on_chip
from numpy.typing import NDArray

from cutrace.base.errors import CutraceError
from cutrace.traces.reader import read_trace
from cutrace.traces.verify import verify


@dataclass(frozen=True)
class How:
    """What is done with each kernel."""

    engines: tuple[str, ...] = ("array", "auto")
    verified: bool = True
    """Whether the trace is verified."""
    quick: bool = False
    """Whether LLVM leaves out its optimisation."""
    nvcc: str = ""
    """The path of an nvcc that compiles instead of NVRTC."""
    chip: bool = False
    """Whether a real GPU is asked, too."""


EVERYTHING = How()

os.environ.setdefault("CUTRACE_INVARIANTS", "1")  # see tracer/simt/warp/invariant.py


@dataclass(frozen=True)
class Found:
    """What became of a kernel: `kind` is "" where all agree."""

    kernel: Source
    kind: str
    text: str = ""
    refused: str = ""
    """Why the compiled engine did not run it."""


def check_kernels(kernels: Sequence[Source], how: How = EVERYTHING) -> list[Found]:
    """Compile some kernels at once and check each."""
    building = Building(kernels)
    ptx = to_ptx(kernels, how.nvcc)
    with code_that_is_not_kept(how.quick):
        return [
            check(kernel, ptx, wanted, how)
            for kernel, wanted in zip(kernels, building.results(), strict=True)
        ]


def check(kernel: Source, ptx: str, wanted: Wanted | str, how: How = EVERYTHING) -> Found:
    """Run a kernel in both engines, or in some; clusters run in arrays alone."""
    if isinstance(wanted, str):
        return Found(kernel, "undefined", wanted)
    refused: list[str] = []
    traces: list[dict[str, bytes]] = []
    asks_chip = how.chip and runs_on_chip(kernel)
    problem = difference(run_on_chip(kernel, ptx), wanted) if asks_chip else ""
    if problem:
        return Found(kernel, "chip values", problem)
    why = ""
    with TemporaryDirectory(prefix="fuzz") as folder, listening(refused):
        for engine in how.engines[: 1 if kernel.launch.cluster != (1, 1, 1) else None]:
            kind, said = _try(kernel, ptx, wanted, Path(folder) / f"{engine}.cutrace", how)
            why = refused[0] if refused else ""
            if kind:
                name = "array" if engine == "array" or why else "compiled"
                return Found(kernel, f"{name} {kind}", said, why)
            traces.append(files_of(Path(folder) / f"{engine}.cutrace"))
    first, last = (traces[0], traces[-1]) if traces else ({}, {})
    odd = sorted(name for name in first.keys() | last.keys() if first.get(name) != last.get(name))
    if odd:
        return Found(kernel, "traces", f"the engines' traces differ in {', '.join(odd)}", why)
    return Found(kernel, "", "", why)


def _try(kernel: Source, ptx: str, wanted: Wanted, path: Path, how: How) -> tuple[str, str]:
    """Run a kernel in the engine that a trace is named for; return what is wrong and how."""
    engine = path.stem
    try:
        problem = difference(run(kernel, ptx, path, engine), wanted)
        if problem:
            return "values", problem
        if how.verified and engine == "array":
            return next((("verify", str(each)) for each in verify(read_trace(path))), ("", ""))
    except CutraceError as error:
        return "fault", str(error)
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"
    return "", ""


def difference(found: Arrays, wanted: Wanted) -> str:
    """Where the results differ first, "" where they do not; all that is no number is alike."""
    for name, ours in found.items():
        theirs, other = (either[name] for either in wanted)
        odd = np.flatnonzero(~(_alike(ours, theirs) | _alike(ours, other)))
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


def same_failure(outcome: Found, how: How) -> Callable[[Sequence[Source]], list[bool]]:
    """Return what tells which kernels fail as this one does; it runs no more than it needs."""
    if outcome.kind.startswith("chip"):
        how = replace(how, engines=())
    elif outcome.kind.startswith("array") and not outcome.refused:
        how = replace(how, engines=("array",), verified="verify" in outcome.kind)
    elif "values" in outcome.kind:
        how = replace(how, engines=("auto",))

    def fails(kernels: Sequence[Source]) -> list[bool]:
        try:
            found = check_kernels(kernels, how)
        except NotC:  # one of them: ask for each
            if len(kernels) == 1:
                return [False]
            return [answer for kernel in kernels for answer in fails([kernel])]
        return [each.kind == outcome.kind and _alike_said(each, outcome) for each in found]

    return fails


def _alike_said(one: Found, other: Found) -> bool:
    """Faults are alike when they begin alike."""
    return "values" in one.kind or one.text.split(":")[0] == other.text.split(":")[0]
