"""Advice on a tile from counters alone, for launches with too many accesses to be read again.

If global loads ask for many times the bytes that DRAM delivers, the same data is loaded repeatedly.
A tile in shared memory helps where L1, L2 or issue slots limit the launch.
"""

import polars as pl

from ...inert import one_line
from ..counting.bounds import Bound, amount_text
from ..launch_profile import LaunchProfile

TIMES = 8
"""How often each byte that memory hands out is asked for, from which on a tile is worth a word."""
LIMITS = ("L1 data", "L2", "issue slots")
ASKED = "global_load_bytes_asked"


def counted_reuse(launch: LaunchProfile) -> str:
    """The advice, with the line that loads most; empty where it would not help."""
    counts = launch.raw.counts
    if launch.limited_by not in LIMITS or not {ASKED, "dram_bytes_read"} <= {*counts.columns}:
        return ""
    asked, read = (int(counts[name].sum()) for name in (ASKED, "dram_bytes_read"))
    if not read or asked < TIMES * read or _is_tiled(counts):
        return ""
    lines = counts.group_by("file", "line").agg(pl.col(ASKED).sum())
    file, line, _ = lines.sort(ASKED, "line", descending=[True, False]).row(0)
    amount = amount_text(Bound(ASKED, 0.0, asked, "bytes"))
    return one_line(
        f"advice: {file}:{line}: let each block bring a tile into shared memory once: loads ask for"
        f" {amount}, {asked / read:,.0f} times what memory hands out"
        " (--advice looks at every access)"
    )


def _is_tiled(counts: pl.DataFrame) -> bool:
    """Whether shared memory hands out more than global memory already."""
    return bool(counts["shared_load_bytes_asked"].sum() > counts[ASKED].sum())
