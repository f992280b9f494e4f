"""Random kernels on cutrace: what they leave, and a trace that keeps its promises."""

import os
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from fuzz import reference
from fuzz.instruction import WIDTHS
from fuzz.number import mask
from fuzz.syntax import WORDS, Program
from fuzz.writer import SAVED, write
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import CutraceError
from cutrace.traces.reader import read_trace
from cutrace.traces.schema import Resources
from cutrace.traces.verify import verify

os.environ.setdefault("CUTRACE_INVARIANTS", "1")  # see tracer/simt/warp/invariant.py

_EDGES = np.array(
    [0, 1, 2, 3, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0xC0490FDB, 0x7FC00000, 0x00000001,
     0x3FF0000000000000, 0xC00921FB54442D18, 0x7FF8000000000000, 0x8000000000000000, 1 << 62],
    np.uint64,
)  # fmt: skip


def first_rows(program: Program) -> NDArray[Any]:
    """The words that each thread starts with: edges of the types, small numbers, random bits."""
    count = program.blocks * program.threads
    words = np.random.PCG64(program.seed).random_raw(3 * count * len(SAVED))
    kind, edge, bits = np.asarray(words).reshape(3, count, len(SAVED))
    edges = _EDGES[edge % np.uint64(len(_EDGES))]
    small = bits % np.uint64(40)
    return np.choose((kind % np.uint64(3)).astype(np.int64), [edges, small, bits])


@contextmanager
def without_assembler() -> Iterator[None]:
    """Ask nobody for registers, which takes longer than a small kernel."""
    nothing: Future[tuple[Resources, ...]] = Future()
    nothing.set_result(())
    with patch(
        "cutrace.tracer.session.module.ask_resources", lambda ptx, kernel, options=(): nothing
    ):
        yield


def same(name: str, ours: int, theirs: int) -> bool:
    """Return whether a register has the value that it should have."""
    return ours == theirs


def check(program: Program, folder: Path, engine: str = "array") -> Path:
    """Run a program here and in the reference; return the trace, AssertionError where they differ.

    A kernel that the compiled engine does not know passes.
    """
    path = folder / "t.cutrace"
    try:
        _check(program, path, engine)
    except CutraceError as error:
        if engine != "compiled" or "the compiled engine" not in str(error):
            raise
    return path


def _check(program: Program, path: Path, engine: str) -> None:
    rows = first_rows(program)
    text = write(program)
    with without_assembler(), cutrace.Session(path, engine=engine) as gpu:
        source, result = gpu.to_device(rows), gpu.to_device(np.zeros_like(rows))
        cells = gpu.device_array(WORDS, np.uint32)
        kernel = gpu.load_ptx(text).get_function("k")
        kernel[program.blocks, program.threads](source, result, cells)
        found, counted = result.copy_to_host(), cells.copy_to_host()
    threads = [reference.first_registers(row.tolist()) for row in rows]
    wanted, expected = reference.run(program, threads)
    for number, registers in enumerate(wanted):
        for place, name in enumerate(SAVED):
            ours = int(found[number, place]) & mask(max(WIDTHS[name[0]], 1))
            theirs = registers[name]
            assert same(name, ours, theirs), (
                f"thread {number}, {name}: {ours:#x}, not {theirs:#x}\n{text}"
            )
    assert counted.tolist() == expected, text
    assert verify(read_trace(path)) == []
