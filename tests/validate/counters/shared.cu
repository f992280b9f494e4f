// Shared loads and stores of every width and stride, and local, constant and barrier cases.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define LOAD(NAME, T, N, FROM)                                                                     \
    extern "C" __global__ void NAME(T *out, int zero)                                              \
    {                                                                                              \
        __shared__ T s[N];                                                                         \
        int t = threadIdx.x;                                                                       \
        s[t] = (T)t;                                                                               \
        __syncthreads();                                                                           \
        out[blockIdx.x * blockDim.x + t] = s[FROM];                                                \
    }
#define STORE(NAME, T, N, TO)                                                                      \
    extern "C" __global__ void NAME(T *out, int zero)                                              \
    {                                                                                              \
        __shared__ T s[N];                                                                         \
        int t = threadIdx.x;                                                                       \
        s[TO] = (T)t;                                                                              \
        __syncthreads();                                                                           \
        out[blockIdx.x * blockDim.x + t] = s[t];                                                   \
    }

// cutrace: ld_stride_1<<<4, 128>>>(o:u32[4096], 0)
LOAD(ld_stride_1, u32, 4224, t + zero)
// cutrace: ld_stride_2<<<4, 128>>>(o, 0)
LOAD(ld_stride_2, u32, 4224, 2 * t + zero)
// cutrace: ld_stride_3<<<4, 128>>>(o, 0)
LOAD(ld_stride_3, u32, 4224, 3 * t + zero)
// cutrace: ld_stride_4<<<4, 128>>>(o, 0)
LOAD(ld_stride_4, u32, 4224, 4 * t + zero)
// cutrace: ld_stride_8<<<4, 128>>>(o, 0)
LOAD(ld_stride_8, u32, 4224, 8 * t + zero)
// cutrace: ld_stride_16<<<4, 128>>>(o, 0)
LOAD(ld_stride_16, u32, 4224, 16 * t + zero)
// cutrace: ld_stride_32<<<4, 128>>>(o, 0)
LOAD(ld_stride_32, u32, 4224, 32 * t + zero)
// cutrace: ld_stride_33<<<4, 128>>>(o, 0)
LOAD(ld_stride_33, u32, 4224, 33 * t + zero)
// cutrace: ld_one_word<<<4, 128>>>(o, 0)
LOAD(ld_one_word, u32, 4224, zero)
// cutrace: ld_pairs<<<4, 128>>>(o, 0)
LOAD(ld_pairs, u32, 4224, t / 2 + zero)
// cutrace: ld_halves<<<4, 128>>>(o, 0)
LOAD(ld_halves, u32, 4224, (t & 15) + zero)
// cutrace: ld_halves_conflict<<<4, 128>>>(o, 0)
LOAD(ld_halves_conflict, u32, 4224, (t & 15) * 32 + zero)
// cutrace: ld_swapped<<<4, 128>>>(o, 0)
LOAD(ld_swapped, u32, 4224, (t ^ 13) + zero)
// cutrace: ld_u8<<<4, 128>>>(o8:u8[4096], 0)
LOAD(ld_u8, u8, 4224, t + zero)
// cutrace: ld_u8_stride_4<<<4, 128>>>(o8, 0)
LOAD(ld_u8_stride_4, u8, 4224, 4 * t + zero)
// cutrace: ld_u8_stride_8<<<4, 128>>>(o8, 0)
LOAD(ld_u8_stride_8, u8, 4224, 8 * t + zero)
// cutrace: ld_u16<<<4, 128>>>(o16:u16[4096], 0)
LOAD(ld_u16, u16, 4224, t + zero)
// cutrace: ld_u16_stride_3<<<4, 128>>>(o16, 0)
LOAD(ld_u16_stride_3, u16, 4224, 3 * t + zero)
// cutrace: ld_u64<<<4, 128>>>(o64:u64[4096], 0)
LOAD(ld_u64, u64, 4224, t + zero)
// cutrace: ld_u64_stride_2<<<4, 128>>>(o64, 0)
LOAD(ld_u64_stride_2, u64, 4224, 2 * t + zero)
// cutrace: ld_u64_stride_3<<<4, 128>>>(o64, 0)
LOAD(ld_u64_stride_3, u64, 4224, 3 * t + zero)
// cutrace: ld_u64_stride_16<<<4, 128>>>(o64, 0)
LOAD(ld_u64_stride_16, u64, 4224, 16 * t + zero)
// cutrace: ld_u64_one<<<4, 128>>>(o64, 0)
LOAD(ld_u64_one, u64, 4224, zero)
// cutrace: ld_u64_pairs<<<4, 128>>>(o64, 0)
LOAD(ld_u64_pairs, u64, 4224, t / 2 + zero)
// cutrace: ld_u64_skip_pairs<<<4, 128>>>(o64, 0)
LOAD(ld_u64_skip_pairs, u64, 4224, (t & 1) + t / 4 * 2 + zero)
// cutrace: ld_u64_fours<<<4, 128>>>(o64, 0)
LOAD(ld_u64_fours, u64, 4224, t / 4 + zero)
// cutrace: ld_u64_halves<<<4, 128>>>(o64, 0)
LOAD(ld_u64_halves, u64, 4224, (t & 15) + zero)
// cutrace: ld_u64_swapped<<<4, 128>>>(o64, 0)
LOAD(ld_u64_swapped, u64, 4224, (t ^ 16) + zero)
// cutrace: ld_u64_mixed<<<4, 128>>>(o64, 0)
LOAD(ld_u64_mixed, u64, 4224, (t * 5 & 31) + zero)
// cutrace: st_stride_1<<<4, 128>>>(o, 0)
STORE(st_stride_1, u32, 4224, t + zero)
// cutrace: st_stride_2<<<4, 128>>>(o, 0)
STORE(st_stride_2, u32, 4224, 2 * t + zero)
// cutrace: st_stride_4<<<4, 128>>>(o, 0)
STORE(st_stride_4, u32, 4224, 4 * t + zero)
// cutrace: st_stride_32<<<4, 128>>>(o, 0)
STORE(st_stride_32, u32, 4224, 32 * t + zero)
// cutrace: st_one_word<<<4, 128>>>(o, 0)
STORE(st_one_word, u32, 4224, zero)
// cutrace: st_pairs<<<4, 128>>>(o, 0)
STORE(st_pairs, u32, 4224, t / 2 + zero)
// cutrace: st_u8<<<4, 128>>>(o8, 0)
STORE(st_u8, u8, 4224, t + zero)
// cutrace: st_u16_stride_2<<<4, 128>>>(o16, 0)
STORE(st_u16_stride_2, u16, 4224, 2 * t + zero)
// cutrace: st_u64<<<4, 128>>>(o64, 0)
STORE(st_u64, u64, 4224, t + zero)
// cutrace: st_u64_stride_2<<<4, 128>>>(o64, 0)
STORE(st_u64_stride_2, u64, 4224, 2 * t + zero)
// cutrace: st_u64_pairs<<<4, 128>>>(o64, 0)
STORE(st_u64_pairs, u64, 4224, t / 2 + zero)

#define WIDE_LOAD(NAME, FROM)                                                                      \
    extern "C" __global__ void NAME(uint4 *out, int zero)                                          \
    {                                                                                              \
        __shared__ uint4 s[1056];                                                                  \
        int t = threadIdx.x;                                                                       \
        s[t] = make_uint4(t, t, t, t);                                                             \
        __syncthreads();                                                                           \
        out[blockIdx.x * blockDim.x + t] = s[FROM];                                                \
    }
// cutrace: ld_u128<<<4, 128>>>(o128:u32[2048, 4], 0)
WIDE_LOAD(ld_u128, t + zero)
// cutrace: ld_u128_stride_2<<<4, 128>>>(o128, 0)
WIDE_LOAD(ld_u128_stride_2, 2 * t + zero)
// cutrace: ld_u128_stride_3<<<4, 128>>>(o128, 0)
WIDE_LOAD(ld_u128_stride_3, 3 * t + zero)
// cutrace: ld_u128_stride_8<<<4, 128>>>(o128, 0)
WIDE_LOAD(ld_u128_stride_8, 8 * t + zero)
// cutrace: ld_u128_one<<<4, 128>>>(o128, 0)
WIDE_LOAD(ld_u128_one, zero)
// cutrace: ld_u128_pairs<<<4, 128>>>(o128, 0)
WIDE_LOAD(ld_u128_pairs, t / 2 + zero)
// cutrace: ld_u128_fours<<<4, 128>>>(o128, 0)
WIDE_LOAD(ld_u128_fours, t / 4 + zero)
// cutrace: ld_u128_quarters<<<4, 128>>>(o128, 0)
WIDE_LOAD(ld_u128_quarters, (t & 7) + zero)
// cutrace: ld_u128_mixed<<<4, 128>>>(o128, 0)
WIDE_LOAD(ld_u128_mixed, (t * 5 & 31) + zero)

#define WIDE_STORE(NAME, TO)                                                                       \
    extern "C" __global__ void NAME(uint4 *out, int zero)                                          \
    {                                                                                              \
        __shared__ uint4 s[1056];                                                                  \
        int t = threadIdx.x;                                                                       \
        s[TO] = make_uint4(t, t, t, t);                                                            \
        __syncthreads();                                                                           \
        out[blockIdx.x * blockDim.x + t] = s[t];                                                   \
    }
// cutrace: st_u128<<<4, 128>>>(o128, 0)
WIDE_STORE(st_u128, t + zero)
// cutrace: st_u128_stride_2<<<4, 128>>>(o128, 0)
WIDE_STORE(st_u128_stride_2, 2 * t + zero)
// cutrace: st_u128_pairs<<<4, 128>>>(o128, 0)
WIDE_STORE(st_u128_pairs, t / 2 + zero)

#define SOME(NAME, T, WHEN)                                                                        \
    extern "C" __global__ void NAME(T *out, int zero)                                              \
    {                                                                                              \
        __shared__ T s[4224];                                                                      \
        int t = threadIdx.x, lane = t & 31;                                                        \
        s[t] = (T)t;                                                                               \
        __syncthreads();                                                                           \
        if (WHEN) out[blockIdx.x * blockDim.x + t] = s[2 * t + zero];                              \
    }
// cutrace: ld_odd_lanes<<<4, 128>>>(o, 0)
SOME(ld_odd_lanes, u32, lane & 1)
// cutrace: ld_first_lanes<<<4, 128>>>(o, 0)
SOME(ld_first_lanes, u32, lane < 9)
// cutrace: ld_u64_odd_lanes<<<4, 128>>>(o64, 0)
SOME(ld_u64_odd_lanes, u64, lane & 1)
// cutrace: ld_u64_first_lanes<<<4, 128>>>(o64, 0)
SOME(ld_u64_first_lanes, u64, lane < 9)

// cutrace: tile_column<<<4, (32, 8)>>>(o, 0)
extern "C" __global__ void tile_column(u32 *out, int zero)
{
    __shared__ u32 s[32][32];
    for (int k = threadIdx.y; k < 32; k += 8) s[k][threadIdx.x] = k;
    __syncthreads();
    out[(blockIdx.x * 8 + threadIdx.y) * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y + zero];
}
// cutrace: tile_padded<<<4, (32, 8)>>>(o, 0)
extern "C" __global__ void tile_padded(u32 *out, int zero)
{
    __shared__ u32 s[32][33];
    for (int k = threadIdx.y; k < 32; k += 8) s[k][threadIdx.x] = k;
    __syncthreads();
    out[(blockIdx.x * 8 + threadIdx.y) * 32 + threadIdx.x] = s[threadIdx.x][threadIdx.y + zero];
}
// cutrace: local_array<<<8, 128>>>(o, at:u32[1024]=random:3)
extern "C" __global__ void local_array(u32 *out, const u32 *at)
{
    u32 a[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    #pragma unroll 1
    for (int k = 0; k < 64; k++) a[(k * 7 + at[k]) & 63] = k;
    out[i] = a[at[i] & 63];
}
// cutrace: local_bytes<<<8, 128>>>(o, at)
extern "C" __global__ void local_bytes(u32 *out, const u32 *at)
{
    u8 a[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    #pragma unroll 1
    for (int k = 0; k < 64; k++) a[(k * 7 + at[k]) & 63] = k;
    out[i] = a[at[i] & 63];
}
// cutrace: local_u64<<<8, 128>>>(o, at)
extern "C" __global__ void local_u64(u32 *out, const u32 *at)
{
    u64 a[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    #pragma unroll 1
    for (int k = 0; k < 32; k++) a[(k * 7 + at[k]) & 31] = k;
    out[i] = a[at[i] & 31];
}
__constant__ u32 table[1024];
// cutrace: constant_one<<<4, 128>>>(o, 3)
extern "C" __global__ void constant_one(u32 *out, int k) { out[blockIdx.x * blockDim.x + threadIdx.x] = table[k]; }
// cutrace: constant_lanes<<<4, 128>>>(o, 3)
extern "C" __global__ void constant_lanes(u32 *out, int k) { out[blockIdx.x * blockDim.x + threadIdx.x] = table[threadIdx.x + k]; }
// cutrace: many_registers<<<4, 256>>>(of:f32[4096], inf:f32[65536]=arange)
extern "C" __global__ void __launch_bounds__(256) many_registers(float *out, const float *in)
{
    float v[48];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 48; k++) v[k] = in[i + 1024 * k];
    for (int k = 0; k < 48; k++) v[k] = v[k] * v[(k + 7) % 48] + 1.0f;
    float sum = 0;
    for (int k = 0; k < 48; k++) sum += v[k];
    out[i] = sum;
}
