"""Programs for CUDA 11 and older: texture and surface references, votes without a mask, launches of
three calls, old properties, the SDK's cutil."""

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
    uint32_t i = threadIdx.x;
    assert(i < INT_MAX && out[i] < FLT_MAX);
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


SURFACES = """
surface<void, 1> line;
surface<void, cudaSurfaceType2D> picture;
static surface<void, 3> block;
surface<void, cudaSurfaceType2DLayered> layers;
__global__ void add(int w)
{
    int x = threadIdx.x, y = blockIdx.x;
    if (x >= w) return;
    float v;
    surf2Dread(&v, picture, x * 4, y);
    surf2Dwrite(v + surf1Dread<float>(line, x * 4, cudaBoundaryModeClamp), picture, x * 4, y, 4);
    surf3Dwrite(v * 2, block, x * 4, y, 1);
    surf2DLayeredwrite(surf3Dread<float>(block, x * 4, y, 1), layers, x * 4, y, 1);
}
static float sum(cudaArray *array, int depth)
{
    float h[2][4][8] = {}, all = 0;
    cudaMemcpy3DParms p = {};
    p.srcArray = array;
    p.dstPtr = make_cudaPitchedPtr(h, 32, 8, 4);
    p.extent = make_cudaExtent(8, 4, depth);
    p.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&p));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 4; y++)
            for (int x = 0; x < 8; x++) all += h[z][y][x];
    return all;
}
int main()
{
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>(), found;
    cudaArray *one, *two, *three, *stack;
    float h[32];
    for (int i = 0; i < 32; i++) h[i] = i;
    CHECK(cudaMallocArray(&one, &format, 8, 0, cudaArraySurfaceLoadStore));
    CHECK(cudaMallocArray(&two, &format, 8, 4, cudaArraySurfaceLoadStore));
    CHECK(cudaMalloc3DArray(&three, &format, make_cudaExtent(8, 4, 2), cudaArraySurfaceLoadStore));
    CHECK(cudaMalloc3DArray(&stack, &format, make_cudaExtent(8, 4, 2),
                            cudaArraySurfaceLoadStore | cudaArrayLayered));
    CHECK(cudaMemcpy2DToArray(one, 0, 0, h, 32, 32, 1, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DToArray(two, 0, 0, h, 32, 32, 4, cudaMemcpyHostToDevice));
    const surfaceReference *reference;
    CHECK(cudaGetSurfaceReference(&reference, &line));
    CHECK(cudaGetChannelDesc(&found, one));
    CHECK(cudaBindSurfaceToArray(reference, one, &found));
    CHECK(cudaBindSurfaceToArray(picture, two));
    CHECK(cudaBindSurfaceToArray(block, three, format));
    CHECK(cudaBindSurfaceToArray(layers, stack));
    add<<<4, 32>>>(8);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy2DFromArray(h, 32, two, 0, 0, 32, 4, cudaMemcpyDeviceToHost));
    printf("%g %g %g %g", h[8 * 3 + 5], h[0], sum(three, 2), sum(stack, 2));
}
"""


def test_surface_references_are_read_and_written(tmp_path: Path) -> None:
    done = record(tmp_path, SURFACES)
    # 29 and the 5 of its column; 0; twice 0 + 1 + ... + 31, in the second slice and layer
    assert (done.status, done.out) == (0, "34 0 992 992"), done.err


THREE_CALLS = """
__global__ void put(char a, double b, int *to, short c)
{
    extern __shared__ int shared[];
    shared[threadIdx.x] = a + int(b) + c;
    to[blockIdx.x * blockDim.x + threadIdx.x] = shared[threadIdx.x] + gridDim.x;
}
int main()
{
    int *to, h[8];
    char a = 1;
    double b = 20;
    short c = 300;
    CHECK(cudaMalloc(&to, sizeof h));
    CHECK(cudaConfigureCall(dim3(2), dim3(4), 16, 0));
    CHECK(cudaSetupArgument(&a, sizeof a, 0));
    CHECK(cudaSetupArgument(b, 8));
    CHECK(cudaSetupArgument(&to, sizeof to, 16));
    CHECK(cudaSetupArgument(c, 24));
    CHECK(cudaLaunch(put));
    CHECK(cudaMemcpy(h, to, sizeof h, cudaMemcpyDeviceToHost));
    printf("%d %d|", h[0], h[7]);
    printf("%d %d ", cudaLaunch(put) == cudaErrorMissingConfiguration,
           cudaSetupArgument(&a, 1, 0) == cudaErrorMissingConfiguration);
    CHECK(cudaConfigureCall(dim3(1), dim3(2048)));
    printf("%d ", cudaSetupArgument(&a, 1, -1) == cudaErrorInvalidValue);
    printf("%d", cudaLaunch((const void *)put) == cudaErrorInvalidConfiguration);
}
"""


def test_a_launch_may_be_three_calls(tmp_path: Path) -> None:
    done = record(tmp_path, THREE_CALLS)
    # 1 + 20 + 300 and the two blocks of the grid
    assert (done.status, done.out) == (0, "323 323|1 1 1 1"), done.err
    (launch,) = [each.launch for each in done.trace.launches]
    assert [a.name for a in launch.arguments] == ["a", "b", "to", "c"]
    assert launch.grid[0] == 2


def test_of_a_program_with_surface_references_only_its_mistakes_are_told(tmp_path: Path) -> None:
    done = record(tmp_path, "surface<void, 2> s;\nint main() { return nothing; }\n")
    assert done.status != 0
    assert "surface" not in done.err
    assert 'identifier "nothing" is undefined' in done.err


CUTIL = r"""
#include <cutil_inline.h>
__global__ void fill(int *p) { p[threadIdx.x] = threadIdx.x; }
int main(int argc, char **argv)
{
    CUT_DEVICE_INIT(argc, argv);
    const char **words = (const char **)argv;
    int n = 0, numbers[2] = {3, 4}, *read = 0, *p;
    float f = 0, x[2] = {1, 2}, y[2] = {1, 2.5f}, *reals = 0;
    char *text = 0;
    unsigned timer, count, width, height;
    CUT_SAFE_CALL(cutCreateTimer(&timer));
    CUT_SAFE_CALL(cutStartTimer(timer));
    CUDA_SAFE_CALL(cudaMalloc((void **)&p, 128));
    fill<<<1, 32>>>(p);
    CUT_CHECK_ERROR("fill");
    CUT_SAFE_CALL(cutStopTimer(timer));
    printf("%d ", cutGetTimerValue(timer) > 0 && cutGetTimerValue(timer) < 60000);
    CUT_SAFE_CALL(cutDeleteTimer(timer));
    printf("%d|", cutStopTimer(timer));
    cutGetCmdLineArgumenti(argc, words, "n", &n);
    cutGetCmdLineArgumentf(argc, words, "f", &f);
    cutGetCmdLineArgumentstr(argc, words, "name", &text);
    printf("%d %g %s %d %d|", n, f, text, cutCheckCmdLineFlag(argc, words, "quiet"),
           cutCheckCmdLineFlag(argc, words, "nam"));
    printf("%d %d %d|", cutComparef(x, y, 2), cutComparefe(x, y, 2, .5f),
           cutCompareL2fe(x, y, 2, .2f));
    CUT_SAFE_CALL(cutWriteFilei("numbers", numbers, 2));
    CUT_SAFE_CALL(cutReadFilei("numbers", &read, &count));
    printf("%u %d ", count, read[1]);
    CUT_SAFE_CALL(cutWriteFilef("reals", y, 2, 1e-3f));
    CUT_SAFE_CALL(cutReadFilef("reals", &reals, &count));
    printf("%u %g|", count, reals[1]);
    unsigned char image[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, *with_fourth = 0;
    CUT_SAFE_CALL(cutSavePPMub("image.ppm", image, 2, 2));
    char *path = cutFindFilePath("image.ppm", argv[0]);
    CUT_SAFE_CALL(cutLoadPPM4ub(path, &with_fourth, &width, &height));
    printf("%u %u %d %d %d", width, height, with_fourth[4], with_fourth[3], with_fourth[14]);
    CUT_SAFE_CALL(cutLoadPGMub("image.ppm", &with_fourth, &width, &height));
}
"""


def test_what_cutil_had_is_there_and_its_checks_end_the_program(tmp_path: Path) -> None:
    words = ("--n=5", "-f=2.5", "-name=it", "--quiet")
    done = record(tmp_path, CUTIL, *words, options=("--nvcc-flags", "-lcutil"))
    # the norm of the difference is 0.5 / sqrt(5) = 0.224; a pixel has a fourth byte of 0
    wanted = "1 0|5 2.5 it 1 0|0 1 0|2 4 2 2.5|2 2 4 0 12"
    assert (done.status, done.out) == (1, wanted), done.err
    assert "Cut error in file" in done.err


HELPERS = """
#include <helper_functions.h>
#include <helper_cuda.h>
#include "../common/book.h"
__global__ void fill(float *p) { p[threadIdx.x] = threadIdx.x / 32.0f; }
int main(int argc, char **argv)
{
    StopWatchInterface *timer = NULL;
    sdkCreateTimer(&timer);
    sdkStartTimer(&timer);
    findCudaDevice(argc, (const char **)argv);
    int n = getCmdLineArgumentInt(argc, (const char **)argv, "n");
    float *p;
    uchar4 *colors;
    HANDLE_ERROR(cudaMallocManaged(&p, 4 * n));
    checkCudaErrors(cudaMallocManaged(&colors, 4 * n));
    fill<<<1, n>>>(p);
    getLastCudaError("fill");
    float_to_color<<<1, n>>>(colors, p);
    HANDLE_ERROR(cudaDeviceSynchronize());
    sdkStopTimer(&timer);
    printf("%d %d %d\\n", n, sdkGetTimerValue(&timer) > 0, sdkCompareL2fe(p, p, n, 1e-6f));
    printf("%d %d %d\\n", colors[16].x, colors[16].y, colors[16].z);
    checkCudaErrors(cudaMalloc(&p, (size_t)1 << 60));
}
"""


def test_helpers_of_samples_and_of_the_book_are_there(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(HELPERS)
    done = cutrace(tmp_path, "record", "app.cu", "-d", "a100", "--", "--n=32")
    # lightness 16 / 32 and hue 360 degrees: red
    assert done.out.endswith("32 1 1\n255 0 0\n"), done.err
    assert done.status == 1
    assert 'code=2(cudaErrorMemoryAllocation) "cudaMalloc(&p, (size_t)1 << 60)"' in done.err
