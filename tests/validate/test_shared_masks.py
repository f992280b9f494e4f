"""Wavefronts and conflicts of shared memory with some lanes inactive, as an H100 counted them.

A row of `shared_masks.csv` is one access of one warp: its active lanes and their addresses, drawn
at random (strides, few words, permutations, pairs of lanes that agree or nearly), and the two
counters of the hardware, `l1tex__data_pipe_lsu_wavefronts_mem_shared_op_*` and
`l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_*`.
"""

import csv
from pathlib import Path

from stages import serve
from warps import warp


def test_conflicts_with_any_mask_are_those_of_the_chip() -> None:
    with Path(__file__).with_name("shared_masks.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 175
    assert sum(row["mask"] != "ffffffff" for row in rows) > 120
    different = []
    for number, row in enumerate(rows):
        mask, addresses = int(row["mask"], 16), map(int, row["addresses"].split())
        lanes = warp(addresses=[a if mask >> n & 1 else None for n, a in enumerate(addresses)])
        found = serve("h100", lanes, int(row["bytes"]), row["access"], "shared")
        counted = int(row["wavefronts"]), int(row["conflicts"])
        if (found["passes"], found["conflicts"]) != counted:
            different.append((number, counted, found["passes"], found["conflicts"]))
    assert different == []
