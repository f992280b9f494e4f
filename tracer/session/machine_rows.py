"""Rows of a launch of machine code: each instruction of the machine is several of the engine's."""

from typing import Any

import numpy as np

from ..ptx.kernel import Kernel
from ..ptx.opcodes import LEAVES
from ..simt.kernel.launch import Sink


class MachineRows:
    """A sink that writes the rows of the machine's instructions, by `rows` of the kernel."""

    def __init__(self, sink: Sink, kernel: Kernel) -> None:
        self._sink = sink
        self._rows = np.array(kernel.rows, np.uint32)
        last = {
            row: pc
            for pc, row in enumerate(kernel.rows)
            if (one := kernel.instructions[pc]).opcode not in (*LEAVES, "bra")
            and one.mnemonic != "bar.warp.sync"
        }
        self._is_last = np.zeros(len(self._rows), np.bool_)
        self._is_last[list(last.values())] = True
        lengths = np.array([kernel.length(block) for block in kernel.blocks])
        self._number = (np.cumsum(lengths > 0) - 1).astype(np.uint32)

    def put(self, table: str, **columns: Any) -> int:
        """Add rows to a table; of lanes with a true predicate those of the last operation of each
        instruction."""
        if "pc" in columns:
            if table == "lanes_on":
                keep = self._is_last[columns["pc"]]
                columns = {
                    n: c[keep] if isinstance(c, np.ndarray) else c for n, c in columns.items()
                }
            columns["pc"] = self._rows[columns["pc"]]
        if table == "paths":  # blocks without rows have no number
            columns["blocks"] = self._number[columns["blocks"]]
        return self._sink.put(table, **columns)
