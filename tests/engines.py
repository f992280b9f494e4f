"""One session under both engines: the same trace, byte for byte, and the same arrays."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import cutrace

Run = Callable[[cutrace.Session], list[NDArray[Any]]]


def files_of(trace: Path) -> dict[str, bytes]:
    """Every file of a trace."""
    return {
        str(path.relative_to(trace)): path.read_bytes()
        for path in sorted(trace.rglob("*"))
        if path.is_file()
    }


def compiled_where_known() -> AbstractContextManager[Any]:
    """Let `auto` compile every kernel that the compiled engine knows, however small."""
    return patch("cutrace.tracer.simt.tier._is_worth_compiling", lambda program: True)


def assert_same_under_both(folder: Path, run: Run, compiled: str = "compiled") -> Path:
    """Record `run` under both engines and compare; return a trace.

    With `compiled` "auto" kernels that the compiled engine does not know run in the other one.
    """
    traces, results = [], []
    for engine in ("array", compiled):
        trace = folder / f"{engine}.cutrace"
        with compiled_where_known(), cutrace.Session(trace, engine=engine) as gpu:
            results.append(run(gpu))
        traces.append(files_of(trace))
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert traces[0].keys() == traces[1].keys()
    assert [name for name in traces[0] if traces[0][name] != traces[1][name]] == []
    return trace
