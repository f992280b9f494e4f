"""Splits and warps take turns while they wait, and waiting is not taken for a deadlock."""

import ctypes
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from cuda_run import run_kernel, run_under_both
from engines import assert_same_under_both
from numpy.typing import NDArray

import cutrace
from cutrace.base.errors import KernelFault
from cutrace.jit.loop_codegen import translate
from cutrace.jit.machine_code import compile_assembly
from cutrace.tracer.front import cuda
from cutrace.tracer.front.source import Source
from cutrace.tracer.ptx.link import link_kernel
from cutrace.tracer.ptx.parse import parse_module
from cutrace.tracer.session.record_options import RecordOptions, default_options
from cutrace.tracer.simt.kernel.spin_loop import waiting_blocks
from cutrace.tracer.simt.warp.schedule import Schedule
from cutrace.tracer.simt.warp.scheduler import leave_region, reconverge
from cutrace.tracer.simt.warp.stack_entry import StackEntry, merge_siblings, rotate_stack, run_ahead

# Leaves have mass 1. Cells have the numbers after those of the leaves, children before parents;
# all threads go through the cells in steps of the grid, and poll the mass of children that other
# threads are still to store.
SUM_A_TREE = """
extern "C" __global__ void k(volatile float *mass, const int *child, int leaves, int cells) {
    __shared__ int missing_child[8 * 256];
    int step = blockDim.x * gridDim.x;
    int k = leaves + threadIdx.x + blockIdx.x * blockDim.x;
    int missing = 0;
    float sum = 0;
    while (k < leaves + cells) {
        if (missing == 0) {
            sum = 0;
            for (int i = 0; i < 8; i++) {
                int ch = child[8 * (k - leaves) + i];
                if (ch >= 0) {
                    float m = mass[ch];
                    missing_child[missing * 256 + threadIdx.x] = ch;
                    missing++;
                    if (m >= 0) { missing--; sum += m; }
                }
            }
        }
        if (missing != 0) {
            float m;
            do {
                int ch = missing_child[(missing - 1) * 256 + threadIdx.x];
                m = mass[ch];
                if (m >= 0) { missing--; sum += m; }
            } while (m >= 0 && missing != 0);
        }
        if (missing == 0) {
            __threadfence();
            mass[k] = sum;
            k += step;
        }
    }
}"""


def tree(cells: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the children of each cell, up to 7 leaves and the cell before, and all masses."""
    count = 1 + np.arange(cells) % 7
    leaves = int(count.sum())
    last = np.cumsum(count)
    child = np.full((cells, 8), -1, dtype=np.int32)
    for cell in range(cells):
        child[cell, : count[cell]] = np.arange(last[cell] - count[cell], last[cell])
        child[cell, 7] = leaves + cell - 1 if cell else -1
    return child, np.concatenate((np.ones(leaves), last)).astype(np.float32)


def test_blocks_sum_a_tree_from_its_leaves_with_all_work_inside_of_one_waiting_loop() -> None:
    child, expected = tree(100)
    leaves = len(expected) - 100
    mass = np.where(np.arange(len(expected)) < leaves, 1, -1).astype(np.float32)
    found, _ = run_under_both(SUM_A_TREE, 2, 8, mass, child, np.int32(leaves), np.int32(100))
    assert found.tolist() == expected.tolist()


PIPELINE = """
#include <cuda/pipeline>
#include <cooperative_groups.h>
extern "C" __global__ void k(int *out, const int *in, int tiles, int producers) {
    __shared__ int buffer[2][32];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    bool produces = threadIdx.x < producers;
    auto role = produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
    auto pipe = cuda::make_pipeline(cooperative_groups::this_thread_block(), &state, role);
    if (produces) {
        for (int i = 0; i < tiles; i++) {
            pipe.producer_acquire();
            for (int j = threadIdx.x; j < 32; j += producers)
                cuda::memcpy_async(&buffer[i % 2][j], in + i * 32 + j, sizeof(int), pipe);
            pipe.producer_commit();
        }
        return;
    }
    int sum = 0;
    for (int i = 0; i < tiles; i++) {
        pipe.consumer_wait();
        for (int j = 0; j < 32; j++) sum += buffer[i % 2][j] * (j + 1);
        pipe.consumer_release();
    }
    out[threadIdx.x - producers] = sum;
}"""


@pytest.mark.parametrize(("producers", "threads"), [(32, 64), (16, 32)])
def test_a_pipeline_of_more_tiles_than_stages_ends(producers: int, threads: int) -> None:
    tiles = 8
    data = np.arange(32 * tiles, dtype=np.int32)
    numbers = np.int32(tiles), np.int32(producers)
    zeros = np.zeros(threads - producers, np.int32)
    out, _ = run_under_both(PIPELINE, 1, threads, zeros, data, *numbers)
    total = int((data.reshape(tiles, 32) * np.arange(1, 33)).sum())
    assert out.tolist() == [total] * (threads - producers)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_three_splits_of_a_warp_each_have_their_turn(order: tuple[int, int, int]) -> None:
    source = """
    extern "C" __global__ void k(volatile int *word, int *out, int a, int b, int c) {
        int role = threadIdx.x % 3, me = role == 0 ? a : role == 1 ? b : c;
        if (role == 0) { while (word[0] != me); out[me] = 10; word[0] = me + 1; }
        else if (role == 1) { while (word[0] != me); out[me] = 20; word[0] = me + 1; }
        else { while (word[0] != me); out[me] = 30; word[0] = me + 1; }
    }"""
    _, out = run_under_both(
        source, 1, 32, np.zeros(1, np.int32), np.zeros(3, np.int32), *map(np.int32, order)
    )
    expected = [0, 0, 0]
    for role, place in enumerate(order):
        expected[place] = 10 * (role + 1)
    assert out.tolist() == expected


def test_a_loop_that_counts_ready_words_without_storing_is_no_deadlock() -> None:
    source = """
    extern "C" __global__ void k(volatile int *word, int *out, int n) {
        int i = 0, sum = 0;
        while (i < n) { if (word[i] >= 0) { sum += word[i]; i++; } }
        out[threadIdx.x] = sum;
    }"""
    words = np.arange(3000, dtype=np.int32) % 7
    _, out = run_under_both(source, 1, 32, words, np.zeros(32, np.int32), np.int32(3000))
    assert out.tolist() == [int(words.sum())] * 32


@pytest.mark.parametrize("engine", ["array", "compiled"])
def test_waiting_in_turns_for_what_nobody_does_is_a_fault(engine: str) -> None:
    source = """
extern "C" __global__ void k(volatile int *flag) {
    if (threadIdx.x % 2) while (flag[0] == 0);
    else while (flag[1] == 0);
    flag[2] = 1;
}"""
    with (
        default_options(RecordOptions(engine=engine)),
        pytest.raises(KernelFault, match=r"no progress.*:3.*:4"),
    ):
        run_kernel(source, 4, 64, np.zeros(3, np.int32))


HEADER = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .pred %p<5>; .reg .b32 %r<9>; .reg .b64 %rd<5>;
    .shared .align 4 .b8 s[256];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, s;
    add.s32 %r3, %r3, %r2;
"""

SOME_EXIT = """
    mov.u32 %r4, %laneid;
    setp.ge.u32 %p1, %r1, 32;
    setp.lt.u32 %p2, %r4, 16;
    st.shared.u32 [%r3], -1;
    @SLOW bra $SLOW;
    st.shared.u32 [%r3], %r1;
    @%p2 bra $STAYS;
    exit;                       // half of the warp, after the other half has come to the barrier
$STAYS:
    bar.sync 0;
    xor.b32 %r5, %r2, 128;
    mov.u32 %r6, s;
    add.s32 %r6, %r6, %r5;
    ld.shared.u32 %r7, [%r6];
    st.global.u32 [%rd3], %r7;
    exit;
$SLOW:
    mov.u32 %r8, 100;
$AGAIN:
    sub.s32 %r8, %r8, 1;
    setp.ne.s32 %p3, %r8, 0;
    @%p3 bra $AGAIN;
    st.shared.u32 [%r3], %r1;
    bar.sync 0;
    xor.b32 %r5, %r2, 128;
    mov.u32 %r6, s;
    add.s32 %r6, %r6, %r5;
    ld.shared.u32 %r7, [%r6];
    st.global.u32 [%rd3], %r7;
    exit;
}"""


def run_ptx(folder: Path, ptx: str, threads: int) -> NDArray[np.int32]:
    """Run the kernel `k` in one block under both engines; return what it leaves."""
    found = []

    def run(gpu: cutrace.Session) -> list[NDArray[Any]]:
        out = gpu.to_device(np.zeros(threads, np.int32))
        gpu.load_ptx(ptx).get_function("k")[(1,), (threads,)](out)
        found.append(out.copy_to_host())
        return found[-1:]

    assert_same_under_both(folder, run)
    return found[-1]


@pytest.mark.parametrize("slow", ["%p1", "!%p1"])
def test_lanes_wait_on_at_a_barrier_when_the_others_of_their_warp_exit(
    tmp_path: Path, slow: str
) -> None:
    out = run_ptx(tmp_path, HEADER + SOME_EXIT.replace("SLOW bra", f"{slow} bra"), 64)
    quick = np.arange(64) // 32 == (0 if slow == "%p1" else 1)
    stays = ~quick | (np.arange(64) % 32 < 16)
    assert out.tolist() == np.where(stays, np.arange(64) ^ 32, 0).tolist()


VOTE = """
    and.b32 %r4, %r1, 1;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 bra $ODD;
    add.s32 %r5, %r1, 2;
    bra $MEET;
$ODD:
    mul.lo.s32 %r5, %r1, 3;
    setp.lt.s32 %p2, %r5, 0;
    @%p2 bra $NEVER;            // so that the two sides join at the end only
$MEET:
    setp.gt.s32 %p3, %r5, LEAST;
    bar.red.and.pred %p4, 0, %p3;
    selp.b32 %r6, 1, 2, %p4;
    st.global.u32 [%rd3], %r6;
$NEVER:
    ret;
}"""


@pytest.mark.parametrize(("least", "outcome"), [(0, 1), (2, 2)])
def test_a_vote_at_a_barrier_is_of_all_lanes_that_came_there_in_splits(
    tmp_path: Path, least: int, outcome: int
) -> None:
    out = run_ptx(tmp_path, HEADER + VOTE.replace("LEAST", str(least)), 64)
    assert out.tolist() == [outcome] * 64


def waits(source: str) -> bool:
    """Whether a kernel has a loop that waits."""
    compiled = cuda.to_ptx(Source("k.cu", source), "compute_75")
    return bool(waiting_blocks(link_kernel(parse_module(compiled.ptx), "k")))


def test_a_loop_of_known_turns_waits_for_nobody_whatever_an_atomic_inside_of_it_decides() -> None:
    source = """
    extern "C" __global__ void k(int *out, unsigned *own) {
        int t = threadIdx.x, x = t;
        for (int k = 0; k < 100; k++) {
            if (t & 1) {
                for (int j = 0; j < 9; j++)
                    if (atomicInc(&own[t], 5u) & 1) { x += 2; out[t] = x; }
            } else {
                x += 3;
            }
        }
        for (int k = 16; k > 0; k >>= 1) x += __shfl_down_sync(0xffffffffu, x, k);
        out[t] = x;
    }"""
    assert not waits(source)
    out, own = run_under_both(source, 1, 32, np.zeros(32, np.int32), np.zeros(32, np.uint32))
    # 900 turns of 0 1 2 3 4 5: an odd number was found in half of them
    total = sum(t + (900 if t % 2 else 300) for t in range(32))
    assert out[0] == total
    assert own.tolist() == [0] * 32


@pytest.mark.parametrize(
    "loop",
    [
        "while (atomicCAS(word, 0, 1));",
        "bool done = false; while (!done) { if (!atomicCAS(word, 0, 1)) done = true; }",
        "for (int i = 0; i < 9; i++) while (*(volatile int *)word == i);",
        "while (ask(word));",
    ],
)
def test_a_loop_waits_whose_end_hangs_on_others(loop: str) -> None:
    ask = "__device__ __noinline__ bool ask(int *word) { return atomicCAS(word, 0, 1); }\n"
    assert waits(ask + 'extern "C" __global__ void k(int *word) { ' + loop + " word[1] = 1; }")


def stack(*splits: tuple[int, int, int]) -> list[StackEntry]:
    """Return splits (block, join, lanes) as a stack."""
    return [StackEntry(block, join, mask, 0) for block, join, mask in splits]


def test_turns_bring_every_leaf_of_a_tree_of_splits_to_the_top() -> None:
    one = stack((9, 10, 0b1111), (1, 9, 0b0011), (5, 9, 0b1100), (2, 5, 0b0100), (3, 5, 0b1000))
    seen: list[Any] = []
    for _ in range(6):
        found = rotate_stack(one, parked=0)
        assert found is not None
        assert sorted(found) == sorted(one)
        one = found
        seen.append(one[-1].mask)
    assert set(seen) == {0b0011, 0b0100, 0b1000}
    assert one.index(StackEntry(5, 9, 0b1100, 0)) < one.index(StackEntry(2, 5, 0b0100, 0))


def test_a_turn_passes_over_lanes_that_wait_at_a_barrier() -> None:
    one = stack((9, 10, 0b111), (1, 9, 0b001), (2, 9, 0b010), (3, 9, 0b100))
    for _ in range(3):
        found = rotate_stack(one, parked=0b010)
        assert found is not None
        one = found
        assert one[-1].mask != 0b010
    assert rotate_stack(stack((9, 10, 0b11), (1, 9, 0b01), (2, 9, 0b10)), parked=0b01) is None


def test_lanes_that_have_arrived_go_on_alone_and_the_others_still_meet() -> None:
    before = stack((9, 10, 0b1111), (1, 9, 0b0001), (2, 9, 0b0010))
    after = stack((9, 10, 0b0011), (1, 9, 0b0001), (2, 9, 0b0010), (9, 10, 0b1100))
    assert run_ahead(before) == after
    assert run_ahead(before, meeting_blocks={9}) is None
    assert run_ahead(stack((9, 10, 0b11), (1, 9, 0b01), (2, 9, 0b10))) is None


def test_siblings_that_go_on_at_one_block_are_united_and_others_are_not() -> None:
    one = stack((9, 10, 0b111), (4, 9, 0b001), (4, 9, 0b010), (4, 9, 0b100))
    assert merge_siblings(one, 0) == stack((9, 10, 0b111), (4, 9, 0b111))
    assert merge_siblings(one, 0b010) == stack((9, 10, 0b111), (4, 9, 0b010), (4, 9, 0b101))
    apart = stack((9, 10, 0b11), (5, 9, 0b01), (4, 9, 0b10))
    assert merge_siblings(apart, 0) == apart


STAY, EXIT = 160, 200
"""Where lanes go on that do not leave, and where a kernel ends."""


def family(chance: Random, blocks: Iterator[int], lanes: list[int], join: int) -> list[StackEntry]:
    """Return splits of these lanes that join there, each before those that it waits for."""
    mask = sum(1 << lane for lane in lanes)
    found = [StackEntry(next(blocks), join, mask, 0)]
    while len(lanes) > 1 and chance.random() < 0.8:
        size = chance.randrange(1, len(lanes))
        found += family(chance, blocks, lanes[:size], found[0].block)
        lanes = lanes[size:]
    return found


def leave_for_another_way(m: Schedule, lanes: int, stay: int) -> None:
    """Do what a branch at which lanes leave does with the first warp."""
    leave_region(m, 0, lanes, stay, m.leaving[0])
    reconverge(m, 0)


@cache
def compiled_leaving() -> Callable[[int, int, int], int]:
    find = compile_assembly(translate([leave_for_another_way]), vectors=False)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    return kind(find("leave_for_another_way"))


def schedule_of(splits: list[StackEntry], join: int, leaving: int) -> Schedule:
    """Return a schedule of one warp that stands at block 0, a branch that lanes leave by."""
    m, below = Schedule(), splits[:-1]
    m.warps, m.number = 1, 0
    m.depth = np.array([len(below)], np.int32)
    m.block, m.join = (np.array([value], np.int32) for value in splits[-1][:2])
    m.mask, m.called = np.array([splits[-1].mask], np.uint32), np.zeros(1, np.uint8)
    room = [*below, StackEntry(0, 0, 0, 0), StackEntry(0, 0, 0, 0)]
    m.below_block, m.below_join = (
        np.array([split[k] for split in room], np.int32) for k in range(2)
    )
    m.below_mask = np.array([split.mask for split in room], np.uint32)
    m.below_called = np.zeros(len(room), np.uint8)
    m.first_end = EXIT
    m.joins, m.leaving = np.array([join], np.int32), np.array([leaving], np.int32)
    m.parked, m.meeting = np.zeros((2, 1), np.uint32)
    m.state, m.ranks = np.zeros(1, np.uint8), np.zeros(EXIT + 1, np.int32)
    m.order, m.part_order = np.zeros((2, 1), np.int32)
    return m


def splits_of(m: Schedule) -> list[StackEntry]:
    """Return the stack of its warp."""
    depth = int(m.depth[0])
    below = zip(m.below_block, m.below_join, m.below_mask, m.below_called, strict=True)
    top = (m.block[0], m.join[0], m.mask[0], m.called[0])
    return [StackEntry(*map(int, split)) for split in (*list(below)[:depth], top)]


@pytest.mark.parametrize("seed", range(300))
def test_lanes_that_go_another_way_leave_those_that_wait_for_them_only(seed: int) -> None:
    chance = Random(seed)
    splits = family(chance, count(1), list(range(8)), EXIT)
    top = splits[-1]
    lanes = sum(1 << lane for lane in range(8) if top.mask >> lane & 1 and chance.random() < 0.6)
    join = chance.choice([170, *(split.join for split in splits[1:])])
    leaving, stay = chance.choice([join, 150]), chance.choice([STAY, top.join])
    schedule = schedule_of(splits, join, leaving)
    compiled_leaving()(schedule.address, lanes, stay)
    found = splits_of(schedule)
    are_met = any(split.join == join and split.mask & top.mask for split in splits)
    if lanes and are_met:
        ours = [split for split in found if split.mask & lanes]
        assert ours[-1].block == leaving
        assert not ours[-1].mask & top.mask & ~lanes or leaving == join
    else:
        gone = top._replace(block=leaving if lanes == top.mask else stay)
        has_joined = gone.block == gone.join and len(splits) > 1
        assert found == (splits[:-1] if has_joined else [*splits[:-1], gone])
    for place, split in enumerate(found[:-1]):
        waits = any(other.mask & split.mask for other in found[place + 1 :])
        assert waits or split.block != split.join, "a split has joined, but may have its turn"
