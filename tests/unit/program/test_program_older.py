"""Programs for CUDA 11 and older: texture references, votes without a mask, old properties."""

from pathlib import Path

import pytest
from program_run import HEAD, cutrace, record

OLD = """
#include <cuda_fp16.h>  // declares __shfl of halves
#include <cuda/std/functional>  // has a struct __any
texture<float> line;
texture<uchar4, 2, cudaReadModeNormalizedFloat> picture;
static texture<int, cudaTextureType2D> rows(0, cudaFilterModePoint);

__global__ void sample(float *out, int *sums)
{
    int i = threadIdx.x;
    out[i] = tex1Dfetch(line, i) + tex2D(picture, (i + 0.5f) / 4, 0.5f).y;
    sums[i] = tex2D(rows, i, 1) + (__ballot(i < 3) == 7) + __shfl(i, 3);
}

int main()
{
    float host[4] = {1, 2, 3, 4}, *d_line, *out;
    uchar4 texels[8];
    int numbers[256], *d_rows, *sums;
    for (int i = 0; i < 8; ++i) texels[i] = make_uchar4(0, 51 * (i % 4), 0, 0);
    for (int i = 0; i < 256; ++i) numbers[i] = i;
    CHECK(cudaMalloc(&d_line, sizeof host));
    CHECK(cudaMemcpy(d_line, host, sizeof host, cudaMemcpyHostToDevice));
    size_t offset = 1;
    CHECK(cudaBindTexture(&offset, line, d_line));
    cudaArray *array;
    cudaChannelFormatDesc texel = picture.channelDesc;
    CHECK(cudaMallocArray(&array, &picture.channelDesc, 4, 2));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, texels, 16, 16, 2, cudaMemcpyHostToDevice));
    picture.normalized = true;
    picture.addressMode[0] = cudaAddressModeClamp;
    CHECK(cudaBindTextureToArray(&picture, array, &texel));
    CHECK(cudaMalloc(&d_rows, sizeof numbers));
    CHECK(cudaMemcpy(d_rows, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    CHECK(cudaBindTexture2D(0, &rows, d_rows, &rows.channelDesc, 4, 2, 512));
    CHECK(cudaMalloc(&out, sizeof host));
    CHECK(cudaMalloc(&sums, 4 * sizeof(int)));
    sample<<<1, 4>>>(out, sums);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(numbers, sums, 4 * sizeof(int), cudaMemcpyDeviceToHost));
    for (int i = 0; i < 4; ++i) printf("%.1f %d ", host[i], numbers[i]);
    CHECK(cudaUnbindTexture(line));
    cudaDeviceProp found;
    CHECK(cudaGetDeviceProperties(&found, 0));
    printf("%d %d %d", int(offset), found.clockRate > 100000, found.deviceOverlap);
}
"""


def test_texture_references_and_votes_without_a_mask_are_those_of_today(tmp_path: Path) -> None:
    done = record(tmp_path, OLD)
    # i + 1 and 51 i / 255; the int of row 1 (128 + i), and 1, and 3 of lane 3
    wanted = "1.0 132 2.2 133 3.4 134 4.6 135 0 1 1"
    assert (done.status, done.out) == (0, wanted), done.err
    textures = [argument.type for argument in done.trace.launches[0].launch.arguments]
    assert textures == ["float *", "int *"]


SHUFFLES = """
__global__ void sum(int *x)
{
    int mine = x[threadIdx.x];
    for (int n = 16; n; n /= 2) mine += __shfl_down(mine, n);
    if (threadIdx.x == 0) x[0] = mine;
}
int main()
{
    int *x;
    CHECK(cudaMallocManaged(&x, 128));
    for (int i = 0; i < 32; i++) x[i] = i;
    sum<<<1, 32>>>(x);
    CHECK(cudaDeviceSynchronize());
    printf("%d", x[0]);
}
"""


def test_shuffles_alone_need_no_mask(tmp_path: Path) -> None:
    done = record(tmp_path, SHUFFLES)
    assert (done.status, done.out) == (0, str(sum(range(32)))), done.err


EDGES = """
#include <cuda.h>
__global__ void add(int *x, int n) { *x = *x * 10 + n; }
int main()
{
    int *x, one = 1, two = 2;
    CUcontext context;
    if (cuInit(0) || cuCtxCreate(&context, 0, 0)) return 1;
    CHECK(cudaMallocManaged(&x, 4));
    *x = 0;
    cudaGraph_t graph;
    cudaGraphNode_t first, second, from, to;
    CHECK(cudaGraphCreate(&graph, 0));
    void *with_one[] = {&x, &one}, *with_two[] = {&x, &two};
    cudaKernelNodeParams what = {(void *)add, 1, 1, 0, with_two, NULL};
    CHECK(cudaGraphAddKernelNode(&second, graph, NULL, 0, &what));
    what.kernelParams = with_one;
    CHECK(cudaGraphAddKernelNode(&first, graph, NULL, 0, &what));
    CHECK(cudaGraphAddDependencies(graph, &first, &second, 1));
    size_t edges = 1, before = 0;
    CHECK(cudaGraphGetEdges(graph, &from, &to, &edges));
    CHECK(cudaGraphNodeGetDependencies(second, NULL, &before));
    cudaGraphExec_t ready;
    CHECK(cudaGraphInstantiate(&ready, graph, NULL, NULL, 0));
    CHECK(cudaGraphLaunch(ready, 0));
    CHECK(cudaDeviceSynchronize());
    printf("%d %d %d %d", *x, (int)edges, from == first && to == second, (int)before);
}
"""


def test_edges_of_graphs_need_no_data_and_contexts_no_parameters(tmp_path: Path) -> None:
    done = record(tmp_path, EDGES)
    assert (done.status, done.out) == (0, "12 1 1 1"), done.err


def test_of_an_old_program_only_its_mistakes_are_told(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(HEAD + "texture<float> t;\nint main() { return nothing; }\n")
    done = cutrace(tmp_path, "nvcc", "app.cu", "-o", "app")
    assert done.status != 0
    assert "texture" not in done.err
    assert 'identifier "nothing" is undefined' in done.err


AGAIN = """
texture<float> line;
__global__ void copy(float *out) { out[threadIdx.x] = tex1Dfetch(line, threadIdx.x); }

int main()
{
    float host[32], *from, *to;
    CHECK(cudaMalloc(&to, sizeof host));
    for (int round = 1; round < 3; ++round) {
        for (int i = 0; i < 32; ++i) host[i] = round * i;
        CHECK(cudaMalloc(&from, sizeof host));
        CHECK(cudaMemcpy(from, host, sizeof host, cudaMemcpyHostToDevice));
        CHECK(cudaBindTexture(0, line, from, sizeof host));
        copy<<<1, 32>>>(to);
        CHECK(cudaMemcpy(host, to, sizeof host, cudaMemcpyDeviceToHost));
        printf("%.0f ", host[31]);
        CHECK(cudaUnbindTexture(line));
        CHECK(cudaFree(from));
    }
    copy<<<1, 1>>>(to);
}
"""


def test_a_texture_outlives_the_array_below_it_in_a_trace_that_can_be_read(tmp_path: Path) -> None:
    done = record(tmp_path, AGAIN)
    assert (done.status, done.out) == (0, "31 62 "), done.err
    below = [[t.array for t in each.launch.textures] for each in done.trace.launches]
    assert below[0] == [below[0][0]]
    assert below[1] == ["", below[1][1]]
    assert below[1][1]


HOST = """
#include <cuda_runtime.h>
int main()
{
    cudaDeviceProp found;
    void *memory;
    return cudaGetDeviceProperties(&found, 0) || found.clockRate < 100000 ||
           cudaMallocManaged(&memory, 4096) ||
           cudaMemAdvise(memory, 4096, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId) ||
           cudaMemPrefetchAsync(memory, 4096, 0);
}
"""


def test_old_properties_and_places_are_there_in_a_file_of_host_code(tmp_path: Path) -> None:
    (tmp_path / "app.cpp").write_text(HOST)
    built = cutrace(tmp_path, "nvcc", "app.cpp", "-o", "app")
    assert built.status == 0, built.err
    done = cutrace(tmp_path, "record", "--", "./app")
    assert done.status == 0, done.err


OF_12 = """
#include <thrust/functional.h>
#include <cub/iterator/counting_input_iterator.cuh>
struct Square : thrust::unary_function<int, int> {
    __device__ int operator()(int x) const { return x * x; }
};
__global__ void put(int *to) { *to = Square()(cub::CountingInputIterator<int>(5)[2]); }
int main() {
    int *to;
    CHECK(cudaMallocManaged(&to, sizeof *to));
    put<<<1, 1>>>(to);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> seen(1, *to);  // <vector> came with <thrust/functional.h>
    printf("%d", seen[0]);
}
"""


@pytest.mark.slow
def test_programs_for_thrust_and_cub_of_cuda_12_are_built_with_these(tmp_path: Path) -> None:
    done = record(tmp_path, OF_12, options=["-std=c++14"])
    assert (done.status, done.out) == (0, "49"), done.err  # (5 + 2) ** 2
