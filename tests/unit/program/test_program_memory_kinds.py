"""The trace says which arrays lie in the host's memory, and which have not moved to the device."""

from pathlib import Path

from program_run import cutrace

SOURCE = """\
#include <cstdio>
__global__ void put(int *x) { x[threadIdx.x] = 1; }
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
    before = ["", "managed", "pinned"]
    assert kinds == [before, before, before, ["", "", "pinned"]]
