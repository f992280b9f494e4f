"""Times of CUDA events: this machine's, which is said, or the estimates of the launches."""

from pathlib import Path

import pytest
from program_run import HEAD, cutrace

import cutrace as package

SOURCE = (
    HEAD
    + """
__global__ void scale(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
int main(int count, char **words)
{
    int n = 1 << 16;
    float *x, first, both;
    cudaEvent_t begin, middle, end;
    CHECK(cudaMalloc(&x, n * sizeof(float)));
    CHECK(cudaMemset(x, 0, n * sizeof(float)));
    CHECK(cudaEventCreate(&begin)); CHECK(cudaEventCreate(&middle)); CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(begin));
    scale<<<n / 256, 256>>>(x, n);
    CHECK(cudaEventRecord(middle));
    scale<<<n / 256, 256>>>(x, n);
    scale<<<n / 512, 512>>>(x, n);
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&first, begin, middle));
    CHECK(cudaEventElapsedTime(&both, begin, end));
    printf("%.9f %.9f\\n", first, both);
}
"""
)
SENTENCE = "cutrace: the times of CUDA events are those of this machine, not of a GPU"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, built."""
    place = tmp_path_factory.mktemp("clock")
    (place / "app.cu").write_text(SOURCE)
    built = cutrace(place, "nvcc", "-arch=sm_75", "app.cu", "-o", "app")  # for older devices, too
    assert built.status == 0, built.err
    return place


@pytest.mark.parametrize("device", ["h100", "gtx580"])
def test_events_have_the_sum_of_the_estimates_before_them(folder: Path, device: str) -> None:
    done = cutrace(folder, "record", "-d", device, "--clock", "estimate", "--", "./app")
    assert done.status == 0, done.err
    assert SENTENCE not in done.err
    profile = package.analyze(done.trace, device)
    times = [
        one.estimate.ns if one.estimate else float(one.counters["bound_time"] or 0)
        for one in profile.launches
    ]
    assert len(times) == 3
    first, both = map(float, done.out.split())
    assert first == pytest.approx(times[0] * 1e-6, rel=1e-5)
    assert both == pytest.approx(sum(times) * 1e-6, rel=1e-5)


def test_times_of_this_machine_say_so_once(folder: Path) -> None:
    done = cutrace(folder, "record", "--", "./app")
    assert done.err.count(SENTENCE) == 1
    refused = cutrace(folder, "record", "--clock", "gpu", "--", "./app")
    assert refused.status == 2
    assert "--clock gpu: expected host or estimate" in refused.err
