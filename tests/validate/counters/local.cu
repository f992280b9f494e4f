// Local memory of every width, with one index for a warp and with one for each lane; and memory that
// is read again by the same warps, by others, and after stores.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define LOCAL(NAME, T, N, STEP)                                                                    \
    extern "C" __global__ void NAME(T *out, const int *at)                                         \
    {                                                                                              \
        T a[N];                                                                                    \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                             \
        _Pragma("unroll 1") for (int k = 0; k < N; k++) a[(at[k] + STEP) & (N - 1)] = (T)k;        \
        T sum = 0;                                                                                 \
        _Pragma("unroll 1") for (int k = 0; k < N; k++) sum += a[(at[k] + 3 * (STEP)) & (N - 1)];  \
        out[i] = sum;                                                                              \
    }
// cutrace: one_u8<<<8, 128>>>(o8:u8[1024], at:i32[1024]=arange)
LOCAL(one_u8, u8, 32, k)
// cutrace: one_u16<<<8, 128>>>(o16:u16[1024], at)
LOCAL(one_u16, u16, 32, k)
// cutrace: one_u32<<<8, 128>>>(o32:u32[1024], at)
LOCAL(one_u32, u32, 32, k)
// cutrace: one_u64<<<8, 128>>>(o64:u64[1024], at)
LOCAL(one_u64, u64, 32, k)
// cutrace: each_u8<<<8, 128>>>(o8, at)
LOCAL(each_u8, u8, 32, i)
// cutrace: each_u16<<<8, 128>>>(o16, at)
LOCAL(each_u16, u16, 32, i)
// cutrace: each_u32<<<8, 128>>>(o32, at)
LOCAL(each_u32, u32, 32, i)
// cutrace: each_u64<<<8, 128>>>(o64, at)
LOCAL(each_u64, u64, 32, i)
// cutrace: pairs_u32<<<8, 128>>>(o32, at)
LOCAL(pairs_u32, u32, 32, i / 2)
// cutrace: pairs_u64<<<8, 128>>>(o64, at)
LOCAL(pairs_u64, u64, 32, i / 2)

#define WIDE(NAME, STEP)                                                                           \
    extern "C" __global__ void NAME(uint4 *out, const int *at)                                     \
    {                                                                                              \
        uint4 a[16];                                                                               \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                             \
        _Pragma("unroll 1") for (int k = 0; k < 16; k++)                                           \
            a[(at[k] + STEP) & 15] = make_uint4(k, i, k, i);                                       \
        uint4 sum = make_uint4(0, 0, 0, 0);                                                        \
        _Pragma("unroll 1") for (int k = 0; k < 16; k++)                                           \
        {                                                                                          \
            uint4 v = a[(at[k] + 3 * (STEP)) & 15];                                                \
            sum = make_uint4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);                  \
        }                                                                                          \
        out[i] = sum;                                                                              \
    }
// cutrace: one_u128<<<8, 128>>>(o128:u32[1024, 4], at)
WIDE(one_u128, k)
// cutrace: each_u128<<<8, 128>>>(o128, at)
WIDE(each_u128, i)
// cutrace: half_u64<<<8, 128>>>(o64, at)
extern "C" __global__ void half_u64(u64 *out, const int *at)
{
    u64 a[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    u64 sum = 0;
    if (i & 16)
    {
        #pragma unroll 1
        for (int k = 0; k < 32; k++) a[(at[k] + k) & 31] = k;
        #pragma unroll 1
        for (int k = 0; k < 32; k++) sum += a[(at[k] + 3 * k) & 31];
    }
    out[i] = sum;
}

#define BARRIER __syncthreads()
// cutrace: same_line<<<8, 256>>>(o32, i32:u32[262144]=arange)
extern "C" __global__ void same_line(u32 *out, const u32 *in)
{
    out[blockIdx.x * 128 + (threadIdx.x & 127)] = in[threadIdx.x & 31];
}
// cutrace: again<<<4, 256>>>(o32, i32)
extern "C" __global__ void again(u32 *out, const u32 *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 sum = 0;
    #pragma unroll 1
    for (int k = 0; k < 8; k++) { sum += *(volatile const u32 *)(in + i); BARRIER; }
    out[i] = sum;
}
// cutrace: again_plain<<<4, 256>>>(o32, i32)
extern "C" __global__ void again_plain(u32 *out, const u32 *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 sum = 0;
    #pragma unroll 1
    for (int k = 0; k < 8; k++) { sum += in[i + 0 * sum]; BARRIER; }
    out[i] = sum;
}
// cutrace: neighbours<<<4, 256>>>(o32, i32)
extern "C" __global__ void neighbours(u32 *out, const u32 *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 sum = 0;
    #pragma unroll 1
    for (int k = 0; k < 8; k++) { sum += in[i + k]; BARRIER; }
    out[i] = sum;
}
// cutrace: rows_of_others<<<4, 256>>>(o32, i32)
extern "C" __global__ void rows_of_others(u32 *out, const u32 *in)
{
    int t = threadIdx.x;
    u32 sum = 0;
    #pragma unroll 1
    for (int k = 0; k < 8; k++) { sum += in[blockIdx.x * 256 + ((t + 32 * k) & 255)]; BARRIER; }
    out[blockIdx.x * 256 + t] = sum;
}
// cutrace: store_load<<<4, 256>>>(o32, b32:u32[2048])
extern "C" __global__ void store_load(u32 *out, u32 *between)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    between[i] = i;
    BARRIER;
    out[i] = between[i ^ 33];
}
// cutrace: store_half_load<<<4, 256>>>(o32, b32)
extern "C" __global__ void store_half_load(u32 *out, u32 *between)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i & 1) between[i] = i;
    BARRIER;
    out[i] = between[i ^ 33];
}
// cutrace: load_store_load<<<4, 256>>>(o32, b32)
extern "C" __global__ void load_store_load(u32 *out, u32 *between)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 a = between[i];
    BARRIER;
    between[i ^ 32] = a + i;
    BARRIER;
    out[i] = between[i ^ 64];
}
// cutrace: store_store<<<4, 256>>>(o32, b32)
extern "C" __global__ void store_store(u32 *out, u32 *between)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    #pragma unroll 1
    for (int k = 0; k < 8; k++) { ((volatile u32 *)between)[i ^ (32 * k)] = i; BARRIER; }
    out[i] = i;
}
// cutrace: red_then_load<<<4, 256>>>(o32, b32)
extern "C" __global__ void red_then_load(u32 *out, u32 *between)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 a = between[i];
    BARRIER;
    atomicAdd(between + (i ^ 32), a + i);
    BARRIER;
    out[i] = between[i ^ 64];
}
// cutrace: stencil<<<(8, 8), (32, 8)>>>(o65536:u32[65536], i32, 256)
extern "C" __global__ void stencil(u32 *out, const u32 *in, int pitch)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    int i = (y + 1) * pitch + x;
    out[i] = in[i] + in[i + pitch] + in[i - pitch];
}
// cutrace: one_block_twice<<<1, 1024>>>(o32, i32, 32768)
// cutrace: one_block_twice<<<1, 1024>>>(o32, i32, 49152)
// cutrace: one_block_twice<<<1, 1024>>>(o32, i32, 57344)
// cutrace: one_block_twice<<<1, 1024>>>(o32, i32, 61440)
// cutrace: one_block_twice<<<1, 1024>>>(o32, i32, 65536)
// cutrace: one_block_twice<<<1, 1024>>>(o32, i32, 81920)
// cutrace: one_block_twice<<<1, 1024>>>(o32, i32, 131072)
extern "C" __global__ void one_block_twice(u32 *out, const u32 *in, int words)
{
    u32 sum = 0;
    #pragma unroll 1
    for (int round = 0; round < 2; round++)
    {
        #pragma unroll 1
        for (int k = threadIdx.x; k < words; k += 1024) { sum += in[k]; BARRIER; }
    }
    out[threadIdx.x] = sum;
}
// cutrace: lines_twice<<<1, 256>>>(o32, i32, 1024)
// cutrace: lines_twice<<<1, 256>>>(o32, i32, 1792)
// cutrace: lines_twice<<<1, 256>>>(o32, i32, 2048)
// cutrace: lines_twice<<<1, 256>>>(o32, i32, 4096)
extern "C" __global__ void lines_twice(u32 *out, const u32 *in, int lines)
{
    u32 sum = 0;
    #pragma unroll 1
    for (int round = 0; round < 2; round++)
    {
        #pragma unroll 1
        for (int k = threadIdx.x; k < lines; k += 256) { sum += in[32 * k]; BARRIER; }
    }
    out[threadIdx.x] = sum;
}
