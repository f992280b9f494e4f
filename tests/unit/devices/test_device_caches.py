"""What the caches of each era keep: a few warps by hand, one after another, through all stages.

A warp of 32 neighbouring ints is one line of 128 bytes or 4 sectors of 32.
"""

import numpy as np
import pytest
from stages import batch_of
from warps import warp

from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.device.fallback import adapt_kinds
from cutrace.models.replay.device.wiring import wire
from cutrace.models.replay.histogram.stages import Stages
from cutrace.models.replay.interface.model import Kind

KB = 1024
LOAD, STORE = Kind("global", "load", "ca", 4), Kind("global", "store", "", 4)
UNCACHED, READ_ONLY = Kind("global", "load", "cg", 4), Kind("global", "load", "nc", 4)
LOCAL_LOAD, LOCAL_STORE = Kind("local", "load", "", 4), Kind("local", "store", "", 4)
CONSTANT, ATOMIC = Kind("const", "load", "", 4), Kind("global", "atomic", "", 4)


class Chip:
    """The stages of a device, that keep what they have seen."""

    def __init__(self, name: str, settings: dict[str, object] | None = None) -> None:
        self.device = load_device(name, settings)
        self.wires = wire(self.device.stages, name)
        self.stages = Stages(self.wires)

    def see(self, kind: Kind, base: int = 0) -> dict[str, int]:
        """Serve a warp of words side by side, of one constant; return what is not 0 by stage."""
        (adapted,) = adapt_kinds((kind,), self.device.capability, "ca")
        stride = 4 if kind.space == "global" else 0  # local words of neighbours lie side by side
        answers = self.stages.run(batch_of(warp(base=base, stride=stride), kind=adapted), {})
        return {
            f"{w.stage.name}_{counter}": value
            for w in self.wires
            if w.stage.model in ("cache", "memory")
            for counter, value in zip(w.counters, answers[w.stage.name][:, 0].tolist(), strict=True)
            if value
        }


@pytest.mark.parametrize("name", ["sm_10", "sm_11", "sm_12", "sm_13"])
def test_1_x_caches_neither_global_nor_local_memory(name: str) -> None:
    chip = Chip(name)
    for _ in range(2):
        assert chip.see(LOAD) == {"dram_bytes_read": 128}
        assert chip.see(STORE) == {"dram_bytes_written": 128}
        assert chip.see(LOCAL_LOAD) == {"dram_bytes_read": 128}


@pytest.mark.parametrize("name", ["sm_10", "sm_13", "sm_20"])
def test_constants_of_the_first_devices_stay_in_a_cache_of_64_byte_lines(name: str) -> None:
    chip = Chip(name)
    halves = 2 if name < "sm_20" else 1  # each half-warp of 1.x asks for itself
    first = chip.see(CONSTANT)
    assert (first["idc_reads"], first["idc_fills"]) == (halves, 1)
    assert chip.see(CONSTANT) == {"idc_reads": halves, "idc_read_hits": halves}
    assert chip.see(CONSTANT, 60) == {"idc_reads": halves, "idc_read_hits": halves}
    assert chip.see(CONSTANT, 64)["idc_fills"] == 1


@pytest.mark.document("004.2", "2.x: a store goes to L2 and takes the line of L1 away")
@pytest.mark.parametrize("name", ["sm_20", "sm_21"])
def test_2_x_keeps_lines_of_global_loads_until_a_store_takes_them_away(name: str) -> None:
    chip = Chip(name)
    first = chip.see(LOAD)
    assert (first["l1_reads"], first["l1_fills"], first["l2_reads"]) == (1, 1, 4)
    assert first["dram_bytes_read"] == 128
    assert chip.see(LOAD) == {"l1_reads": 1, "l1_read_hits": 1}
    assert chip.see(STORE)["l2_writes"] == 4
    again = chip.see(LOAD)
    assert (again["l1_reads"], again["l2_read_hits"]) == (1, 4)
    assert "l1_read_hits" not in again


@pytest.mark.parametrize("name", ["sm_20", "sm_21"])
def test_2_x_loads_that_pass_l1_are_sectors_of_l2(name: str) -> None:
    chip = Chip(name)
    assert chip.see(UNCACHED) == {"l2_reads": 4, "l2_fills": 4, "dram_bytes_read": 128}
    assert chip.see(UNCACHED) == {"l2_reads": 4, "l2_read_hits": 4}


@pytest.mark.parametrize("name", ["sm_20", "sm_30", "sm_35", "sm_37"])
def test_local_stores_wait_in_l1_of_2_x_and_3_x(name: str) -> None:
    chip = Chip(name)
    assert "l2_writes" not in chip.see(LOCAL_STORE)
    assert chip.see(LOCAL_LOAD) == {"l1_reads": 1, "l1_read_hits": 1}


@pytest.mark.parametrize("name", ["sm_30", "sm_32", "sm_35", "sm_37", "sm_50", "sm_52", "sm_61"])
def test_global_loads_of_3_x_and_most_of_5_x_and_6_x_are_kept_in_l2_only(name: str) -> None:
    chip = Chip(name)
    assert chip.see(LOAD) == {"l2_reads": 4, "l2_fills": 4, "dram_bytes_read": 128}
    assert chip.see(LOAD) == {"l2_reads": 4, "l2_read_hits": 4}


@pytest.mark.parametrize("name", ["sm_30", "sm_32"])
def test_before_3_5_a_read_only_load_is_a_plain_one(name: str) -> None:
    assert Chip(name).see(READ_ONLY) == {"l2_reads": 4, "l2_fills": 4, "dram_bytes_read": 128}


@pytest.mark.parametrize("name", ["sm_35", "sm_37"])
def test_from_3_5_on_read_only_loads_stay_in_the_texture_cache(name: str) -> None:
    chip = Chip(name)
    first = chip.see(READ_ONLY)
    assert (first["tex_reads"], first["tex_fills"], first["l2_reads"]) == (4, 4, 4)
    assert chip.see(READ_ONLY) == {"tex_reads": 4, "tex_read_hits": 4}


@pytest.mark.parametrize("name", ["sm_50", "sm_52", "sm_53", "sm_61", "sm_62"])
def test_l1_of_5_x_is_for_read_only_loads_and_local_memory_passes_it(name: str) -> None:
    chip = Chip(name)
    assert chip.see(READ_ONLY)["l1_fills"] == 4
    assert chip.see(READ_ONLY) == {"l1_reads": 4, "l1_read_hits": 4}
    assert chip.see(LOCAL_LOAD, 1 << 20)["l2_reads"] == 4
    assert "l1_reads" not in chip.see(LOCAL_LOAD, 1 << 20)


@pytest.mark.parametrize("name", ["sm_52", "sm_53", "sm_61"])
def test_l1_of_5_2_keeps_global_loads_where_they_are_opted_in(name: str) -> None:
    chip = Chip(name, {"l1.operators": '["ca", "nc"]'})
    assert chip.see(LOAD)["l1_fills"] == 4
    assert chip.see(LOAD) == {"l1_reads": 4, "l1_read_hits": 4}


def test_6_0_keeps_global_loads_in_l1() -> None:
    chip = Chip("sm_60")
    assert chip.see(LOAD)["l1_fills"] == 4
    assert chip.see(LOAD) == {"l1_reads": 4, "l1_read_hits": 4}
    assert chip.see(STORE)["l2_writes"] == 4
    assert "l1_read_hits" not in chip.see(LOAD)


UNIFIED = ["sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_100"]
NEWEST = ["sm_103", "sm_110", "sm_120", "sm_121"]


@pytest.mark.parametrize("name", [*UNIFIED, *NEWEST])
def test_since_7_0_l1_keeps_loads_and_what_stores_fill(name: str) -> None:
    chip = Chip(name)
    assert chip.see(LOAD)["l1_fills"] == 4
    assert chip.see(LOAD) == {"l1_reads": 4, "l1_read_hits": 4}
    stored = chip.see(STORE, 128)
    assert (stored["l1_writes"], stored["l2_writes"]) == (4, 4)
    assert chip.see(LOAD, 128) == {"l1_reads": 4, "l1_read_hits": 4}
    assert chip.see(ATOMIC)["l2_writes"] == 4
    assert "l1_read_hits" not in chip.see(LOAD)  # the atomic took the sectors away


@pytest.mark.parametrize("name", [*UNIFIED, *NEWEST])
def test_since_7_0_l2_fetches_two_sectors_at_a_time(name: str) -> None:
    chip = Chip(name)
    lane = Kind("global", "load", "cg", 4)
    batch = batch_of(warp(lanes=[0], base=0), kind=lane)
    answers = chip.stages.run(batch, {})
    place = {w.stage.name: w.counters for w in chip.wires}
    assert answers["l2"][place["l2"].index("fills")][0] == 2
    assert answers["dram"][place["dram"].index("bytes_read")][0] == 64


@pytest.mark.parametrize("name", ["sm_30", "sm_50", "sm_70", "sm_90", "sm_121"])
def test_constants_since_3_0_have_a_second_cache_of_256_byte_lines(name: str) -> None:
    chip = Chip(name)
    first = chip.see(CONSTANT)
    assert (first["idc_fills"], first["l15_fills"], first["l2_reads"]) == (1, 1, 256 // 32)
    assert chip.see(CONSTANT) == {"idc_reads": 1, "idc_read_hits": 1}
    second = chip.see(CONSTANT, 64)
    assert (second["idc_fills"], second["l15_read_hits"]) == (1, 1)
    assert "l2_reads" not in second


SIZES = """
name    l1  tex  idc l15 l2
sm_10   -   16   8   -   -
sm_13   -   24   8   -   -
sm_20   64  12   8   -   768
sm_21   64  12   8   -   512
sm_30   64  48   2   32  512
sm_32   64  48   2   32  128
k20     64  48   2   32  1280
k40     64  48   2   32  1536
sm_37   128 48   2   32  1536
sm_50   24  -    2   31.5 2048
gtx980  24  -    2   31.5 2048
sm_53   24  -    2   31.5 256
p100    24  -    2   31.5 4096
gtx1080 48  -    2   31.5 2048
sm_62   24  -    2   31.5 512
v100    128 -    2   64  6144
gtx1650 96  -    2   46  1024
gtx1660 96  -    2   46  1536
rtx2060 96  -    2   46  3072
t4      96  -    2   46  4096
a100    192 -    2   64  40960
rtx3050 128 -    2   64  2048
rtx3060 128 -    2   64  3072
rtx3070 128 -    2   64  4096
rtx3080 128 -    2   64  5120
a10g    128 -    2   64  6144
rtx3090 128 -    2   64  6144
sm_87   192 -    2   64  4096
rtx4060 128 -    2   64  24576
rtx4070 128 -    2   64  36864
rtx4080 128 -    2   64  65536
l4      128 -    2   64  49152
l40s    128 -    2   64  98304
rtx4090 128 -    2   64  73728
h100    248 -    2   64  47616
h200    248 -    2   64  47616
b200    248 -    2   64  129024
sm_110  248 -    2   64  32768
rtx5070 128 -    2   64  49152
rtx5080 128 -    2   64  65536
rtx5090 128 -    2   64  98304
"""
"""KB, shared memory included where it takes its part of L1: PG 4.2 and 7.5, tables of technical
specifications (1.x to 5.x); 10.1 and 13 (7.0 on); mt4g on a K20c, P6000, V100, A100 and H100 for
constants and L2; boards' specifications; what was measured on an H200 of its 256 KB and 50 MB."""


@pytest.mark.parametrize("row", [line.split() for line in SIZES.split("\n")[2:-1]])
def test_caches_have_the_sizes_of_the_tables(row: list[str]) -> None:
    name, *sizes = row
    device = load_device(name)
    found = {stage.name: stage.keys.get("bytes") for stage in device.stages}
    expected = [None if size == "-" else int(float(size) * KB) for size in sizes]
    assert [found.get(stage) for stage in ("l1", "tex", "idc", "l15", "l2")] == expected


@pytest.mark.document("004.2", "L1 and shared memory of 2.x: 16 and 48 KB, or 48 and 16")
@pytest.mark.parametrize("shared", [16 * KB, 48 * KB])
def test_l1_of_2_x_is_what_shared_memory_leaves_of_64_kilobytes(shared: int) -> None:
    (l1,) = (stage for stage in load_device("sm_20").stages if stage.name == "l1")
    assert l1.without(shared).keys["bytes"] == 64 * KB - shared


@pytest.mark.document("004.2", "3.x: 16, 32 or 48 KB of 64 for L1")
@pytest.mark.parametrize("shared", [16 * KB, 32 * KB, 48 * KB])
def test_l1_of_3_x_is_what_shared_memory_leaves_of_64_kilobytes(shared: int) -> None:
    device = load_device("sm_30")
    (l1,) = (stage for stage in device.stages if stage.name == "l1")
    assert l1.without(shared).keys["bytes"] == 64 * KB - shared
    assert shared in device.limits.shared_carveouts


@pytest.mark.document("004.2", "L2 is one for all SMs: what one has read another finds")
def test_l2_is_shared_by_all_sms() -> None:
    chip = Chip("sm_20")
    units = {"sm": np.array([0]), "gpu": np.array([0])}
    place = {w.stage.name: w.counters for w in chip.wires}
    found = []
    for sm in (0, 1, 1):
        answers = chip.stages.run(batch_of(warp(base=0), kind=LOAD), units | {"sm": np.array([sm])})
        hits = [answers[c][place[c].index("read_hits")][0] for c in ("l1", "l2")]
        found.append([int(n) for n in hits])
    assert found == [[0, 0], [0, 4], [1, 0]]  # SM 1 misses in its own L1, then hits there


@pytest.mark.document("000.8", "8 KB of constants stay in the cache of 1.x, 64 bytes more do not")
def test_the_constant_cache_of_1_x_holds_8_kilobytes() -> None:
    for lines, kept in ((8 * KB // 64, True), (8 * KB // 64 + 1, False)):
        chip = Chip("sm_10")
        once = [chip.see(CONSTANT, 64 * line) for line in range(lines)]
        assert all(seen["idc_fills"] == 1 for seen in once)
        again = [chip.see(CONSTANT, 64 * line).get("idc_fills", 0) for line in range(lines)]
        assert (sum(again) == 0) == kept


@pytest.mark.document("004.5", "320 warps of an SM read one word: 1 miss, 319 hits")
def test_320_warps_that_read_one_constant_miss_once() -> None:
    chip = Chip("sm_20")
    seen = [chip.see(CONSTANT) for _ in range(320)]
    assert sum(s.get("idc_reads", 0) for s in seen) == 320
    assert sum(s.get("idc_read_hits", 0) for s in seen) == 319
    assert sum(s.get("idc_fills", 0) for s in seen) == 1


@pytest.mark.parametrize(
    ("name", "masks"),
    [
        *(("titanv", True), ("rtx4070", True), ("rtx2080ti", True), ("a6000", True)),
        *(("gtx1080", True), ("gtx480", True), ("rtx5090", True)),
        *(("v100", False), ("t4", False), ("a100", False), ("a10", False), ("l40s", False)),
        *(("p100", False), ("k80", False), ("c2050", False), ("h100", False), ("b200", False)),
    ],
)
def test_memory_with_check_codes_is_read_before_a_part_of_a_sector_is_written(
    name: str, masks: bool
) -> None:
    """ECC is off on GeForce, TITAN and, by default, RTX boards; on by default on all Tesla ones.

    A stride of 8 words over 8,388,608 takes 115.3 us on a TITAN V and 161.9 us on an RTX 4070
    (Debdeep23/Kernel_Performance_Prediction): at 652.8 and 504 GB/s less than the 3 * 33.5 MB of a
    sector read, a sector fetched, and a sector written.
    """
    (cache,) = (stage for stage in load_device(name).stages if stage.name == "l2")
    assert cache.keys.get("masks", False) is masks
