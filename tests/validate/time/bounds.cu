// Kernels whose machine code has fewer instructions than their PTX; the least time of each launch.
// nvcc -arch=sm_90 -o bounds bounds.cu && ./bounds gives `ns` of h200_bounds.csv, and
// ncu --csv --page raw --kernel-id '::regex:.*:1' --metrics smsp__inst_executed.sum,
// sm__inst_executed_pipe_{fma,fp64,alu,xu}.sum ./bounds its counts.
#include <cstdio>
#define ROUNDS 256
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)
// cutrace: mix<<<1056, 256>>>(out:i32[270336], 1, 2, 3)
__global__ void mix(int *out, int a, int b, int c)
{
    int t = INDEX, x = t, y = t * 3, z = t ^ 5;
#pragma unroll 8
    for (int j = 0; j < ROUNDS; ++j) {
        x = x ^ y ^ a;
        y = (y & z) ^ x;
        z = z + x + b;
        x = (x | c) ^ z;
    }
    out[t] = x + y + z;
}
// cutrace: logic<<<1056, 256>>>(out, 252645135, 2, 3)
__global__ void logic(int *out, int a, int b, int c)
{
    int t = INDEX, x = t, y = t * 3;
#pragma unroll 4
    for (int j = 0; j < ROUNDS; ++j) {
        x = (x & a) | (y & ~a);
        y = (y ^ x) & b;
        x = ~(x | c);
    }
    out[t] = x + y;
}
// cutrace: sums<<<1056, 256>>>(out, 1, 2, 3)
__global__ void sums(int *out, int a, int b, int c)
{
    int t = INDEX, x = t, y = t * 3;
    for (int j = 0; j < ROUNDS; ++j) {
        x = x + y + a;
        y = y - x + b;
        x = x + y + c;
    }
    out[t] = x + y;
}
// cutrace: pairs<<<1056, 256>>>(real:f32[270336], 0.5, 0.25)
__global__ void pairs(float *out, float a, float b)
{
    int t = INDEX;
    float x = t, y = 1;
#pragma unroll 4
    for (int j = 0; j < ROUNDS; ++j) {
        float p, q;
        asm volatile("mul.f32 %0, %2, %3; add.f32 %1, %0, %4;" : "=&f"(p), "=f"(x) : "f"(x), "f"(a), "f"(b));
        asm volatile("mul.f32 %0, %2, %3; sub.f32 %1, %0, %4;" : "=&f"(q), "=f"(y) : "f"(y), "f"(b), "f"(a));
    }
    out[t] = x + y;
}
// cutrace: double_pairs<<<1056, 256>>>(wide:f64[270336], 0.5, 0.25)
__global__ void double_pairs(double *out, double a, double b)
{
    int t = INDEX;
    double x = t, y = 1;
    for (int j = 0; j < ROUNDS / 4; ++j) {
        double p, q;
        asm volatile("mul.f64 %0, %2, %3; add.f64 %1, %0, %4;" : "=&d"(p), "=d"(x) : "d"(x), "d"(a), "d"(b));
        asm volatile("{.reg .f64 n; neg.f64 n, %2; mul.f64 %0, n, %3; add.f64 %1, %0, %4;}" : "=&d"(q), "=d"(y) : "d"(y), "d"(b), "d"(a));
    }
    out[t] = x + y;
}
// cutrace: signs<<<1056, 256>>>(real, 0.5, 0.25)
__global__ void signs(float *out, float a, float b)
{
    int t = INDEX;
    float x = t, y = 1;
#pragma unroll 4
    for (int j = 0; j < ROUNDS; ++j) {
        x = -fabsf(x) + a;
        y = fabsf(y) * -x;
        x = x - fabsf(y) * b;
    }
    out[t] = x + y;
}
// cutrace: halves<<<1056, 256>>>(out, 3, 5)
__global__ void halves(int *out, int a, int b)
{
    int t = INDEX, x = t, y = t * 3;
    for (int j = 0; j < ROUNDS; ++j) {
        int p;
        asm volatile("mul.lo.s32 %0, %2, %3; add.s32 %1, %0, %4;" : "=&r"(p), "=r"(x) : "r"(x), "r"(a), "r"(y));
        asm volatile("shl.b32 %0, %2, 3; add.s32 %1, %0, %3;" : "=&r"(p), "=r"(y) : "r"(y), "r"(x));
    }
    out[t] = x + y;
}
// cutrace: still<<<1056, 256>>>(out, 3, 5, 256)
__global__ void still(int *out, int a, int b, int rounds)
{
    int t = INDEX, x = t;
    for (int j = 0; j < rounds; ++j) {
        int p, q;
        asm("mul.lo.s32 %0, %1, %1;" : "=r"(p) : "r"(a + t));
        asm("shf.l.wrap.b32 %0, %1, %2, 7;" : "=r"(q) : "r"(p), "r"(b));
        x += q ^ j;
    }
    out[t] = x;
}
// cutrace: lanes<<<1056, 256>>>(out, 3, 5)
__global__ void lanes(int *out, int a, int b)
{
    int t = INDEX, x = t;
    for (int j = 0; j < ROUNDS; ++j) {
        if (x & 1) x = x * 3 + a; else x = (x >> 1) ^ b;
        if (t & 4) x += a; else x ^= a;
    }
    out[t] = x;
}
#define BLOCKS 1056
#define TIME(name, ...) do { float least = 1e9f; for (int i = 0; i < 20; ++i) { \
    cudaEventRecord(from); name<<<BLOCKS, 256>>>(__VA_ARGS__); cudaEventRecord(to); cudaEventSynchronize(to); \
    float ms; cudaEventElapsedTime(&ms, from, to); if (ms < least) least = ms; } \
    printf("%s,%.0f\n", #name, least * 1e6f); } while (0)
int main()
{
    cudaEvent_t from, to;
    cudaEventCreate(&from); cudaEventCreate(&to);
    void *d;
    cudaMalloc(&d, BLOCKS * 256 * 8);
    printf("kernel,ns\n");
    TIME(mix, (int *)d, 1, 2, 3);
    TIME(logic, (int *)d, 0x0f0f0f0f, 2, 3);
    TIME(sums, (int *)d, 1, 2, 3);
    TIME(pairs, (float *)d, 0.5f, 0.25f);
    TIME(double_pairs, (double *)d, 0.5, 0.25);
    TIME(signs, (float *)d, 0.5f, 0.25f);
    TIME(halves, (int *)d, 3, 5);
    TIME(still, (int *)d, 3, 5, ROUNDS);
    TIME(lanes, (int *)d, 3, 5);
    return cudaGetLastError() != cudaSuccess;
}
