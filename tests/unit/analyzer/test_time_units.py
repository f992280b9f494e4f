"""Units of the estimate: rates measured on an H200, and what of a trace they are asked for."""

from pathlib import Path
from threading import current_thread
from types import SimpleNamespace

import numpy as np
import pytest

import cutrace
from cutrace.analyzer.counting.atomic_contention import count_contention
from cutrace.analyzer.launch_profile import LaunchProfile
from cutrace.analyzer.profile import analyze
from cutrace.analyzer.time import sample_warps as sample_beside
from cutrace.analyzer.time.estimate import (
    STALLS,
    _outstanding_fills,
    _with_queue,
    sums_of_one,
)
from cutrace.analyzer.time.estimate_text import estimate_text
from cutrace.analyzer.time.first_touches import Touches
from cutrace.analyzer.time.sample_warps import Ran, sample_warps
from cutrace.analyzer.time.units import (
    AGAIN,
    OF_A_LAUNCH_NS,
    Part,
    _dram_ns,
    _l1_cycles,
    _l2_ns,
    _second_level_ns,
    load_store,
    sm_share,
)
from cutrace.base import progress
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.device.measured import Measured, load_measured
from cutrace.traces.reader import LaunchTrace, read_trace

SOURCE = """
extern "C" __global__ void add_words(int *out) { atomicAdd(&out[threadIdx.x], 1); }
extern "C" __global__ void read_row(float *out, const float *in, int rows)
{
    float sum = 0;
    for (int k = 0; k < rows; k++) { sum += in[k * 32 + threadIdx.x % 32]; out[threadIdx.x] = sum; }
}
extern "C" __global__ void read_column(float *out, const float *in)
{
    out[threadIdx.x] = in[threadIdx.x * 32] + in[threadIdx.x * 33 + 4096];
}
extern "C" __global__ void read_window(float *out, const float *in, int rows)
{
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < rows; k++) sum += in[(blockIdx.x + k) * 32 + threadIdx.x];
    out[blockIdx.x * 32 + threadIdx.x] = sum;
}
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("units") / "t.cutrace"
    with cutrace.Session(path) as gpu:
        module = gpu.compile(SOURCE)
        words, floats = gpu.device_array(256, np.int32), gpu.device_array(256, np.float32)
        data = gpu.to_device(np.ones(1 << 14, np.float32))
        module.get_function("add_words")[64, 256](words)
        module.get_function("read_row")[16, 64](floats, data, 64)
        module.get_function("read_column")[1, 32](floats, data)
        module.get_function("read_window")[8, 32](floats, data, 4)
    return path


@pytest.fixture(scope="module")
def measured() -> Measured:
    found = load_measured(load_device("h200"))
    assert found
    return found


def on_h200(trace: Path, number: int) -> LaunchProfile:
    return analyze(trace, "h200").launches[number]


def ran(trace: Path, number: int) -> Ran:
    return sample_warps(read_trace(trace).launches[number])


def part(launch: LaunchProfile, what: str) -> float:
    assert launch.estimate
    return next(part.ns for part in launch.estimate.parts if part.what == what)


def test_a_sector_of_atomics_takes_a_turn_at_the_slice_that_has_its_512_bytes(
    trace: Path, measured: Measured
) -> None:
    turns = count_contention(read_trace(trace).launches[0])
    assert turns.integer == 64  # an address is wanted once a block
    assert turns.sectors == 64 * 256 * 4 // 32  # each block wants 1 KB: 32 sectors
    assert turns.slice == 64 * 512 // 32  # two slices, half of that each
    turn = 1.46684 / 1.97795  # red_u32_lane in measured/sm_90.csv, cycles at MHz
    assert measured.turn_ns == pytest.approx(turn)
    assert part(on_h200(trace, 0), "atomics of a slice") == pytest.approx(64 * 16 * turn)


ADD = """
extern "C" __global__ void add(float *sum, int *lock, int way)
{
    int old = *(int *)sum, seen;
    if (way == 0) {  // each lane adds to one word
        do {
            seen = old;
            old = atomicCAS((int *)sum, seen, __float_as_int(__int_as_float(seen) + 1));
        } while (old != seen);
    } else if (way == 1) {  // the largest of numbers in any order: few tries
        int mine = (blockIdx.x * 64 + threadIdx.x + 1) * 2654435761u >> 8;
        while (old < mine) {
            seen = old;
            old = atomicCAS((int *)sum, seen, mine);
            if (old == seen) break;
        }
    } else if (threadIdx.x % 32 == 0) {  // each warp asks until block 0 has said so
        if (blockIdx.x == 0 && threadIdx.x == 0) atomicExch(lock, 1);
        while (atomicAdd(lock, 0) == 0) {}
    }
}
"""


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tried") / "t.cutrace"
    with cutrace.Session(path) as gpu:
        add = gpu.compile(ADD).get_function("add")
        for way in (0, 1, 2):
            add[4, 64](gpu.to_device(np.zeros(1, np.float32)), gpu.device_array(1, np.int32), way)
    return path


def test_what_is_tried_again_is_bounded_as_if_each_lane_tried_once(tried: Path) -> None:
    adds, largest, asks = (count_contention(each) for each in read_trace(tried).launches)
    assert (adds.integer, adds.rivals) == (4 * 64, 4 * 64)
    assert adds.tries >= 4 * 64 * (32 + 1) / 2  # alone, a warp's lanes try 32 + 31 + ... times
    assert largest.tries < AGAIN * largest.rivals
    assert (asks.integer, asks.tries) == (4 * 2 + 1, 0)  # eight warps ask, one lane answers


def test_lanes_that_all_want_a_word_try_as_often_as_there_are_rivals(
    tried: Path, measured: Measured
) -> None:
    tries = 256 * 128.5  # measured, as (256 + 255 + ... + 1) / 256 for each lane
    assert part(on_h200(tried, 0), "atomics tried again") == tries * measured.turn_ns
    few = count_contention(read_trace(tried).launches[1]).tries
    assert part(on_h200(tried, 1), "atomics tried again") == few * measured.turn_ns


LOCKED = """
extern "C" __global__ void count(int *locks, int *sums, int places)
{
    if (threadIdx.x) return;
    int mine = blockIdx.x % places;
    while (atomicCAS(locks + mine, 0, 1)) {}
    __threadfence();
    ((volatile int *)sums)[mine] += 1;
    __threadfence();
    atomicExch(locks + mine, 0);
}
extern "C" __global__ void find(unsigned *table, unsigned mask)
{
    unsigned key = blockIdx.x * blockDim.x + threadIdx.x + 1, at = key * 2654435761u & mask;
    for (;;) {
        unsigned old = atomicCAS(table + at, 0u, key);
        if (!old || old == key) break;
        at = (at + 1) & mask;
    }
}
"""


def test_threads_that_want_a_lock_hold_it_in_turn(tmp_path: Path, measured: Measured) -> None:
    """A turn is a load, two fences, and the way to L2 for the next attempt; more while many try."""
    path = tmp_path / "t.cutrace"
    with cutrace.Session(path) as gpu:
        module = gpu.compile(LOCKED)
        for blocks, places in ((64, 1), (64, 16), (16, 1)):
            words = gpu.device_array(places, np.int32), gpu.device_array(places, np.int32)
            module.get_function("count")[blocks, 32](*words, places)
        module.get_function("find")[64, 32](gpu.to_device(np.zeros(4096, np.uint32)), 4095)
    one, sixteen, fewer = (part(on_h200(path, number), "locks") for number in range(3))
    own = measured.l2_cycles(1500) * 2 + 2 * measured.at("latency", "membar.gl")
    # half of the slice's 64 lanes, or 16, ask before the next one's attempt
    turns = [one / 64 - 32 * measured.turn_ns, sixteen / 4 - 32 * measured.turn_ns]
    turns.append(fewer / 16 - 8 * measured.turn_ns)
    assert turns == pytest.approx([turns[0]] * 3)
    memory = measured.dram_cycles(1500) - measured.l2_cycles(1500)
    assert own < turns[0] * 1500 / 1000 < own + memory + 50  # and arithmetic
    table = on_h200(path, 3).estimate
    assert table
    assert "locks" not in {part.what for part in table.parts}


WAITS = """
extern "C" __global__ void meet(volatile int *count, int times)
{
    for (int t = 1; t <= times; t++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            atomicAdd((int *)count, 1);
            while (*count < t * (int)gridDim.x) {}
        }
        __syncthreads();
    }
}
extern "C" __global__ void remainders(unsigned long long *out, unsigned long long by, int times)
{
    unsigned long long x = out[threadIdx.x], sum = 0;
    for (int i = 0; i < times; i++) { sum += x % (by + i); x = x * 25214903917 + 11; }
    out[threadIdx.x] = sum;
}
"""


@pytest.fixture(scope="module")
def waits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("waits") / "t.cutrace"
    with cutrace.Session(path) as gpu:
        module = gpu.compile(WAITS)
        for blocks in (8, 128):
            words = gpu.to_device(np.zeros(1, np.int32))
            module.get_function("meet")[blocks, 32](words, 4)
        large = gpu.to_device(np.full(256, 1 << 63, np.uint64))
        module.get_function("remainders")[132, 256](large, np.uint64(1 << 40), 64)
    return path


def test_a_barrier_of_the_grid_waits_for_all_arrivals(waits: Path) -> None:
    few, many = (part(on_h200(waits, number), "latency") for number in (0, 1))
    arrivals = part(on_h200(waits, 1), "atomics at one address")
    assert arrivals > 4 * 120 * 0.3  # the bound of a turn, 120 blocks more, four times
    assert many - few == pytest.approx(arrivals * 120 / 128, rel=0.1)


def test_a_remainder_of_64_bits_takes_what_was_measured(waits: Path, measured: Measured) -> None:
    """Eight warps an SM, 64 times; the routine's instructions are issued besides."""
    cycles = 8 * 64 * measured.at("rate", "div.u64")
    assert part(on_h200(waits, 2), "64-bit division") == pytest.approx(cycles * 1000 / 1500)
    assert part(on_h200(waits, 2), "issue slots") > 8 * 64 * 60 / 4 * 1000 / 1500


SAYS = """
#include <cstdio>
extern "C" __global__ void say(int times)
{
    for (int i = 0; i < times; i++) if (threadIdx.x == 0) printf("%d\\n", i);
}
"""


def test_a_warp_waits_for_each_of_its_lines_that_are_printed(
    tmp_path: Path, measured: Measured
) -> None:
    path = tmp_path / "t.cutrace"
    with cutrace.Session(path) as gpu:
        say = gpu.compile(SAYS).get_function("say")
        say[1, 32](1)
        say[1, 32](5)
    one, five = (launch.estimate for launch in analyze(path, "h200").launches)
    assert one
    assert five
    assert five.ns - one.ns == pytest.approx(4 * 21_200, rel=0.05)  # as an H100 takes


APART = """
extern "C" __global__ void copy(float *to, const float *from, int words)
{
    int mine = (blockIdx.x * blockDim.x + threadIdx.x) * words;
    for (int i = 0; i < words; i++) to[mine + i] = from[mine + i];
}
"""


def test_a_few_sms_wait_for_the_way_to_l2_of_sectors_that_are_alone_in_their_lines(
    tmp_path: Path,
) -> None:
    """Four SMs copy structures of 128 words: each lane has its own line, stored word by word."""
    path = tmp_path / "t.cutrace"
    with cutrace.Session(path) as gpu:
        words = 4 * 256 * 128
        data = gpu.device_array(words, np.float32), gpu.to_device(np.ones(words, np.float32))
        gpu.compile(APART).get_function("copy")[4, 256](*data, 128)
    stored = 256 * 128  # sectors of an SM; what is loaded comes besides
    stores = (0.73 * stored + 0.82 * stored / 32) * 1000 / 1500
    assert part(on_h200(path, 0), "requests to L2") > stores


SUM = """
extern "C" __global__ void sum(float *data)
{
    float *mine = data + blockIdx.x * 512;
    #pragma unroll 1
    for (int half = 256; half > 0; half /= 2) {
        if (threadIdx.x < half) mine[threadIdx.x] += mine[threadIdx.x + half];
        __syncthreads();
    }
}
"""


def test_what_a_block_has_stored_is_no_first_touch_and_the_longest_warp_has_its_own(
    tmp_path: Path,
) -> None:
    """Eight warps load in the first round, then 4, 2, 1, and the first alone five times more."""
    path = tmp_path / "t.cutrace"
    with cutrace.Session(path) as gpu:
        total = gpu.compile(SUM).get_function("sum")
        total[2, 256](gpu.to_device(np.zeros(1024, np.float32)))
    rows, touches = 8 + 4 + 2 + 1 + 5, ran(path, 0).touches
    loads = [pc for pc, share in touches.firsts.items() if pc in touches.longest]
    # of a row the lowest lane stands for all: 64 bytes into what was stored are new once
    assert [touches.firsts[pc] for pc in loads[:2]] == [8 / rows, 9 / rows]
    assert [touches.longest[pc] for pc in loads[:2]] == [1 / 9, 2 / 9]


def test_turns_of_many_rows_are_scaled_up_from_some(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cutrace.analyzer.counting.atomic_contention.SLICE", 32)
    monkeypatch.setattr("cutrace.analyzer.counting.atomic_contention.LOOKED_AT", 256)
    turns = count_contention(read_trace(trace).launches[0])  # 512 rows alike: 16 chunks, each third
    assert (turns.integer, turns.sectors, turns.slice) == (64, 64 * 32, 64 * 16)


def test_warps_that_read_the_same_rows_side_by_side_all_wait_for_memory(
    trace: Path, measured: Measured
) -> None:
    touches = ran(trace, 1).touches
    load = max(touches.firsts, key=lambda pc: touches.firsts[pc])
    assert touches.firsts[load] == 1  # each row of 128 bytes is new to the warp
    found = on_h200(trace, 1).estimate
    assert found
    alone = 64 * measured.dram_cycles(1500) / 1.5  # no load passes the store before it
    assert found.ns == pytest.approx(alone, rel=0.2)


def test_the_first_level_takes_a_pass_for_each_word_of_a_bank_and_for_four_lines(
    trace: Path,
) -> None:
    passes = sorted(ran(trace, 2).touches.passes.values())
    assert passes[0] == 1  # the store: 32 banks, one line
    # 33 words apart all banks differ: 32 lines, or 33 where the first does not begin one, by fours
    assert passes[1] == pytest.approx(8.25, abs=0.25)  # measured: 8.4, load_4 of 33
    assert passes[2] == 32  # one bank: measured 32.0, load_4 of 32


@pytest.mark.parametrize(("name", "cycles"), [("rtx2080ti", 8), ("rtx4070", 8), ("titanv", 1)])
def test_sixteen_lanes_a_cycle_load_a_shared_vector_of_16_bytes_in_eight(
    name: str, cycles: float
) -> None:
    """All lanes read one vector: a single pass, 512 bytes. Tiled products of 512 x 512 take 186.5
    and 168.5 us on an RTX 2080 Ti and an RTX 4070; with a cycle per pass they would take a third
    less.
    """
    found = load_measured(load_device(name))
    assert found
    counted = {"shared_load_passes": 1, "shared_load_requests": 1, "shared_load_bytes_asked": 512}
    assert _l1_cycles(counted, 1.0, found) == cycles
    counted["shared_load_bytes_asked"] = 128
    assert _l1_cycles(counted, 1.0, found) == min(cycles, 2)


def test_the_busiest_sm_has_the_longest_blocks() -> None:
    assert sm_share(np.full(264, 7), 264, 132, 1) == pytest.approx(2 / 264)
    assert sm_share(np.array([10, 1, 1, 1]), 4, 2, 1) == 10 / 13
    assert sm_share(np.zeros(0, np.int64), 10, 132, 1) == 1 / 10


def busy(trace: Path, number: int) -> dict[str, float]:
    """Nanoseconds at work of each unit."""
    found = on_h200(trace, number).estimate
    assert found
    return {name: share * found.ns for name, share in found.busy.items()}


def test_units_of_sms_are_at_work_as_a_mean_over_all_of_them_as_the_profiler_has_it(
    trace: Path,
) -> None:
    found = on_h200(trace, 2)  # one warp: two loads, of 8.25 and 32 passes, and a store of one
    assert found.estimate
    passes = sum(ran(trace, 2).touches.passes.values())
    passes += 1  # `%tid.x` is read by the load-store unit
    assert part(found, "L1 and shared memory") == pytest.approx(passes / 1.5, abs=0.01)
    asked = 32 + 32 + (4 * 0.73 + 0.82)  # the loads' lanes are scattered, the store has a line
    assert busy(trace, 2)["L1"] == pytest.approx(asked / 1.5 / 132, rel=0.01)


def test_a_launch_that_does_little_still_has_the_second_level_look_up_its_code(
    trace: Path,
) -> None:
    found = busy(trace, 2)  # a warp reads two columns that are in memory, and stores a row
    assert found["L2"] == pytest.approx(33.4 + 64 * 0.021 + 4 * 0.0053, rel=0.01)
    assert max(found, key=lambda name: found[name]) == "L2"
    assert told(trace, 2).endswith(" % (lts__throughput)")


def told(trace: Path, number: int) -> str:
    """What the first screen says of the time."""
    found = on_h200(trace, number).estimate
    assert found
    return estimate_text(found)


def test_a_load_waits_for_the_lane_that_comes_to_a_new_sector(tmp_path: Path) -> None:
    source = """
extern "C" __global__ void walk(int *out, const int *in, int late)
{
    int at = threadIdx.x * 64 + threadIdx.x * late % 8;
    #pragma unroll 1
    for (int k = 0; k < 16; k++) at += 1 + in[at];
    out[threadIdx.x] = at;
}
"""
    path = tmp_path / "t.cutrace"
    with cutrace.Session(path) as gpu:
        walk = gpu.compile(source).get_function("walk")
        out, zeros = gpu.device_array(32, np.int32), gpu.to_device(np.zeros(32 * 64, np.int32))
        for late in (0, 1):
            walk[1, 32](out, zeros, late)
    together, apart = (ran(path, number).touches for number in (0, 1))
    (load,) = together.refetched.keys() & together.firsts.keys() - {max(together.refetched)}
    # sixteen words are two sectors of each lane: in step, two loads come to new ones; else all
    # loads do, lanes by lanes
    assert (together.refetched[load], apart.refetched[load]) == (2 / 16, 1)
    in_step, staggered = (on_h200(path, number).estimate for number in (0, 1))
    assert in_step
    assert staggered
    assert staggered.ns > 2 * in_step.ns


def test_an_empty_kernel_on_an_h100_keeps_l2_as_busy_as_was_measured(tmp_path: Path) -> None:
    path = tmp_path / "t.cutrace"
    with cutrace.Session(path) as gpu:
        gpu.compile('extern "C" __global__ void nothing() {}').get_function("nothing")[1, 32]()
    (launch,) = analyze(path, "h100").launches
    assert launch.estimate
    # Nsight Compute on an H100, tests/validate/time/h100_empty.json: 16.09 %
    assert launch.estimate.busy["L2"] == pytest.approx(0.1609, abs=0.002)


def test_units_of_loads_and_stores_take_what_a_chip_counted(tmp_path: Path) -> None:
    """A block of two warps: reads of `%tid`, a shuffle, a barrier, an access that no lane makes.

    The address unit takes LDC of three parameters or four, the block's number and the barrier.
    """
    source = """
extern "C" __global__ void k(float *out, const float *in, int few)
{
    __shared__ float s[64];
    int i = threadIdx.x;
    s[i] = in[blockIdx.x * 64 + i];
    __syncthreads();
    float x = s[63 - i];
    x += __shfl_xor_sync(0xffffffff, x, 1);
    if (i < few) out[i] = x;
}
"""
    path = tmp_path / "t.cutrace"
    with cutrace.Session(path) as gpu:
        out, given = gpu.device_array(64, np.float32), gpu.to_device(np.ones(640, np.float32))
        gpu.compile(source).get_function("k")[10, 64](out, given, 64)
    trace = read_trace(path)
    (launch,) = analyze(path, "h100").launches
    sums = sums_of_one(launch.raw.counts)
    instructions = trace.launches[0].instructions()
    found = load_store(sums, instructions, 2, {})
    warps = 20
    assert found.instructions == warps * (4 + 1 + 1)  # accesses, shuffle, %tid
    assert found.without_data == warps * (1 + 1) + 10  # shuffle, %tid; a barrier a block
    assert found.adu_cycles == 2 * warps  # barriers; parameters are not told in PTX
    whole = sum(row["instructions"] for row in sums.values()) / warps
    machine = {0x184: 1, 0x188: 1, 0x181: 1, 0x186: 2, 0x189: 1, 0x182: 4, 0x119: 2, 0x11D: 1}
    issued = {operation: many / whole for operation, many in machine.items()}
    found = load_store(sums, instructions, 2, issued)  # one store more, in which no lane is
    assert found.instructions == pytest.approx(warps * (6 + 1))
    assert found.without_data == pytest.approx(warps * (1 + 1 + 1) + 10)
    assert found.adu_cycles == pytest.approx(2 * warps * (4 + 1 + 1))


@pytest.mark.parametrize(
    ("device", "worth", "where"),
    [("h200", 0, "sample_0"), ("h200", 1 << 18, "MainThread"), ("gtx280", 0, "MainThread")],
)
def test_warps_are_sampled_beside_a_long_replay_where_an_estimate_follows(
    trace: Path, device: str, worth: int, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, told = list[str](), list[float]()

    def sample(launch: LaunchTrace) -> Ran:
        names.append(current_thread().name)
        return sample_warps(launch)

    monkeypatch.setattr(sample_beside, "WORTH", worth)
    monkeypatch.setattr(sample_beside, "cores", lambda: 2)
    monkeypatch.setattr(sample_beside, "sample_warps", sample)
    sampled = sample_beside.SampledWarps(read_trace(trace).launches[1], [load_device(device)])
    with progress.listening(told.append), sampled.sampling():
        progress.report(0.5)
        progress.report(1.0)
    assert sampled().touches == sampled().touches == ran(trace, 1).touches
    assert names == [where]
    assert told == [0.5, 1.0]


@pytest.mark.parametrize(("words", "part"), [(1, 1.0), (2, 0.5)])
def test_a_sector_costs_the_more_the_fewer_of_its_words_are_stored(words: int, part: float) -> None:
    measured = load_measured(load_device("h100"))
    assert measured
    counts = {
        "global_store_l2_writes": 1000,
        "global_store_l1_writes": 1000,
        "global_store_bytes_distinct": 1000 * 4 * words,
    }
    work = SimpleNamespace(sums={0: counts}, touches=Touches(), spilled_sectors=0.0)
    ns = _l2_ns(work, measured)  # type: ignore[arg-type]
    least = 1000 * 32 / measured.l2_gb_per_s()
    assert ns == pytest.approx(max(least, part * 1000 * measured.sector_ns("scatter_turn")))


def test_rows_that_the_block_beside_has_loaded_before_do_not_wait_for_memory(trace: Path) -> None:
    """Of four rows the next block loads the last three one step before: 3/4. An eighth of loads
    misses in L2; eight warps at once would wait for each such fill.
    """
    touches = ran(trace, 3).touches
    pc, store = sorted(touches.firsts)
    assert touches.firsts == {pc: 1.0, store: 1.0}
    assert touches.earlier == {pc: 3 / 4, store: 0.0}
    counts = {f"global_load_{name}": 800 for name in ("requests", "l1_reads", "l2_reads")}
    counts |= {"global_load_l1_read_hits": 0, "global_load_l2_read_hits": 700}
    code = SimpleNamespace(num_rows=pc + 1)
    shares = [
        _outstanding_fills({pc: counts}, code, (1, 8), each)[pc]
        for each in (Touches({pc: 1.0}), Touches({pc: 1.0}, earlier={pc: 3 / 4}))
    ]
    assert shares == [(1.0, 1.0), (1.0, 1 / 4)]


@pytest.mark.parametrize("space", ["load", "store"])
def test_a_sector_that_is_alone_in_its_line_costs_what_one_in_any_order_does(space: str) -> None:
    """A column of a matrix is loaded, or stored: 32 lanes at 32 lines, a word of each."""
    measured = load_measured(load_device("h100"))
    assert measured
    levels = ("l1_reads", "l2_reads") if space == "load" else ("l1_writes", "l2_writes")
    counts = {f"global_{space}_{level}": 3200 for level in levels}
    counts |= {f"global_{space}_requests": 100, f"global_{space}_bytes_distinct": 3200 * 4}

    def took(apart: float) -> float:
        work = SimpleNamespace(sums={0: counts}, touches=Touches(apart={0: apart}))
        work.spilled_sectors = 0.0
        return _l2_ns(work, measured)  # type: ignore[arg-type]

    any_order = {"load": "gather", "store": "scatter"}[space]
    assert took(1.0) == pytest.approx(3200 * measured.sector_ns(any_order))
    least = measured.sector_ns("scatter_turn") if space == "store" else 32 / measured.l2_gb_per_s()
    assert took(0.25) == pytest.approx(3200 * least)


@pytest.mark.parametrize(("lanes", "spread"), [(32, True), (16, True), (4, False)])
def test_atomics_on_sectors_of_memory_in_any_order_cost_what_its_stores_do(
    lanes: int, spread: bool
) -> None:
    """However many lanes a request still has, as where others found their place in a table."""
    measured = load_measured(load_device("h100"))
    assert measured
    counts = {
        "global_atomic_requests": 100,
        "global_atomic_l2_writes": 100 * lanes,
        "global_atomic_dram_bytes_read": 100 * lanes * 32,
    }
    touches = Touches(any_order=frozenset({0}))
    ns = _dram_ns(SimpleNamespace(sums={0: counts}, touches=touches), measured)  # type: ignore[arg-type]
    of_lines = 100 * lanes * 32 / measured.dram_gb_per_s()
    in_any_order = 100 * lanes / 2 * measured.far_sector_ns("scatter")
    assert ns == pytest.approx(in_any_order if spread else of_lines)


@pytest.mark.parametrize(
    ("longest", "counts", "stall"),
    [
        ("L1 and shared memory", {"shared_load_passes": 9}, "mio_throttle, short_scoreboard"),
        ("L1 and shared memory", {"global_load_requests": 9}, "long_scoreboard"),
        ("DRAM", {}, "long_scoreboard"),
        ("FMA pipe", {}, "math_pipe_throttle"),
        ("issue slots", {}, "not_selected"),
    ],
)
def test_warps_queue_for_the_unit_that_takes_longest(
    longest: str, counts: dict[str, int], stall: str
) -> None:
    """A warp alone needs 30 of the 100 us: the rest of its time it waits for its turn."""
    own = {"barriers": 0.5, "results of arithmetic": 0.25}
    parts = [Part(longest, 99.0), Part("latency", 30.0)]
    shares = _with_queue(own, parts, 100.0, {0: counts})
    first = next(iter(shares))
    assert STALLS[first] == stall
    expected = {first: 0.7, "barriers": 0.15, "results of arithmetic": 0.075}
    assert shares == pytest.approx(expected)


def test_warps_do_not_queue_where_they_wait_longest_or_blocks_are_launched() -> None:
    own = {"memory": 0.9}
    assert _with_queue(own, [Part("latency", 99.0), Part("L2", 30.0)], 99.0, {}) == own
    assert _with_queue(own, [Part("launching blocks", 99.0)], 99.0, {}) == own


@pytest.mark.parametrize(
    ("calls", "warps", "lanes", "us"),
    [
        (1, 1, 1, 31),
        (1, 1, 32, 33),
        (1, 2, 64, 37),
        (4, 1, 32, 104),
        (8, 1, 1, 179),
        (1, 4, 128, 57),
        (1, 8, 256, 102),
        (1, 32, 1024, 340),
        (1, 48, 1536, 464),
        (1, 64, 64, 147),
        (1, 64, 128, 157),
        (1, 64, 256, 166),
        (1, 64, 512, 230),
        (1, 64, 1024, 370),
        (1, 64, 2048, 629),
        (1, 132, 132, 298),
        (1, 1056, 33792, 11845),
    ],
)
def test_printing_takes_as_long_as_on_an_h100(
    calls: int, warps: int, lanes: int, us: float
) -> None:
    """`printf("%d", i)` at 1,980 MHz, by Nsight Compute: 1 to 132 blocks of 1 to 1,024 threads.

    The worst is a third too low: 64 warps that print in 8 lanes each.
    """
    measured = load_measured(load_device("h100"))
    assert measured
    ns = measured.launch_ns(1980) + measured.print_ns(calls, warps, lanes, 1980)
    assert ns / 1000 == pytest.approx(us, rel=0.35 if (warps, lanes) == (64, 512) else 0.25)


@pytest.mark.parametrize(
    ("apart", "sectors", "lines", "cycles"),
    [(1, 4, 1, 4.9), (4, 16, 4, 19.7), (8, 32, 8, 39.2), (16, 32, 16, 47.9), (32, 32, 32, 64.4)],
)
def test_the_port_of_an_sm_takes_a_cycle_for_each_line_and_each_stored_sector(
    apart: int, sectors: int, lines: int, cycles: float
) -> None:
    """A store of 32 words `apart`: the cycles that one SM of an H100 needed for each."""
    measured = load_measured(load_device("h100"))
    assert measured
    line, sector = measured.port_cycles
    assert lines * line + sectors * sector == pytest.approx(cycles, rel=0.03)


def test_bulk_copies_keep_l2_busy_as_on_an_h100() -> None:
    """`kernel(matmul_globals)` of tkh6, tests/validate/programs/kernels_launches.parquet: bulk
    loads of 192,200 sectors, 1,056,256 bytes of them from DRAM, bulk stores of 46,210;
    lts__throughput 14.1 % of 7,968 ns."""
    missed = 1056256 // 32
    counts = {
        "bulk_load_l2_reads": 192200,
        "bulk_load_l2_read_hits": 192200 - missed,
        "bulk_store_l2_writes": 46210,
    }
    assert OF_A_LAUNCH_NS + _second_level_ns({0: counts}) == pytest.approx(0.141 * 7968, rel=0.15)
