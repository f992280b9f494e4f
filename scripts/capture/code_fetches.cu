// Straight code of known sizes, for a profiler to count what its fetch reads from L2 and DRAM. Each line of the
// standard output is a launch, in order: name, instructions of the body, blocks, threads, parameter.
//
//   nvcc -std=c++17 -arch=sm_90 -o code_fetches code_fetches.cu
//   ncu --metrics dram__bytes_read.sum,... ./code_fetches

#include <cstdio>
#include <cstdlib>

// An instruction of 16 bytes, which nothing merges with its neighbours.
#define ONE asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(a))

template <int N>
__global__ void straight(float *out, float a) {
    float x = a;
#pragma unroll
    for (int i = 0; i < N; ++i) ONE;
    if (x == 1234.5f) *out = x;
}

// The first quarter alone runs if `stop`, the last alone if `skip`, every other KB if `holes`.
template <int N>
__global__ void partial(float *out, float a, int stop, int skip, int holes) {
    float x = a;
    if (!skip) {
#pragma unroll
        for (int i = 0; i < N / 4; ++i) ONE;
        if (stop) return;
#pragma unroll
        for (int k = 0; k < N / 2 / 64; ++k)
            if (!(holes && k % 2)) {
#pragma unroll
                for (int i = 0; i < 64; ++i) ONE;
            }
    }
#pragma unroll
    for (int i = 0; i < N / 4; ++i) ONE;
    if (x == 1234.5f) *out = x;
}

template <int N>
__global__ void repeated(float *out, float a, int times) {
    float x = a;
    for (int t = 0; t < times; ++t) {
#pragma unroll
        for (int i = 0; i < N; ++i) ONE;
    }
    if (x == 1234.5f) *out = x;
}

template <int BYTES>
struct Words {
    int words[BYTES / 4];
};

template <int BYTES>
__global__ void parameters(Words<BYTES> values, int *out, int step) {
    int sum = 0;
    for (int i = 0; i < BYTES / 4; i += step) sum += values.words[i];
    if (sum == 12345) *out = sum;
}

__constant__ int table[8192];

__global__ void constants(int *out, int bytes) {
    int sum = 0;
    for (int i = 0; i < bytes / 4; ++i) sum += table[i];
    if (sum == 12345) *out = sum;
}

static float *out;

static void said(const char *name, int body, int blocks, int threads, int parameter) {
    printf("%s,%d,%d,%d,%d\n", name, body, blocks, threads, parameter);
    cudaError_t failure = cudaDeviceSynchronize();
    if (failure) printf("%s\n", cudaGetErrorString(failure)), exit(1);
}

template <int N>
static void straight_sizes() {
    for (int blocks : {1, 2, 4, 8, 16, 33, 66, 132, 264})
        straight<N><<<blocks, 32>>>(out, 1.f), said("straight", N, blocks, 32, 0);
    straight<N><<<132, 256>>>(out, 1.f), said("straight", N, 132, 256, 0);
}

template <int N>
static void parts() {
    for (int blocks : {1, 132}) {
        partial<N><<<blocks, 32>>>(out, 1.f, 0, 0, 0), said("partial", N, blocks, 32, 0);
        partial<N><<<blocks, 32>>>(out, 1.f, 1, 0, 0), said("partial", N, blocks, 32, 1);
        partial<N><<<blocks, 32>>>(out, 1.f, 0, 1, 0), said("partial", N, blocks, 32, 2);
        partial<N><<<blocks, 32>>>(out, 1.f, 0, 0, 1), said("partial", N, blocks, 32, 3);
        for (int times : {1, 2, 4})
            repeated<N><<<blocks, 32>>>(out, 1.f, times), said("repeated", N, blocks, 32, times);
    }
}

template <int BYTES>
static void parameter_sizes() {
    Words<BYTES> values{};
    for (int blocks : {1, 132}) {
        parameters<<<blocks, 32>>>(values, (int *)out, 1), said("parameters", BYTES, blocks, 32, 1);
        parameters<<<blocks, 32>>>(values, (int *)out, BYTES), said("parameters", BYTES, blocks, 32, BYTES);
    }
}

int main() {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    cudaMalloc(&out, 4096);
    straight_sizes<0>(), straight_sizes<32>(), straight_sizes<64>(), straight_sizes<128>(), straight_sizes<256>();
    straight_sizes<512>(), straight_sizes<1024>(), straight_sizes<2048>(), straight_sizes<4096>();
    straight_sizes<8192>(), straight_sizes<12288>();
    parts<512>(), parts<2048>(), parts<8192>();
    parameter_sizes<64>(), parameter_sizes<512>(), parameter_sizes<2048>(), parameter_sizes<4000>();
    for (int bytes : {4, 64, 256, 1024, 4096, 16384, 32768})
        for (int blocks : {1, 132}) constants<<<blocks, 32>>>((int *)out, bytes), said("constants", bytes, blocks, 32, 0);
}
