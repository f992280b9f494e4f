// Global loads and stores of every width, stride, offset, order and mask; one access of a kind each.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x; int lane = threadIdx.x & 31; (void)lane
#define COPY(NAME, T, TO, FROM)                                                                    \
    extern "C" __global__ void NAME(T *out, const T *in) { THREAD; out[TO] = in[FROM]; }
#define COPY_IF(NAME, T, WHEN)                                                                     \
    extern "C" __global__ void NAME(T *out, const T *in) { THREAD; if (WHEN) out[i] = in[i]; }

// cutrace: copy_u8<<<8, 256>>>(o8:u8[2048], i8:u8[2048]=arange)
COPY(copy_u8, u8, i, i)
// cutrace: copy_u16<<<8, 256>>>(o16:u16[2048], i16:u16[2048]=arange)
COPY(copy_u16, u16, i, i)
// cutrace: copy_u32<<<8, 256>>>(o32:u32[65536], i32:u32[131072]=arange)
COPY(copy_u32, u32, i, i)
// cutrace: copy_u64<<<8, 256>>>(o64:u64[8192], i64:u64[8192]=arange)
COPY(copy_u64, u64, i, i)
// cutrace: load_stride_2<<<8, 256>>>(o32, i32)
COPY(load_stride_2, u32, i, 2 * i)
// cutrace: load_stride_3<<<8, 256>>>(o32, i32)
COPY(load_stride_3, u32, i, 3 * i)
// cutrace: load_stride_4<<<8, 256>>>(o32, i32)
COPY(load_stride_4, u32, i, 4 * i)
// cutrace: load_stride_8<<<8, 256>>>(o32, i32)
COPY(load_stride_8, u32, i, 8 * i)
// cutrace: load_stride_16<<<8, 256>>>(o32, i32)
COPY(load_stride_16, u32, i, 16 * i)
// cutrace: load_stride_32<<<8, 256>>>(o32, i32)
COPY(load_stride_32, u32, i, 32 * i)
// cutrace: load_stride_33<<<8, 256>>>(o32, i32)
COPY(load_stride_33, u32, i, 33 * i)
// cutrace: load_offset_1<<<8, 256>>>(o32, i32)
COPY(load_offset_1, u32, i, i + 1)
// cutrace: load_offset_7<<<8, 256>>>(o32, i32)
COPY(load_offset_7, u32, i, i + 7)
// cutrace: load_offset_8<<<8, 256>>>(o32, i32)
COPY(load_offset_8, u32, i, i + 8)
// cutrace: load_offset_17<<<8, 256>>>(o32, i32)
COPY(load_offset_17, u32, i, i + 17)
// cutrace: load_reversed<<<8, 256>>>(o32, i32)
COPY(load_reversed, u32, i, 2047 - i)
// cutrace: load_swapped<<<8, 256>>>(o32, i32)
COPY(load_swapped, u32, i, i ^ 21)
// cutrace: load_shuffled<<<8, 256>>>(o32, i32)
COPY(load_shuffled, u32, i, (i & ~31) + (lane * 7 & 31))
// cutrace: load_one_word<<<8, 256>>>(o32, i32)
COPY(load_one_word, u32, i, blockIdx.x)
// cutrace: load_pairs<<<8, 256>>>(o32, i32)
COPY(load_pairs, u32, i, i / 2)
// cutrace: load_two_ends<<<8, 256>>>(o32, i32)
COPY(load_two_ends, u32, i, i + (lane & 16) * 100)
// cutrace: load_u16_stride_3<<<8, 256>>>(p16:u16[8192], j16:u16[8192]=arange)
COPY(load_u16_stride_3, u16, i, 3 * i)
// cutrace: load_u8_offset_5<<<8, 256>>>(p8:u8[8192], j8:u8[8192]=arange)
COPY(load_u8_offset_5, u8, i, i + 5)
// cutrace: load_u64_stride_2<<<8, 256>>>(o64, i64)
COPY(load_u64_stride_2, u64, i, 2 * i)
// cutrace: load_u64_offset_1<<<8, 256>>>(o64, i64)
COPY(load_u64_offset_1, u64, i, i + 1)
// cutrace: load_u64_pairs<<<8, 256>>>(o64, i64)
COPY(load_u64_pairs, u64, i, i / 2)
// cutrace: store_stride_2<<<8, 256>>>(o32, i32)
COPY(store_stride_2, u32, 2 * i, i)
// cutrace: store_stride_5<<<8, 256>>>(o32, i32)
COPY(store_stride_5, u32, 5 * i, i)
// cutrace: store_stride_8<<<8, 256>>>(o32, i32)
COPY(store_stride_8, u32, 8 * i, i)
// cutrace: store_stride_32<<<8, 256>>>(o32, i32)
COPY(store_stride_32, u32, 32 * i, i)
// cutrace: store_offset_1<<<8, 256>>>(o32, i32)
COPY(store_offset_1, u32, i + 1, i)
// cutrace: store_reversed<<<8, 256>>>(o32, i32)
COPY(store_reversed, u32, 2047 - i, i)
// cutrace: store_one_word<<<8, 256>>>(o32, i32)
COPY(store_one_word, u32, blockIdx.x, i)
// cutrace: store_pairs<<<8, 256>>>(o32, i32)
COPY(store_pairs, u32, i / 2, i)
// cutrace: store_u8_stride_3<<<8, 256>>>(p8, j8)
COPY(store_u8_stride_3, u8, 3 * i, i)
// cutrace: store_u64_stride_2<<<8, 256>>>(o64, i64)
COPY(store_u64_stride_2, u64, 2 * i, i)
// cutrace: odd_lanes<<<8, 256>>>(o32, i32)
COPY_IF(odd_lanes, u32, i & 1)
// cutrace: first_lanes<<<8, 256>>>(o32, i32)
COPY_IF(first_lanes, u32, lane < 5)
// cutrace: one_lane<<<8, 256>>>(o32, i32)
COPY_IF(one_lane, u32, lane == 13)
// cutrace: upper_half<<<8, 256>>>(o32, i32)
COPY_IF(upper_half, u32, lane >= 16)
// cutrace: odd_lanes_u64<<<8, 256>>>(o64, i64)
COPY_IF(odd_lanes_u64, u64, i & 1)
// cutrace: odd_warps<<<8, 256>>>(o32, i32)
COPY_IF(odd_warps, u32, i >> 5 & 1)
// cutrace: short_block<<<8, 250>>>(o32, i32)
COPY(short_block, u32, i, i)

// cutrace: copy_u128<<<8, 256>>>(o128:u32[8192, 4], i128:u32[8192, 4]=arange)
extern "C" __global__ void copy_u128(uint4 *out, const uint4 *in) { THREAD; out[i] = in[i]; }
// cutrace: load_u128_stride_2<<<8, 256>>>(o128, i128)
extern "C" __global__ void load_u128_stride_2(uint4 *out, const uint4 *in) { THREAD; out[i] = in[2 * i]; }
// cutrace: load_u128_offset_1<<<8, 256>>>(o128, i128)
extern "C" __global__ void load_u128_offset_1(uint4 *out, const uint4 *in) { THREAD; out[i] = in[i + 1]; }
// cutrace: load_u128_one<<<8, 256>>>(o128, i128)
extern "C" __global__ void load_u128_one(uint4 *out, const uint4 *in) { THREAD; out[i] = in[blockIdx.x]; }
// cutrace: store_u128_stride_2<<<8, 256>>>(o128, i128)
extern "C" __global__ void store_u128_stride_2(uint4 *out, const uint4 *in) { THREAD; out[2 * i] = in[i]; }
// cutrace: odd_lanes_u128<<<8, 256>>>(o128, i128)
extern "C" __global__ void odd_lanes_u128(uint4 *out, const uint4 *in) { THREAD; if (i & 1) out[i] = in[i]; }

// cutrace: gather<<<8, 256>>>(o32, i32, index:i32[2048]=random:1)
extern "C" __global__ void gather(u32 *out, const u32 *in, const int *index) { THREAD; out[i] = in[index[i]]; }
// cutrace: scatter<<<8, 256>>>(o32, i32, index)
extern "C" __global__ void scatter(u32 *out, const u32 *in, const int *index) { THREAD; out[index[i]] = in[i]; }
// cutrace: gather_u64<<<8, 256>>>(o64, i64, index)
extern "C" __global__ void gather_u64(u64 *out, const u64 *in, const int *index) { THREAD; out[i] = in[index[i]]; }
// cutrace: column<<<(2, 4), (32, 8)>>>(o32, i32, 96)
extern "C" __global__ void column(u32 *out, const u32 *in, int pitch)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[y * 64 + x] = in[x * pitch + y];
}
// cutrace: grid_stride<<<4, 128>>>(o32, i32, 3000)
extern "C" __global__ void grid_stride(u32 *out, const u32 *in, int n)
{
    #pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        out[i] = in[i];
}
// cutrace: lane_loops<<<4, 128>>>(o32, i32)
extern "C" __global__ void lane_loops(u32 *out, const u32 *in)
{
    u32 sum = 0;
    #pragma unroll 1
    for (int k = 0; k <= (threadIdx.x & 31); k++) sum += in[k * 40 + threadIdx.x];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// cutrace: two_sides<<<8, 256>>>(o32, i32)
extern "C" __global__ void two_sides(u32 *out, const u32 *in)
{
    THREAD;
    if (i & 1) { out[i] = in[i] + 1; __threadfence_block(); out[i] = i; }
    else { out[i] = in[3 * i] + 2; }
}
// cutrace: read_only<<<8, 256>>>(o32, i32)
extern "C" __global__ void read_only(u32 *out, const u32 *in) { THREAD; out[i] = __ldg(in + 3 * i); }
// cutrace: read_only_u64<<<8, 256>>>(o64, i64)
extern "C" __global__ void read_only_u64(u64 *out, const u64 *in) { THREAD; out[i] = __ldg(in + 2 * i); }
// cutrace: restricted<<<8, 256>>>(o32, i32)
extern "C" __global__ void restricted(u32 *__restrict__ out, const u32 *__restrict__ in) { THREAD; out[i] = in[i ^ 3]; }
// cutrace: big_copy<<<1024, 256>>>(big_out:u32[1048576], big_in:u32[1048576]=arange)
extern "C" __global__ void big_copy(u32 *out, const u32 *in)
{
    #pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 1048576; i += gridDim.x * blockDim.x) out[i] = in[i];
}
// cutrace: big_stride<<<512, 256>>>(big_out, big_in)
extern "C" __global__ void big_stride(u32 *out, const u32 *in) { THREAD; out[i] = in[8 * i]; }
