// The kernels of contention.py: what many warps ask of one unit at a time.
#define COMMA ,
typedef unsigned u32;
typedef unsigned long long u64;

#define NEXT(x) x = x * 1664525u + 1013904223u
// Words of 4 bytes that a lane wants in turn: any of `bins` (a power of two), one of `bins` that its
// warp agrees on, or its own of a line that its warp agrees on.
#define WHERE(way) (way == 0 ? (x >> 8) & (bins - 1) : way == 1 ? (w >> 8) & (bins - 1) \
    : ((w >> 8) & (bins - 1)) * 32 + lane)
#define ATOMIC(name, type, act) \
extern "C" __global__ void name(type *data, u32 bins, int n, int way, int lanes) \
{ \
    u32 lane = threadIdx.x & 31, i = blockIdx.x * blockDim.x + threadIdx.x; \
    u32 x = i * 2654435761u, w = (i >> 5) * 2654435761u; \
    if (lane >= lanes) return; \
    type got = 0; \
    for (int k = 0; k < n; k++) { NEXT(x); NEXT(w); type *at = data + WHERE(way); act; } \
    if (got == (type)-12345) data[0] = 1; \
}
ATOMIC(red_u32, u32, atomicAdd(at, 1u))
ATOMIC(red_f32, float, atomicAdd(at, 1.0f))
ATOMIC(red_f64, double, atomicAdd(at, 1.0))
ATOMIC(red_u64, u64, atomicAdd(at, 1ull))
ATOMIC(max_u32, u32, atomicMax(at, x))
ATOMIC(atom_u32, u32, got += atomicAdd(at, 1u))
ATOMIC(cas_u32, u32, got += atomicCAS(at, x, w))

#define SHARED(name, type, act) \
extern "C" __global__ void name(long long *cycles, u32 bins, int n, int way, int lanes) \
{ \
    __shared__ type data[4096]; \
    u32 lane = threadIdx.x & 31, x = threadIdx.x * 2654435761u, w = (threadIdx.x >> 5) * 2654435761u; \
    for (int k = threadIdx.x; k < 4096; k += blockDim.x) data[k] = 0; \
    __syncthreads(); \
    type got = 0; \
    long long begin = clock64(); \
    if (lane < lanes) \
        for (int k = 0; k < n; k++) { NEXT(x); NEXT(w); type *at = data + (WHERE(way) & 4095); act; } \
    __syncthreads(); \
    long long end = clock64(); \
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin + (got == (type)-12345); \
}
SHARED(shared_add_u32, u32, atomicAdd(at, 1u))
SHARED(shared_add_f32, float, atomicAdd(at, 1.0f))
SHARED(shared_max_u32, u32, atomicMax(at, x))
SHARED(shared_got_u32, u32, got += atomicAdd(at, 1u))
SHARED(shared_cas_u32, u32, got += atomicCAS(at, x, w))

// Loads that L1 has, lanes `stride` words apart; 8 at hand, elsewhere each round.
#define LOADS(name, type, ptx, out) \
extern "C" __global__ void name(const char *data, long long *cycles, int stride, int n, u32 mask) \
{ \
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, base = lane * stride * 4 + warp * 512; \
    float s = 0; \
    for (int warm = 0; warm < 2; warm++) { \
        __syncthreads(); \
        long long begin = clock64(); \
        _Pragma("unroll 1") \
        for (int i = 0; i < n; i++) { \
            float v[8][4]; \
            _Pragma("unroll") \
            for (int k = 0; k < 8; k++) \
                asm volatile(ptx : out : "l"(data + ((base + k * 128 + i * 256) & mask))); \
            _Pragma("unroll") \
            for (int k = 0; k < 8; k++) s += v[k][0]; \
        } \
        __syncthreads(); \
        long long end = clock64(); \
        if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin; \
    } \
    if (s == 12345) cycles[0] = 0; \
}
LOADS(load_4, float, "ld.global.ca.f32 %0, [%1];", "=f"(v[k][0]))
LOADS(load_8, float2, "ld.global.ca.v2.f32 {%0, %1}, [%2];", "=f"(v[k][0]) COMMA "=f"(v[k][1]))
LOADS(load_16, float4, "ld.global.ca.v4.f32 {%0, %1, %2, %3}, [%4];",
    "=f"(v[k][0]) COMMA "=f"(v[k][1]) COMMA "=f"(v[k][2]) COMMA "=f"(v[k][3]))

// Texels: what 1024 threads of an SM fetch, lanes `stride` texels apart; 4 at hand.
extern "C" __global__ void fetch_line(cudaTextureObject_t t, long long *cycles, int stride, int n, int mask)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float s = 0;
    for (int warm = 0; warm < 2; warm++) {
        __syncthreads();
        long long begin = clock64();
        #pragma unroll 1
        for (int i = 0; i < n; i++) {
            float v[4];
            #pragma unroll
            for (int k = 0; k < 4; k++) v[k] = tex1Dfetch<float>(t, (lane * stride + warp * 32 + k * 64 + i) & mask);
            for (int k = 0; k < 4; k++) s += v[k];
        }
        __syncthreads();
        long long end = clock64();
        if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin;
    }
    if (s == 12345) cycles[0] = 0;
}
extern "C" __global__ void fetch_plane(cudaTextureObject_t t, long long *cycles, int stride, int n, int mask)
{
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    float s = 0;
    for (int warm = 0; warm < 2; warm++) {
        __syncthreads();
        long long begin = clock64();
        #pragma unroll 1
        for (int i = 0; i < n; i++) {
            float v[4];
            #pragma unroll
            for (int k = 0; k < 4; k++)
                v[k] = tex2D<float>(t, ((lane % 8) * stride + i + k * 4 & mask) + 0.5f, (lane / 8 + warp & mask) + 0.5f);
            for (int k = 0; k < 4; k++) s += v[k];
        }
        __syncthreads();
        long long end = clock64();
        if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin;
    }
    if (s == 12345) cycles[0] = 0;
}
extern "C" __global__ void fetch_chain(cudaTextureObject_t t, long long *cycles, int n)
{
    int at = 0;
    for (int warm = 0; warm < 2; warm++) {
        long long begin = clock64();
        for (int i = 0; i < n; i++) at = __float_as_int(tex1Dfetch<float>(t, at & 255)) & 255;
        long long end = clock64();
        cycles[0] = end - begin + (at == 7777);
    }
}
// Sectors of a footprint, in any order: each lane its own, or a line of the warp's.
extern "C" __global__ void gather(const float *data, u32 sectors, int n, int whole)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x, lane = i & 31, x = i * 2654435761u, w = (i >> 5) * 2654435761u;
    float s = 0;
    for (int k = 0; k < n; k += 4) {
        float v[4];
        #pragma unroll
        for (int j = 0; j < 4; j++) {
            NEXT(x); NEXT(w);
            u64 at = whole ? (u64)((w >> 4) & (sectors / 4 - 1)) * 32 + lane : (u64)((x >> 4) & (sectors - 1)) * 8;
            asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(v[j]) : "l"(data + at));
        }
        for (int j = 0; j < 4; j++) s += v[j];
    }
    if (s == 12345) ((float *)data)[0] = 1;
}
// Stores of a word to sectors of a footprint in any order; or lines; or rows of which neighbours
// write the other words (a transpose's).
extern "C" __global__ void scatter(float *data, u32 sectors, int n, int way)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x, lane = i & 31, x = i * 2654435761u, w = (i >> 5) * 2654435761u;
    for (int k = 0; k < n; k++) {
        NEXT(x); NEXT(w);
        u64 at = way == 0 ? (u64)((x >> 4) & (sectors - 1)) * 8 : way == 1 ? (u64)((w >> 4) & (sectors / 4 - 1)) * 32 + lane
            : (((u64)(i >> 5) * 32 + lane) * 8 & (sectors * 8ull - 1)) + (k & 7);
        data[at] = k;
    }
}
// A word that is loaded, changed and stored again and again: the first waits for the last.
extern "C" __global__ void store_load(volatile float *data, long long *cycles, int n)
{
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = 0;
    __syncthreads();
    long long begin = clock64();
    for (int k = 0; k < n; k++) data[i] = data[i] + 1.0f;
    __syncthreads();
    long long end = clock64();
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin;
}
extern "C" __global__ void store_load_shared(long long *cycles, int n)
{
    __shared__ volatile float data[1024];
    data[threadIdx.x] = 0;
    long long begin = clock64();
    for (int k = 0; k < n; k++) data[threadIdx.x] = data[threadIdx.x] + 1.0f;
    long long end = clock64();
    if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin + (data[0] == 7);
}
// Constants at `addresses` places, elsewhere each round.
__constant__ int table[8192];
extern "C" __global__ void constants(long long *cycles, int *sink, int addresses, int n)
{
    int at = (threadIdx.x % addresses) * 3, sum = 0;
    for (int warm = 0; warm < 2; warm++) {
        __syncthreads();
        long long begin = clock64();
        #pragma unroll 1
        for (int i = 0; i < n; i++) {
            #pragma unroll
            for (int k = 0; k < 8; k++) sum += table[(at + k * 32 + i * 5) & 511];
        }
        __syncthreads();
        long long end = clock64();
        if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin;
    }
    sink[threadIdx.x] = sum;
}
// Code that runs for the first time, and again: `COUNT` instructions in a row.
#ifdef COUNT
#define F4 asm volatile("fma.rn.f32 %0, %0, %4, %5; fma.rn.f32 %1, %1, %4, %5; fma.rn.f32 %2, %2, %4, %5; " \
    "fma.rn.f32 %3, %3, %4, %5;" : "+f"(a), "+f"(b), "+f"(c), "+f"(d) : "f"(p), "f"(q));
#define F16 F4 F4 F4 F4
#define F64 F16 F16 F16 F16
#define F256 F64 F64 F64 F64
#define F1024 F256 F256 F256 F256
#define F4096 F1024 F1024 F1024 F1024
#define F16384 F4096 F4096 F4096 F4096
extern "C" __global__ void code(long long *cycles, float *out, float p, float q)
{
    float a = 1, b = 2, c = 3, d = 4;
    #pragma unroll 1
    for (int k = 0; k < 4; k++) {
        long long begin = clock64();
        COUNT
        long long end = clock64();
        if (threadIdx.x == 0) cycles[blockIdx.x * 4 + k] = end - begin;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}
#endif

// Lanes of some warps of each block add to one word by compare and swap, until each has done so.
extern "C" __global__ void tried_again(int *at, u64 *tries, int lanes, int warps)
{
    if ((threadIdx.x & 31) >= lanes || threadIdx.x >> 5 >= warps) return;
    int old = *at, seen;
    u64 n = 0;
    do { seen = old; n++; old = atomicCAS(at, seen, seen + 3); } while (old != seen);
    if (tries) atomicAdd(tries, n);
}
