"""The numbers of the device files beside those of NVIDIA's tables, typed from the tables again.

`LIMITS` are the technical specifications of the CUDA C Programming Guides 4.2 (1.x, 2.x), 7.5
(3.x, 5.x), 10.1 (6.x, 7.x) and 13 (8.x and later), and the CUDA Occupancy Calculators, 4.1 and
11.8, where the guides do not say; sizes in bytes. Where sources differ the header that computes
occupancy, cuda_occupancy.h, is followed (5.2, 5.3: 4 partitions; 6.1, 6.2: 4). `BOARDS` are the
boards' specifications.
"""

import pytest

from cutrace.commands.running.program import choose_device
from cutrace.models.replay.device.catalog import device_names
from cutrace.models.replay.device.device import load_device

KB = 1024

LIMITS = """
cc    warps blocks registers a_block a_thread unit warp_unit shared block_shared shared_unit
1.0   24     8      8192     8192  124 256 2  16384  16384 512
1.1   24     8      8192     8192  124 256 2  16384  16384 512
1.2   32     8     16384    16384  124 512 2  16384  16384 512
1.3   32     8     16384    16384  124 512 2  16384  16384 512
2.0   48     8     32768    32768   63  64 2  49152  49152 128
2.1   48     8     32768    32768   63  64 2  49152  49152 128
3.0   64    16     65536    65536   63 256 4  49152  49152 256
3.2   64    16     65536    32768  255 256 4  49152  49152 256
3.5   64    16     65536    65536  255 256 4  49152  49152 256
3.7   64    16    131072    65536  255 256 4 114688  49152 256
5.0   64    32     65536    65536  255 256 4  65536  49152 256
5.2   64    32     65536    65536  255 256 4  98304  49152 256
5.3   64    32     65536    32768  255 256 4  65536  49152 256
6.0   64    32     65536    65536  255 256 2  65536  49152 256
6.1   64    32     65536    65536  255 256 4  98304  49152 256
6.2   64    32     65536    32768  255 256 4  65536  49152 256
7.0   64    32     65536    65536  255 256 4  98304  98304 256
7.2   64    32     65536    65536  255 256 4  98304  98304 256
7.5   32    16     65536    65536  255 256 4  65536  65536 256
8.0   64    32     65536    65536  255 256 4 167936 166912 128
8.6   48    16     65536    65536  255 256 4 102400 101376 128
8.7   48    16     65536    65536  255 256 4 167936 166912 128
8.9   48    24     65536    65536  255 256 4 102400 101376 128
9.0   64    32     65536    65536  255 256 4 233472 232448 128
10.0  64    32     65536    65536  255 256 4 233472 232448 128
10.3  64    32     65536    65536  255 256 4 233472 232448 128
11.0  48    24     65536    65536  255 256 4 233472 232448 128
12.0  48    24     65536    65536  255 256 4 102400 101376 128
12.1  48    24     65536    65536  255 256 4 102400 101376 128
"""

CARVEOUTS = {  # KB of an SM's shared memory
    "1.0 1.1 1.2 1.3": [16],
    "2.0 2.1": [16, 48],
    "3.0 3.2 3.5": [16, 32, 48],
    "3.7": [80, 96, 112],
    "5.0 5.3 6.0 6.2": [64],
    "5.2 6.1": [96],
    "7.0 7.2": [0, 8, 16, 32, 64, 96],
    "7.5": [32, 64],
    "8.0 8.7": [0, 8, 16, 32, 64, 100, 132, 164],
    "8.6 8.9 12.0 12.1": [0, 8, 16, 32, 64, 100],
    "9.0 10.0 10.3 11.0": [0, 8, 16, 32, 64, 100, 132, 164, 196, 228],
}

BOARDS = """
file       cc   sms clock gb_per_s
8800gtx    1.0  16  1350  86.4
c870       1.0  16  1350  76.8
9400m      1.1  2   -     -
gtx280     1.3  30  1296  141.7
c1060      1.3  30  1296  102.4
gtx480     2.0  15  1401  177.4
gtx580     2.0  16  1544  192.4
c2050      2.0  14  1147  144.0
m2070      2.0  14  1147  150.3
m2090      2.0  16  -     177.6
gtx680     3.0  8   1006  192.2
k20        3.5  13  706   208
k20x       3.5  14  732   250
k40        3.5  15  876   288.4
gtx750ti   5.0  5   1085  86.4
gtx980     5.2  16  1216  224
p100       6.0  56  1329  732
gtx1080    6.1  20  1733  320.3
v100       7.0  80  1380  897
gtx1650    7.5  14  1665  128
gtx1660    7.5  22  1785  192
rtx2060    7.5  30  1680  336
t4         7.5  40  1590  320
rtx2080    7.5  46  1710  448
a100-40gb  8.0  108 1410  1555
a100       8.0  108 1410  2039
rtx3050    8.6  20  1777  224
rtx3060    8.6  28  1777  360
rtx3070    8.6  46  1725  448
rtx3080    8.6  68  1710  760
a10g       8.6  80  1710  600
rtx3090    8.6  82  1695  936
rtx4060    8.9  24  2460  272
rtx4070    8.9  46  2475  504
rtx4080    8.9  76  2505  716.8
l4         8.9  58  2040  300
l40s       8.9  142 2520  864
rtx4090    8.9  128 2520  1008
h100       9.0  132 1980  3352
gh200      9.0  132 1980  4000
h200       9.0  132 1980  4800
b200       10.0 148 -     8000
rtx5070    12.0 48  2512  672
rtx5080    12.0 84  2617  960
rtx5090    12.0 170 2407  1792
k80        3.7  13  875   240.5
titanx     5.2  24  1075  336.6
p100-sxm2  6.0  56  1480  732.2
p40        6.1  30  1531  347.1
gtx1060    6.1  10  1709  192.2
gtx1070    6.1  15  1683  256.3
gtx1080ti  6.1  28  1582  484.4
titanx-pascal 6.1 28 1531 480.5
titanxp    6.1  30  1582  547.6
v100-sxm2  7.0  80  1530  898
v100-sxm2-32gb 7.0 80 1530 898
titanv     7.0  80  1455  652.8
rtx2070super 7.5 40 1770  448.1
rtx2080ti  7.5  68  1545  616
titanrtx   7.5  72  1770  672
a100-pcie-80gb 8.0 108 1410 1935.4
rtx3060ti  8.6  38  1665  448.1
rtx3080ti  8.6  80  1665  912.1
a10        8.6  72  1695  600.1
a40        8.6  84  1740  696.1
a4000      8.6  48  1560  448.1
a6000      8.6  84  1800  768.1
rtx4060ti  8.9  34  2535  288
rtx4070ti  8.9  60  2610  504
l40        8.9  142 2490  864.1
h100-pcie  9.0  114 1755  2039
h100-nvl   9.0  132 1785  3938
h20        9.0  78  1980  4022.8
b300       10.3 148 1980  8000
rtx5070ti  12.0 70  2452  896.1
rtxpro6000 12.0 188 2617  1792.1
"""


def rows(table: str) -> list[list[str]]:
    """The rows of a table without its heading."""
    return [line.split() for line in table.strip().splitlines()[1:]]


def generic(capability: str) -> str:
    """The device of a capability: `sm_86` of 8.6."""
    return f"sm_{capability.replace('.', '')}"


def number(text: str) -> tuple[int, int]:
    """A capability as numbers."""
    major, minor = text.split(".")
    return int(major), int(minor)


@pytest.mark.parametrize("row", rows(LIMITS), ids=lambda row: row[0])
def test_the_limits_of_a_capability_are_those_of_the_tables(row: list[str]) -> None:
    device = load_device(generic(row[0]))
    of = device.limits
    found = [of.warps_per_sm, of.blocks_per_sm, of.registers_per_sm, of.registers_per_block]
    found += [of.registers_per_thread, of.register_unit, of.warp_unit]
    found += [of.shared_per_sm, of.shared_per_block, of.shared_unit]
    assert found == [int(cell) for cell in row[1:]]
    assert device.capability == number(row[0])


@pytest.mark.parametrize("row", rows(LIMITS), ids=lambda row: row[0])
def test_blocks_and_grids_of_a_capability_have_the_sizes_of_the_tables(row: list[str]) -> None:
    of, capability = load_device(generic(row[0])).limits, number(row[0])
    old = capability < (2, 0)
    assert of.threads_per_block == (512 if old else 1024)
    assert of.block_dim == ((512, 512, 64) if old else (1024, 1024, 64))
    x, z = (65535 if capability < (3, 0) else 2**31 - 1), (1 if old else 65535)
    assert of.grid_dim == (x, 65535, z)
    assert of.shared_reserved == (1024 if capability >= (8, 0) else 0)
    assert of.constant_bytes == 64 * KB
    assert of.calculator == (
        "block" if old else "header" if capability >= (3, 0) else "spreadsheet"
    )


@pytest.mark.parametrize(("capabilities", "sizes"), CARVEOUTS.items())
def test_shared_memory_has_the_sizes_of_the_tables(capabilities: str, sizes: list[int]) -> None:
    for capability in capabilities.split():
        of = load_device(generic(capability)).limits
        assert [size // KB for size in of.shared_carveouts] == sizes
        assert of.shared_carveouts[-1] == of.shared_per_sm
        assert of.carveout_fallback == ("next" if number(capability) >= (7, 0) else "largest")


def test_barriers_limit_from_9_0_on_as_the_header_says() -> None:
    # two for each of 32 blocks; 11.0 and 12.x: one for each of 24
    found = {row[0]: load_device(generic(row[0])).limits.barriers_per_sm for row in rows(LIMITS)}
    assert {cc for cc, barriers in found.items() if barriers == 64} == {"9.0", "10.0", "10.3"}
    assert {cc for cc, barriers in found.items() if barriers == 24} == {"11.0", "12.0", "12.1"}
    assert sum(found.values()) == 3 * 64 + 3 * 24


@pytest.mark.parametrize("row", rows(BOARDS), ids=lambda row: row[0])
def test_a_board_has_the_chip_of_its_specification(row: list[str]) -> None:
    name, capability, sms, clock, bandwidth = row
    device = load_device(name)
    assert device.capability == number(capability)
    assert device.chip.sms == int(sms)
    assert clock == "-" or device.chip.clock_mhz == int(clock)
    assert bandwidth == "-" or device.chip.memory_gb_per_s == float(bandwidth)
    assert device.chip.memory_bytes >= 256 * KB * KB


@pytest.mark.parametrize("row", rows(BOARDS), ids=lambda row: row[0])
def test_a_boards_limits_are_those_of_its_capability(row: list[str]) -> None:
    assert load_device(row[0]).limits == load_device(generic(row[1])).limits


@pytest.mark.parametrize(
    ("capabilities", "sms"),
    [("1.0 1.1", 2), ("1.2 1.3", 3), ("2.0 2.1 3.0 3.2 3.5 3.7 5.0 5.2 5.3", 1), ("7.0 7.5", 2)],
)
def test_clusters_have_as_many_sms_as_profilers_saw(capabilities: str, sms: int) -> None:
    for capability in capabilities.split():
        assert load_device(generic(capability)).chip.sms_per_cluster == sms


TOLD = """
file           bits  mhz   l2        ratio name
a10            384   6251  6291456   64    NVIDIA A10
a100           5120  1593  41943040  2     NVIDIA A100-SXM4-80GB
a100-40gb      5120  1215  41943040  2     NVIDIA A100-PCIE-40GB
a4000          256   7001  4194304   64    NVIDIA RTX A4000
a6000          384   8001  6291456   64    NVIDIA RTX A6000
b200           7680  3996  132644864 2     NVIDIA B200
gh200          6144  2619  62914560  2     NVIDIA GH200 480GB
gtx1080        256   5005  2097152   32    NVIDIA GeForce GTX 1080
h100           5120  2619  52428800  2     NVIDIA H100 80GB HBM3
h200           6016  3201  62914560  2     NVIDIA H200
k40            384   3004  1572864   3     Tesla K40c
l4             192   6251  50331648  64    NVIDIA L4
l40s           384   9001  100663296 64    NVIDIA L40S
p100           4096  715   4194304   2     Tesla P100-PCIE-16GB
p40            384   3615  3145728   32    Tesla P40
rtx2060        192   7001  3145728   32    NVIDIA GeForce RTX 2060
rtx2080        256   7000  4194304   32    NVIDIA GeForce RTX 2080
rtx2080ti      352   7000  5767168   32    NVIDIA GeForce RTX 2080 Ti
rtx3060        192   7501  2359296   64    NVIDIA GeForce RTX 3060
rtx3060ti      256   7001  3145728   64    NVIDIA GeForce RTX 3060 Ti
rtx3070        256   7001  4194304   64    NVIDIA GeForce RTX 3070
rtx3080        320   9501  5242880   64    NVIDIA GeForce RTX 3080
rtx3080ti      384   9501  6291456   64    NVIDIA GeForce RTX 3080 Ti
rtx3090        384   9751  6291456   64    NVIDIA GeForce RTX 3090
rtx4060ti      128   9001  33554432  64    NVIDIA GeForce RTX 4060 Ti
rtx4090        384   10501 75497472  64    NVIDIA GeForce RTX 4090
rtx5090        512   14001 100663296 64    NVIDIA GeForce RTX 5090
t4             256   5001  4194304   32    Tesla T4
titanv         3072  850   4718592   2     NVIDIA TITAN V
titanx-pascal  384   5005  3145728   32    NVIDIA TITAN X (Pascal)
v100           4096  877   6291456   2     Tesla V100-PCIE-16GB
v100-sxm2      4096  877   6291456   2     Tesla V100-SXM2-16GB
v100-sxm2-32gb 4096  877   6291456   2     Tesla V100-SXM2-32GB
"""
"""What deviceQuery of CUDA's samples and cudaGetDeviceProperties printed on these boards, published
by their users (the H200's: measured), and single over double precision of CUDA's guides."""


@pytest.mark.parametrize("row", rows(TOLD), ids=lambda row: row[0])
def test_a_program_is_told_of_a_board_what_cuda_tells(row: list[str]) -> None:
    told = choose_device(row[0])
    facts = told.facts
    assert told.name == " ".join(row[5:])
    assert facts["bus_bits"] == int(row[1])
    assert facts["memory_kilohertz"] == 1000 * int(row[2])
    assert facts["l2_bytes"] == int(row[3])
    assert facts["single_to_double"] == int(row[4])


@pytest.mark.parametrize("name", sorted(device_names()))
def test_the_memory_that_a_program_is_told_of_has_the_bandwidth_of_the_board(name: str) -> None:
    chip = load_device(name).chip
    told = 2 * chip.memory_mhz * chip.memory_bits / 8 / 1000  # two bits a cycle and wire
    if name == "sm_121":  # a GB10 tells the rate of bits for its clock
        told /= 2
    assert told == pytest.approx(chip.memory_gb_per_s, rel=0.05)


def test_every_device_is_in_a_table_here() -> None:
    known = {generic(row[0]) for row in rows(LIMITS)} | {row[0] for row in rows(BOARDS)}
    assert known == set(device_names())
