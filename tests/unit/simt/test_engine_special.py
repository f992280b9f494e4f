"""Special registers that say where a block runs, and when."""

from pathlib import Path

import numpy as np
import pytest
from engines import assert_same_under_both

import cutrace
from cutrace.models.analyses.occupancy import Need, occupancy
from cutrace.models.replay.device.device import load_device
from cutrace.models.replay.interface.options import DEFAULT_DEVICE
from cutrace.models.replay.schedule.place import place
from cutrace.tracer.simt.kernel.launch import DEFAULT_CHIP, Chip

WHERE = r"""
extern "C" __global__ void k(unsigned *out, unsigned long long *when)
{
    unsigned sm, warp, warps, sms;
    unsigned long long time, grid;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(warps));
    asm volatile("mov.u32 %0, %%nsmid;" : "=r"(sms));
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    asm volatile("mov.u64 %0, %%gridid;" : "=l"(grid));
    int i = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (threadIdx.x % 32) return;
    out[4 * i] = sm, out[4 * i + 1] = warp, out[4 * i + 2] = warps, out[4 * i + 3] = sms;
    when[2 * i] = time, when[2 * i + 1] = grid;
}
"""
SLOTS = r"""
extern "C" __global__ void k(int *taken, int *failures)
{
    __shared__ int slot;
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0) {
        for (slot = 0; slot < 2 && atomicCAS(taken + 2 * sm + slot, 0, 1); ++slot) ;
        if (slot == 2) atomicAdd(failures, 1);
    }
    __syncthreads();
    if (threadIdx.x == 0 && slot < 2) atomicExch(taken + 2 * sm + slot, 0);
}
"""


def test_no_two_warps_of_an_sm_share_a_slot_and_launches_follow_each_other(tmp_path: Path) -> None:
    def run(gpu: cutrace.Session) -> list[np.ndarray]:
        out = gpu.to_device(np.zeros((1024, 4), np.uint32))
        when = gpu.to_device(np.zeros((1024, 2), np.uint64))
        found = []
        for _ in range(2):
            gpu.compile(WHERE).get_function("k")[512, 64](out, when)
            found += [out.copy_to_host(), when.copy_to_host()]
        return found

    with cutrace.Session(tmp_path / "t.cutrace") as gpu:
        where, first, _, second = run(gpu)
    blocks = np.arange(512).repeat(2)
    assert where[:, 0].tolist() == (blocks % 132).tolist()
    assert (where[:, 2:] == (64, 132)).all()
    assert len(np.unique(where[:, :2], axis=0)) == 1024  # an SM has its 4 blocks of 64 at once
    assert where[:, 1].max() == 7
    assert (first[:, 1] == 1).all()
    assert (second[:, 1] == 2).all()
    assert first[:, 0].max() < second[:, 0].min()
    assert_same_under_both(tmp_path, run)


def test_as_many_blocks_at_once_as_an_sm_holds_find_a_slot(tmp_path: Path) -> None:
    with cutrace.Session(tmp_path / "t.cutrace") as gpu:
        taken, failures = (gpu.to_device(np.zeros(n, np.int32)) for n in (264, 1))
        gpu.compile(SLOTS).get_function("k")[800, 1024](taken, failures)
        assert failures.copy_to_host().tolist() == [0]
        assert not taken.copy_to_host().any()


def test_small_blocks_that_take_much_shared_memory_find_a_slot(tmp_path: Path) -> None:
    # 40 KB a block: an SM of 227 KB has room for five
    held = "__shared__ int slot; __shared__ volatile int held[10000];"
    source = SLOTS.replace("__shared__ int slot;", held).replace("2 * sm", "5 * sm")
    source = source.replace("slot < 2", "slot < 5").replace(
        "slot == 2", "held[sm] = slot, slot == 5"
    )
    with cutrace.Session(tmp_path / "t.cutrace") as gpu:
        taken, failures = (gpu.to_device(np.zeros(n, np.int32)) for n in (5 * 132, 1))
        gpu.compile(source).get_function("k")[1500, 64](taken, failures)
        assert failures.copy_to_host().tolist() == [0]


def test_without_a_device_a_kernel_sees_the_default_one() -> None:
    model = load_device(DEFAULT_DEVICE)
    limits, chip = model.limits, DEFAULT_CHIP
    assert (chip.sms, chip.warps) == (model.chip.sms, limits.warps_per_sm)
    assert (chip.shared_unit, chip.shared_reserved) == (limits.shared_unit, limits.shared_reserved)
    for registers in (16, 32, 40, 64, 128, 255):
        for shared in (0, 100, 9000, 50_000, 230_000):
            for threads in (1, 32, 96, 128, 256, 1000):
                need = Need(threads, registers, shared)
                assert chip.fits(registers, shared, threads) == occupancy(limits, need).blocks, need


@pytest.mark.parametrize("device", ["gtx280", "k20", "h200"])
def test_blocks_go_to_the_sms_of_the_caches_model(device: str) -> None:
    model = load_device(device)
    chip = Chip(sms=model.chip.sms, sms_per_cluster=model.chip.sms_per_cluster)
    blocks = np.arange(1000)
    assert chip.sm(blocks).tolist() == place(model.chip, 1000).sm(blocks).tolist()
