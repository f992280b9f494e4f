"""What L1 of an H200 found of lines that were read in turn and of stores, beside ours; and what an
H100 read from memory for the code itself.

From scripts/capture/counters.py over tests/validate/caches/{sets,stores,bursts}.cu, and from
scripts/capture/fetches.py. Stores that follow one another without a pause are up to time, and are
not held to the chip.
"""

import csv
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path

import numpy as np
import pytest

import cutrace
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.schedule.gpcs import place_runs
from cutrace.models.replay.schedule.place import place
from cutrace.tracer.session.source.record import record
from cutrace.traces.machine_schedule import unpack_schedule

FOLDER = Path(__file__).parent / "caches"
HITS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}_lookup_hit.sum"
LINES = 1728
"""What L1 has beside 32 KB of shared memory."""

H100 = load_device("h100").chip

Rows = Sequence[Mapping[str, str]]


def read(name: str) -> Rows:
    """Return the rows of a table of what the chip counted."""
    with (FOLDER / name).open(newline="") as file:
        return list(csv.DictReader(file))


def count(source: str, folder: Path) -> Sequence[LaunchProfile]:
    """Record and count all launches of a source."""
    path = record(FOLDER / source, [], folder / "t.cutrace")
    return cutrace.analyze(cutrace.read_trace(path), "h200").launches


def test_half_of_what_l1_holds_is_found_again_at_any_stride(tmp_path: Path) -> None:
    rows, ours = read("h200_sets.csv"), count("sets.cu", tmp_path)
    assert len(rows) == len(ours)
    told = [
        (int(row["hits"]), each.counters[HITS.format("ld")])
        for row, each in zip(rows, ours, strict=True)
        if int(row["lines"]) <= LINES // 2 and int(row["carveout"]) == 32768
    ]
    assert len(told) > 40
    assert [pair for pair in told if not 0.98 * pair[0] <= (pair[1] or 0) <= pair[0]] == []


@pytest.mark.parametrize(
    ("source", "kernels"),
    [("stores.cu", ("twice", "in_turn", "all_warps")), ("bursts.cu", ("later",))],
)
def test_stores_find_their_lines_as_on_the_chip(
    source: str, kernels: Sequence[str], tmp_path: Path
) -> None:
    rows = [row for row in read("h200_stores.csv") if row["source"] == source]
    told = [
        (row["kernel"], int(row["number"]), int(row["hits"]), each.counters[HITS.format("st")] or 0)
        for row, each in zip(rows, count(source, tmp_path), strict=True)
        if row["kernel"] in kernels and int(row["sectors"]) <= 4 * LINES  # of more lines, some stay
    ]
    assert {kernel for kernel, *_ in told} == set(kernels)
    assert [t for t in told if abs(t[2] - t[3]) > 0.01 * t[2]] == []


def test_code_is_read_from_memory_once_with_what_is_fetched_ahead() -> None:
    """Straight code of 384 bytes to 192 KB by 1 to 264 blocks. What of 128 KB does not run (a first
    or last quarter alone, `part` 1 and 2 of `partial`) is left out: the chip reads less of it."""
    chip = load_device("h100").chip
    sizes = [
        (chip.fetch_code(int(row["code_bytes"])), int(row["dram_bytes_read"]))
        for row in read("h100_code.csv")
        if (row["kernel"], row["code_bytes"]) != ("partial", "132096") or row["part"] in "03"
    ]
    assert len(sizes) > 140
    assert sum(ours == theirs for ours, theirs in sizes) >= 0.74 * len(sizes)
    assert sum(abs(ours - theirs) <= 256 for ours, theirs in sizes) >= 0.95 * len(sizes)


def test_a_count_of_memory_has_the_codes_part_and_its_lines_have_none(tmp_path: Path) -> None:
    source = tmp_path / "k.cu"
    source.write_text(
        "// cutrace: k<<<1, 32>>>(out: i32[32])\n"
        "__global__ void k(int *out) { out[threadIdx.x] = 3; }\n"
    )
    trace = cutrace.read_trace(record(source, [], tmp_path / "t.cutrace"))
    launch = cutrace.analyze(trace, "h100").launches[0]
    assembled = launch.launch.assembled_for((9, 0))
    assert assembled is not None
    code = 16 * len(unpack_schedule(assembled.schedule))
    assert code >= 128
    assert launch.counters["dram_bytes_read"] == 0  # a line that is stored is not read
    assert launch.counters["dram__bytes_read.sum"] == code + 1536 + 896
    assert launch.counters["dram__sectors_read.sum"] == (code + 1536 + 896) // 32
    older = cutrace.analyze(trace, "a100").launches[0]
    assert older.counters["dram__bytes_read.sum"] == 0


def read_counts(name: str) -> list[dict[str, int]]:
    """Rows of numbers; those of `from` are 1 where memory has the data, 0 where L2 has them."""
    return [
        {key: int(value) if key != "from" else int(value == "memory") for key, value in row.items()}
        for row in read(name)
    ]


def test_an_h100_joins_reads_while_the_first_is_on_its_way() -> None:
    """SM 0 reads a line of 128 bytes, and SM 1 or 16, of its GPC, some cycles later.

    It is read once up to 500 cycles apart if memory has it, up to 60 if L2 does
    (`shared_reads.cu`), by loads (`how` 0), bulk copies and boxes alike."""
    found = {(1, 1): set[int](), (1, 2): set[int](), (0, 1): set[int](), (0, 2): set[int]()}
    for row in read_counts("h100_reads.csv"):
        if row["bytes"] == 128 and row["other"] in (1, 16) and row["div"] == 132:
            found[row["from"], row["sectors"] // 4].add(row["delay"])
    assert max(found[1, 1] - {600}) == 500
    assert min(found[1, 2]) == 600
    assert (max(found[0, 1]), min(found[0, 2])) == (60, 80)


def test_what_four_sms_of_a_gpc_read_at_once_is_read_once() -> None:
    """132 blocks, one on an SM, read streams that some of them share: L2 is asked for a stream once
    for each four of its blocks in a GPC. Up to a tenth more are asked for where more share it."""
    gpcs, compared = place_runs(H100.gpcs, H100.gpc_apart, 132, start=0), 0
    for row in read_counts("h100_reads.csv"):
        if row["by_sm"] or row["last"] != 132 or row["rounds"] > 1:
            continue
        stream = np.arange(132) // row["div"] % row["mod"]
        sharing = np.zeros((row["mod"], 8), np.int64)
        np.add.at(sharing, (stream, gpcs), 1)
        joined = int((-(-sharing // 4)).sum()) * row["pieces"] * row["bytes"] // 32
        exact = int(sharing.max()) <= 4
        assert row["sectors"] == joined if exact else joined <= row["sectors"] < 1.1 * joined, row
        compared += 1
    assert compared == 52


def test_blocks_go_to_gpcs_as_an_h100_places_them() -> None:
    """Which GPC is first changes from launch to launch; how many blocks each gets hardly does."""
    equal, within, many = 0, 0, 0
    for row in read("h100_places.csv"):
        grid = tuple(map(int, row["grid"].split("x")))
        cluster = tuple(map(int, row["cluster"].split("x"))) if row["cluster"] else ()
        blocks = len(row["gpcs"])
        if blocks > 132 or prod(cluster) > 4:
            continue
        ours = place(H100, blocks, shape=(grid, cluster)).gpc()
        theirs = np.array([*map(int, row["gpcs"])])
        each = [np.sort(np.bincount(one, minlength=8)) for one in (ours, theirs)]
        if not cluster:  # runs of consecutive blocks, and those of the SMs apart
            assert np.count_nonzero(np.diff(theirs)) <= 8
        equal += bool((each[0] == each[1]).all())
        within += bool((abs(each[0] - each[1]) <= 2 * max(prod(cluster), 1)).all())
        many += 1
    assert (many, within) == (many, many)
    assert equal >= 0.8 * many


def test_an_h100_asks_the_host_for_each_sector_that_its_sms_ask_for() -> None:
    """One block reads 64 KB four times, 132 blocks read it, and others their own part (`host.cu`).

    All of it is fetched; memory has the 2,560 to 3,584 bytes of the code and the launch alone."""
    counts = {
        (row["kernel"], int(row["blocks"])): {k: int(v) for k, v in row.items() if k != "kernel"}
        for row in read("h100_host.csv")
    }
    sectors = 65536 // 32
    assert counts["k06_four_cg", 1]["read"] == 4 * sectors
    assert counts["k07_all_cg", 132]["read"] == 132 * sectors
    assert counts["k15_atomic", 64]["sectors"] == 64 * 256 * 4 // 32
    for (kernel, _), row in counts.items():
        updates = row["sectors"] - row["read"] - row["stored"]
        assert row["filled"] - row["read"] - updates in (0, 1), kernel
        assert row["dram_bytes"] < 3600 or kernel == "k19_add_host", kernel  # reads 256 KB of DRAM
