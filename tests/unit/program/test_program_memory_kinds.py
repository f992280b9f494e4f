"""The trace says which arrays lie in the host's memory, and which have not moved to the device."""

from pathlib import Path

import pytest
from program_run import cutrace

from cutrace.analyzer.profile import analyze

SOURCE = """\
#include <cstdio>
__managed__ int kept[1024];
__global__ void put(int *x) { x[threadIdx.x] = 1; }
__global__ void keep() { kept[threadIdx.x] = 1; }
int main()
{
    int *device, *pinned, *managed;
    cudaMalloc(&device, 4096);
    cudaHostAlloc(&pinned, 4096, cudaHostAllocMapped);
    cudaMallocManaged(&managed, 4096);
    put<<<1, 32>>>(device);
    put<<<1, 32>>>(pinned);
    put<<<1, 32>>>(managed);
    put<<<1, 32>>>(managed);
    keep<<<1, 32>>>();
    keep<<<1, 32>>>();
    puts(cudaGetErrorName(cudaDeviceSynchronize()));
    cudaFree(device);
    cudaFreeHost(pinned);
    cudaFree(managed);
}
"""


def test_pages_of_managed_memory_move_at_the_first_launch_that_is_given_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "app.cu").write_text(SOURCE)
    done = cutrace(tmp_path, "record", "app.cu", "--")
    assert (done.status, done.out) == (0, "cudaSuccess\n"), done.err
    kinds = [
        sorted(each.memory for each in one.launch.arrays if each.bytes == 4096)
        for one in done.trace.launches
    ]
    before, after = (["", "managed", own, "pinned"] for own in ("managed", "moved"))
    assert kinds == [before, before, before, after, after, after]


def test_an_estimate_says_that_pages_move_or_may_have_moved_back(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(SOURCE)
    done = cutrace(tmp_path, "record", "app.cu", "--")
    launches = analyze(done.trace, "h100").launches
    unknown = [launch.unknown.partition("(")[0] for launch in launches]
    moves = "pages of managed memory "
    assert unknown == ["", "", moves, "", moves, moves]
    assert [launch.number for launch in launches if launch.estimate] == [0, 1, 3]
    # 32 words in the host's memory: 128 bytes cross PCIe 5.0 at 63.015 GB/s, none are DRAM's
    assert [launch.counters["host_bytes_written"] for launch in launches] == [0, 128, 0, 0, 0, 0]
    (bound,) = (b for b in launches[1].bounds if b.resource == "PCIe, stores")
    assert bound.ns == pytest.approx(128 / 63.015)
    assert [any("move again" in w for w in one.warnings) for one in launches] == [
        number == 3 for number in range(6)
    ]
