"""Time of asynchronous units, polls, called functions, spilled registers and the host's memory."""

from collections.abc import Sequence

import polars as pl
import pyarrow as pa
import pytest

from cutrace.analyzer.machine.machine_code import count_runs, read_machine_code
from cutrace.analyzer.time.asynchronous import Asynchronous, InFlight
from cutrace.analyzer.time.chain import MachineWarp
from cutrace.analyzer.time.host_memory import (
    find_host_traffic,
    host_times,
    why_no_estimate,
)
from cutrace.analyzer.time.polls import find_polls
from cutrace.analyzer.time.units import spilled_sectors
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.device.measured import Measured, load_measured
from cutrace.traces.machine_schedule import NO_SCOREBOARD, Scheduled, pack_schedule
from cutrace.traces.schema import Array, Launch, Space

SYNCS, BRANCH, EXIT, ADD, CALL, RETURN = 0x1A7, 0x147, 0x14D, 0x021, 0x144, 0x150
GMMA, WARPGROUP = 0x1F0, 0x1C5


def measured() -> Measured:
    found = load_measured(load_device("h100"))
    assert found
    return found


@pytest.mark.parametrize(
    ("stages", "ends"),
    [
        (1, [1000, 2100, 3200]),  # each is asked for as its wait begins
        (2, [1000, 1100, 2100]),  # the second came while the first was awaited, then one in two
        (3, [1000, 1100, 1200]),  # all three came while the first was awaited
    ],
)
def test_copies_arrive_a_latency_after_their_place_was_free(
    stages: int, ends: Sequence[float]
) -> None:
    """A copy takes 1000 cycles, the engine 60, and the warp works for 100 after each wait."""
    units = InFlight(Asynchronous(stages=stages, load_cycles=1000, engine_cycles=60))
    units.ask(0)
    now, found = 0.0, list[float]()
    for _ in ends:
        now = max(now, units.await_copy(now))
        found.append(now)
        now += 100
    assert found == ends


def test_a_warp_that_does_not_copy_hands_the_place_over() -> None:
    units = InFlight(Asynchronous(stages=1, load_cycles=1000, hand_over=130))
    assert units.await_copy(0) == 1000
    assert units.await_copy(1000) == 1000 + 130 + 1000


def one(
    pc: int, operation: int, stall: int = 1, sets: int = NO_SCOREBOARD, waits: int = 0,
    target: int = -1, guarded: int | None = None,
) -> Scheduled:  # fmt: skip
    is_guarded = int(target >= 0) if guarded is None else guarded
    return Scheduled(pc, operation, stall, sets, NO_SCOREBOARD, waits, is_guarded, target)


def test_products_take_the_tensor_pipe_in_turn_and_their_wait_its_latency() -> None:
    """Two products of 64 cycles are asked for in turn; the wait adds 56 and the sum 4."""
    code = [one(0, WARPGROUP), one(1, GMMA), one(2, GMMA), one(3, WARPGROUP), one(4, ADD, 4)]
    found = read_machine_code(pack_schedule([*code, one(5, EXIT, 5)]))
    assert found
    warp = MachineWarp(found, {0: 1.0}, {0: 1.0}, {}, lambda *_: (0.0, ""), 7.0)
    warp.in_flight = InFlight(Asynchronous(product_cycles=64, product_latency=56))
    assert warp.run().cycles == 1 + 2 * 64 + 56 + 1 + 4


def test_a_loop_that_polls_takes_no_iterations_of_the_loop_around_it() -> None:
    """Block 1 of the PTX runs 16 times; the assembler has its poll once more, behind the end."""
    code = [
        one(0, SYNCS, sets=0),
        one(0, BRANCH, waits=1, target=4),
        one(1, ADD),
        one(2, BRANCH, target=0),
        one(0, SYNCS, sets=0),  # the poll, and the way back
        one(0, BRANCH, waits=1, target=4),
        one(0, BRANCH, target=2, guarded=0),
    ]
    found = read_machine_code(pack_schedule([*code[:4], one(3, EXIT), *code[4:]]))
    assert found
    history = [(1, 1)] * 16
    times, _ = count_runs(found, history, {0: 1, 1: 1, 2: 1, 3: 2})
    assert times[0] == 16


def test_a_function_that_the_kernel_calls_runs_as_often_as_in_the_ptx() -> None:
    """The call at pc 1 is the PTX's; a routine of the assembler's own never runs."""
    code = [
        one(0, ADD), one(1, CALL, target=4, guarded=0), one(2, BRANCH, target=0), one(3, EXIT),
        one(10, ADD), one(10, RETURN),
    ]  # fmt: skip
    text, block_of = pack_schedule(code), {0: 1, 1: 1, 2: 1, 3: 2, 10: 5}
    history = [part for _ in range(8) for part in ((1, 1), (5, 1))] + [(2, 1)]
    for calls, expected in ((frozenset({1}), 8.0), (frozenset[int](), 0.0)):
        found = read_machine_code(text, calls)
        assert found
        times, _ = count_runs(found, history, block_of)
        body = next(place for place, block in enumerate(found.blocks) if block.start == 4)
        assert times[body] * bool(found.blocks[body].operations) == expected


ROWS = (
    (0, 0, "integer", "", "add.s32 %r1, %r1, 1;"),
    (1, 1, "memory", "load", "ld.acquire.gpu.u32 %r2, [%rd2];"),
    (2, 1, "control", "", "@%p1 bra $L;"),
    (3, 2, "memory", "load", "ld.global.u32 %r3, [%rd3];"),
    (4, 2, "integer", "", "mul.wide.s32 %rd3, %r3, 4;"),
    (5, 2, "control", "", "@%p2 bra $M;"),
    (6, 3, "memory", "atomic", "atom.global.cas.b32 %r4, [%rd4], %r5, %r6;"),
    (7, 4, "other", "", "mbarrier.try_wait.parity.shared::cta.b64 p, [%r7], %r8;"),
    (8, 5, "free", "", "bra W;"),
)


def test_loops_poll_that_ask_one_address_again_without_other_work() -> None:
    """Not the chain of pointers of block 2, nor the exchange of block 3."""
    names = ("pc", "block", "class", "access", "text")
    table = pa.table({name: [row[place] for row in ROWS] for place, name in enumerate(names)})
    assert find_polls(table, (1, 3)) == {1: True, 4: True, 5: False}
    assert find_polls(table, (2,)) == {4: True, 5: False}


def test_an_atomic_that_adds_nothing_polls() -> None:
    """`while (atomicAdd(count, 0) != gridDim.x);` but not one that counts its turns."""
    texts = ["atom.global.add.u32 %r1, [%rd1], 0;", "atom.global.add.u32 %r2, [%rd1], 1;"]
    rows = {"pc": [0, 1], "block": [1, 3], "class": 2 * ["memory"], "access": 2 * ["atomic"]}
    assert find_polls(pa.table({**rows, "text": texts}), (1, 3)) == {1: True}


def test_spilled_registers_go_to_l2_where_l1_does_not_hold_them() -> None:
    """1,000 PTX instructions issue a load or store of local memory each second time."""
    sums = {0: {"instructions": 1000, "local_load_requests": 100}}
    issued = {0x183: 0.3, 0x187: 0.2}
    assert spilled_sectors(issued, sums, 400_000, 250_000) == 4 * (500 - 100)
    assert spilled_sectors(issued, sums, 200_000, 250_000) == 0


def launch(memory: str) -> Launch:
    array = Array("in", Space.GLOBAL, 0, 1 << 20, memory=memory)
    return Launch("k", "k", (1, 1, 1), (32, 1, 1), 0, 0, 0, arrays=(array,))


COUNTS = {
    "pc": [0, 1],
    "array": ["in", "in"],
    "global_load_requests": [100, 10],
    "global_load_l1_reads": [400, 320],
    "global_load_bytes_distinct": [12800, 1280],
    "global_load_l2_reads": [400, 320],
    "global_store_requests": [0, 0],
    "global_store_l2_writes": [0, 0],
}


def test_the_host_sends_lines_and_single_sectors_over_pcie() -> None:
    """100 lines of 128 bytes, and 320 sectors of which 4 bytes are asked for."""
    traffic = find_host_traffic(pl.DataFrame(COUNTS), launch("pinned"), 63.015)
    assert (traffic.lines, traffic.sectors, sorted(traffic.pcs)) == (100.0, 320.0, [0, 1])
    times = {part.what: part.ns for part in host_times(traffic, measured())}
    assert times["PCIe"] == pytest.approx(100 * 2.56 + 320 * 1.71)
    assert find_host_traffic(pl.DataFrame(COUNTS), launch(""), 63.015).pcs == frozenset()
    slow = find_host_traffic(pl.DataFrame(COUNTS), launch("pinned"), 63.015 / 4)
    assert next(host_times(slow, measured())).ns == pytest.approx(4 * times["PCIe"])
    assert find_host_traffic(pl.DataFrame(COUNTS), launch("pinned"), 0.0).pcs == frozenset()


def test_nothing_is_estimated_where_pages_move_or_a_kernel_launches_kernels() -> None:
    counts = pl.DataFrame(COUNTS)
    call = "call (retval0), cudaLaunchDeviceV2, (p0, p1);"
    table = pa.table({"pc": [0, 1], "opcode": ["ld", "call"], "text": ["ld.global;", call]})
    assert why_no_estimate(counts, launch(""), table, {0: {}}) == ""
    assert why_no_estimate(counts, launch(""), table, {1: {}}) == "the kernel launches kernels"
    assert "managed memory (in)" in why_no_estimate(counts, launch("managed"), table, {0: {}})


@pytest.mark.parametrize("function", ["malloc", "free", "__cudaCDP2Malloc"])
def test_nothing_is_estimated_where_a_kernel_uses_the_heap(function: str) -> None:
    """An H100 sorts 16 elements with new and delete in 162 us, 26 times the estimate."""
    counts, text = pl.DataFrame(COUNTS), ["ld.global;", f"call.uni (r0), {function}, (p0);"]
    table = pa.table({"pc": [0, 1], "opcode": ["ld", "call"], "text": text})
    assert why_no_estimate(counts, launch(""), table, {0: {}}) == ""
    assert "malloc" in why_no_estimate(counts, launch(""), table, {1: {}})
    own = table.set_column(2, "text", pa.array(["ld.global;", "call.uni (r0), my_malloc, (p0);"]))
    assert why_no_estimate(counts, launch(""), own, {1: {}}) == ""


def test_shapes_of_products_take_the_tensor_pipe_for_as_long_as_was_measured() -> None:
    """64 x 256 x 16 takes a warpgroup 130 cycles, 16 x 8 x 16 takes a warp 1.57."""
    known = measured()
    wide = known.tensor_cycles("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16")
    assert wide == pytest.approx(129.7 / 4, rel=0.01)
    small = known.tensor_cycles("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    assert small == pytest.approx(1.567, rel=0.01)
    assert known.tensor_cycles("fma.rn.f32") == 0
