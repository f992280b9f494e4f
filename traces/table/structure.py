"""What whoever reads a table relies on, checked of every record batch before it is handed on."""

import numpy as np
import pyarrow as pa

from ..schema import PATHS
from .nested import list_lengths, list_values


def check_instructions(batch: pa.RecordBatch, first: int) -> None:
    """Row i has pc i, and basic blocks are numbered in order of pc, without gaps.

    `first` is the number of the batch's first row; raises ValueError.
    """
    pc = batch["pc"].to_numpy()
    _refuse(pc != np.arange(first, first + len(pc)), first, "pc is not the row's number")
    block = batch["block"].to_numpy().astype(np.int64)
    steps = np.diff(block, prepend=-1 if first == 0 else block[:1])
    text = "its basic block is not this one's or the next"
    _refuse((steps < 0) | (steps > 1), first, text)


def check_paths(batch: pa.RecordBatch, first: int, blocks: int) -> None:
    """The lists of a path have one length, which is not 0, and name some of `blocks` basic blocks.

    `first` is the number of the batch's first row; raises ValueError.
    """
    lengths = list_lengths(batch["blocks"])
    _refuse(lengths == 0, first, "a path without basic blocks")
    for name in PATHS.names[1:]:
        differs = list_lengths(batch[name]) != lengths
        _refuse(differs, first, f"`{name}` and `blocks` have different lengths")
    unknown = np.flatnonzero(list_values(batch["blocks"]).to_numpy() >= blocks)
    if len(unknown):
        row = int(np.searchsorted(np.cumsum(lengths), unknown[0], "right"))
        entry = unknown[0] - int(lengths[:row].sum())
        raise ValueError(f"row {first + row}: entry {entry}: there are {blocks} basic blocks")


def _refuse(bad: "np.ndarray[tuple[int], np.dtype[np.bool_]]", first: int, text: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise ValueError(f"row {first + int(rows[0])}: {text}")
