"""Stores that reach L2 together: cutrace's sectors of L2 beside those that an H100 counted.

A row of `merged_stores.csv.gz` is a launch: lanes of a warp store at `lane` bytes from one another,
warps at `warp`, blocks at `block` bytes, what `operations` say: `4@8` stores 4 bytes at offset 8,
`v4@0` four words, `4.cs@0` with a cache operator (`vol`, `rl?`, `rel`: volatile, relaxed, release),
`e4@0` in even and `q4@0` in odd lanes, `i4@0` to another array, `a8` computes eight dependent
products, `l`, `o`, `red`, `atom`, `lds` and `sts` are other accesses. ptxas 13.0 made the code.
`sectors`, `hits` and `l2_sectors` are `l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum`, its
`_lookup_hit`, and `lts__t_sectors_srcunit_tex_op_write.sum`.
"""

import csv
import gzip
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import cutrace
from cutrace.tracer.session.source.record import record

Row = Mapping[str, str]

EXACT = ("fill", "struct", "count", "down", "order", "same_line", "sweep", "sweep2", "warps")
"""Groups whose stores follow one another at once, or behind a barrier."""
IN_TURN = ("others", "arrays")
"""Groups of a warp that stores to other lines, then to the first again."""
TIMED = ("many", "chip")
"""Groups of many warps: how they take turns is up to time."""
MOST = 3 * math.log(2)
"""The largest error of a launch of many warps: a factor of eight, of 4 warps that all store to 8
lines at once.
"""
METRIC = "lts__t_sectors_srcunit_tex_op_write.sum"
HEAD = ".version 7.8\n.target sm_75\n.address_size 64\n"
KERNEL = """.visible .entry {name}(.param .u64 out, .param .u32 lanes, .param .u32 lane,
    .param .u32 warp, .param .u32 block)
{{
    .reg .u64 %o, %x;
    .reg .u32 %i, %l, %w, %v, %n;
    .reg .pred %p;
    ld.param.u64 %o, [out];
    mov.u32 %i, %tid.x;
    and.b32 %l, %i, 31;
    shr.u32 %w, %i, 5;
    add.u32 %v, %i, 1;
    ld.param.u32 %n, [lane];
    mul.wide.u32 %x, %l, %n;
    add.u64 %o, %o, %x;
    ld.param.u32 %n, [warp];
    mul.wide.u32 %x, %w, %n;
    add.u64 %o, %o, %x;
    ld.param.u32 %n, [block];
    mov.u32 %i, %ctaid.x;
    mul.wide.u32 %x, %i, %n;
    add.u64 %o, %o, %x;
    ld.param.u32 %n, [lanes];
    setp.ge.u32 %p, %l, %n;
    @%p bra END;
    {body}
END:
    ret;
}}
"""


def rows(*groups: str) -> Sequence[Row]:
    """The rows of some groups that do nothing but store."""
    with gzip.open(Path(__file__).with_name("merged_stores.csv.gz"), "rt", newline="") as file:
        table = list(csv.DictReader(file))
    return [
        row
        for row in table
        if row["group"] in groups
        and all(op == "bar" or op.startswith("4@") for op in row["operations"].split())
        and int(row["sectors"]) < 9000
    ]


def statement(operation: str) -> str:
    """The PTX of an operation."""
    offset = operation.removeprefix("4@")
    return "bar.sync 0;" if operation == "bar" else f"st.global.u32 [%o+{offset}], %v;"


def sectors(launches: Sequence[Row], folder: Path) -> list[int]:
    """The sectors that L2 gets in each launch, by cutrace."""
    names = {row["operations"]: "" for row in launches}
    names = {operations: f"k{number}" for number, operations in enumerate(names)}
    lines, array = [], "out:u8[33554432]"
    for row in launches:
        numbers = ", ".join(row[name] for name in ("lanes", "lane", "warp", "block"))
        name = names[row["operations"]]
        lines.append(f"// cutrace: {name}<<<{row['grid']}, {row['threads']}>>>({array}, {numbers})")
        array = "out"
    text = [
        KERNEL.format(name=name, body="\n    ".join(map(statement, operations.split())))
        for operations, name in names.items()
    ]
    source = folder / "stores.ptx"
    source.write_text("\n".join([*lines, HEAD, *text]))
    trace = cutrace.read_trace(record(source, [], folder / "stores.cutrace"))
    profile = cutrace.analyze(trace, "h100")
    return [int(launch.counters[METRIC] or 0) for launch in profile.launches]


def test_stores_that_follow_one_another_merge_as_on_the_chip(tmp_path: Path) -> None:
    launches = rows(*EXACT)
    assert len(launches) > 140
    merged = [row for row in launches if row["l2_sectors"] != row["sectors"]]
    assert len(merged) > 90
    found = zip(launches, sectors(launches, tmp_path), strict=True)
    assert [(*row.values(), ours) for row, ours in found if ours != int(row["l2_sectors"])] == []


def test_stores_to_other_lines_push_out_what_waits_as_on_the_chip(tmp_path: Path) -> None:
    launches = rows(*IN_TURN)
    assert len(launches) == 108
    found = list(zip(launches, sectors(launches, tmp_path), strict=True))
    wrong = [(row, ours) for row, ours in found if ours != int(row["l2_sectors"])]
    # 8 lanes store to two lines of 3 to 12 arrays in turn: a part merges on the chip, none here
    apart = [row for row, ours in wrong if ours == int(row["sectors"])]
    assert {(row["group"], row["lanes"], row["lane"]) for row in apart} == {("arrays", "8", "32")}
    # 32 lanes store across the end of a line of two arrays in turn: none merges on the chip
    assert len(wrong) - len(apart) <= 1


def test_stores_of_many_warps_merge_about_as_on_the_chip(tmp_path: Path) -> None:
    launches = rows(*TIMED)
    assert len(launches) > 30
    chip = [int(row["l2_sectors"]) for row in launches]
    errors = [
        abs(math.log(ours / theirs))
        for ours, theirs in zip(sectors(launches, tmp_path), chip, strict=True)
    ]
    apart = [
        abs(math.log(int(row["sectors"]) / theirs))
        for row, theirs in zip(launches, chip, strict=True)
    ]
    assert max(errors) <= MOST
    assert sum(errors) < 0.8 * sum(apart)


def test_stores_merge_where_that_was_measured(tmp_path: Path) -> None:
    source = tmp_path / "k.ptx"
    body = "\n".join(statement(f"4@{4 * word}") for word in range(8))
    line = "// cutrace: k<<<1, 32>>>(out:u8[4096], 32, 32, 0, 0)\n"
    source.write_text(line + HEAD + KERNEL.format(name="k", body=body))
    trace = cutrace.read_trace(record(source, [], tmp_path / "k.cutrace"))
    for device, expected in (("b200", 8 * 32), ("h200", 32)):
        assert cutrace.analyze(trace, device).launches[0].counters[METRIC] == expected
