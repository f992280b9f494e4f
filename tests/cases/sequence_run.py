"""Run a captured sequence of instructions in one of the engines."""

from typing import Any

import numpy as np
from fuzz.sequence import LANES, operands
from numpy.typing import NDArray
from ptx.ptx_run import HEADER, run_kernel


def run_sequence(row: dict[str, Any], engine: str) -> NDArray[np.uint64]:
    """Run a sequence; return (registers, threads)."""
    columns = operands(row["number"], row["kinds"])
    count = len(row["registers"])
    arrays = [columns.reshape(-1), np.zeros(count * LANES, np.uint64)]
    found = run_kernel(HEADER + row["ptx"], "k", LANES, arrays, engine=engine)
    return found[1].reshape(count, LANES)
