// Atomics that the assembler makes loops of: a load, and a compare and swap that is tried until it
// succeeds. One warp whose lanes update random words, then warps with words of their own, warps that
// take turns, and warps that meet. 32 lanes of row `k` of `at`, below `mask`.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef unsigned short u16;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;

#define WORD (at[(k * 32 + threadIdx.x) & 8191] & mask)
#define WARP (threadIdx.x / 32)
#define KERNEL(NAME, T, CALL)                                                                      \
    extern "C" __global__ void NAME(T *out, const int *at, int k, int mask)                        \
    {                                                                                              \
        __shared__ T s[1024];                                                                      \
        for (int j = threadIdx.x; j < 1024; j += blockDim.x) s[j] = T();                           \
        __syncthreads();                                                                           \
        CALL;                                                                                      \
        __syncthreads();                                                                           \
        out[threadIdx.x] = s[threadIdx.x];                                                         \
    }
#define GLOBAL(NAME, T, CALL)                                                                      \
    extern "C" __global__ void NAME(T *p, const int *at, int k, int mask) { CALL; }

// cutrace: f32_at<<<1, 32>>>(f:f32[1024], at:i32[8192]=random:13, 0, 31)
// cutrace: f32_at<<<1, 32>>>(f, at, 1, 31)
// cutrace: f32_at<<<1, 32>>>(f, at, 2, 31)
// cutrace: f32_at<<<1, 32>>>(f, at, 3, 31)
// cutrace: f32_at<<<1, 32>>>(f, at, 4, 127)
// cutrace: f32_at<<<1, 32>>>(f, at, 5, 127)
// cutrace: f32_at<<<1, 32>>>(f, at, 6, 127)
// cutrace: f32_at<<<1, 32>>>(f, at, 7, 127)
// cutrace: f32_at<<<1, 32>>>(f, at, 8, 1023)
// cutrace: f32_at<<<1, 32>>>(f, at, 9, 1023)
// cutrace: f32_at<<<1, 32>>>(f, at, 10, 1023)
// cutrace: f32_at<<<1, 32>>>(f, at, 11, 1023)
KERNEL(f32_at, float, atomicAdd(&s[WORD], 1.5f))
// cutrace: f32_odd<<<1, 32>>>(f, at, 12, 31)
// cutrace: f32_odd<<<1, 32>>>(f, at, 13, 31)
// cutrace: f32_odd<<<1, 32>>>(f, at, 14, 127)
// cutrace: f32_odd<<<1, 32>>>(f, at, 15, 127)
KERNEL(f32_odd, float, if (threadIdx.x & 1) atomicAdd(&s[WORD], 1.5f))
// cutrace: f32_fetch<<<1, 32>>>(f, at, 16, 63)
// cutrace: f32_fetch<<<1, 32>>>(f, at, 17, 63)
// cutrace: f32_fetch<<<1, 32>>>(f, at, 18, 255)
// cutrace: f32_fetch<<<1, 32>>>(f, at, 19, 255)
KERNEL(f32_fetch, float, s[512 + threadIdx.x] = atomicAdd(&s[WORD], 1.5f))
// cutrace: f64_at<<<1, 32>>>(d:f64[1024], at, 20, 15)
// cutrace: f64_at<<<1, 32>>>(d, at, 21, 15)
// cutrace: f64_at<<<1, 32>>>(d, at, 22, 15)
// cutrace: f64_at<<<1, 32>>>(d, at, 23, 127)
// cutrace: f64_at<<<1, 32>>>(d, at, 24, 127)
// cutrace: f64_at<<<1, 32>>>(d, at, 25, 127)
// cutrace: f64_at<<<1, 32>>>(d, at, 26, 1023)
// cutrace: f64_at<<<1, 32>>>(d, at, 27, 1023)
// cutrace: f64_at<<<1, 32>>>(d, at, 28, 1023)
KERNEL(f64_at, double, atomicAdd(&s[WORD], 1.5))
// cutrace: u64_at<<<1, 32>>>(u:u64[1024], at, 29, 15)
// cutrace: u64_at<<<1, 32>>>(u, at, 30, 15)
// cutrace: u64_at<<<1, 32>>>(u, at, 31, 127)
// cutrace: u64_at<<<1, 32>>>(u, at, 32, 127)
// cutrace: u64_at<<<1, 32>>>(u, at, 33, 1023)
// cutrace: u64_at<<<1, 32>>>(u, at, 34, 1023)
KERNEL(u64_at, u64, atomicAdd(&s[WORD], 3ull))
// cutrace: i64_min<<<1, 32>>>(i:i64[1024], at, 35, 31)
// cutrace: i64_min<<<1, 32>>>(i, at, 36, 31)
// cutrace: i64_min<<<1, 32>>>(i, at, 37, 511)
// cutrace: i64_min<<<1, 32>>>(i, at, 38, 511)
KERNEL(i64_min, i64, atomicMin(&s[WORD], -(i64)threadIdx.x - 1))
// cutrace: i64_min_less<<<1, 32>>>(i, at, 39, 31)
// cutrace: i64_min_less<<<1, 32>>>(i, at, 40, 31)
// cutrace: i64_min_less<<<1, 32>>>(i, at, 41, 511)
// cutrace: i64_min_less<<<1, 32>>>(i, at, 42, 511)
KERNEL(i64_min_less, i64, atomicMin(&s[WORD], (i64)threadIdx.x - 32))
// cutrace: u64_xor<<<1, 32>>>(u, at, 43, 31)
// cutrace: u64_xor<<<1, 32>>>(u, at, 44, 511)
KERNEL(u64_xor, u64, atomicXor(&s[WORD], 1ull << threadIdx.x))
// cutrace: pairs_at<<<1, 32>>>(h2:u32[1024], at, 45, 15)
// cutrace: pairs_at<<<1, 32>>>(h2, at, 46, 15)
// cutrace: pairs_at<<<1, 32>>>(h2, at, 47, 127)
// cutrace: pairs_at<<<1, 32>>>(h2, at, 48, 127)
// cutrace: pairs_at<<<1, 32>>>(h2, at, 49, 1023)
// cutrace: pairs_at<<<1, 32>>>(h2, at, 50, 1023)
KERNEL(pairs_at, __half2, atomicAdd(&s[WORD], __half2(1.0f, 2.0f)))
// cutrace: half_at<<<1, 32>>>(h:u16[65536], at, 51, 15)
// cutrace: half_at<<<1, 32>>>(h, at, 52, 15)
// cutrace: half_at<<<1, 32>>>(h, at, 53, 127)
// cutrace: half_at<<<1, 32>>>(h, at, 54, 127)
// cutrace: half_at<<<1, 32>>>(h, at, 55, 1023)
// cutrace: half_at<<<1, 32>>>(h, at, 56, 1023)
KERNEL(half_at, __half, atomicAdd(&s[WORD], __half(1.0f)))
// cutrace: brain_at<<<1, 32>>>(h, at, 57, 31)
// cutrace: brain_at<<<1, 32>>>(h, at, 58, 255)
KERNEL(brain_at, __nv_bfloat16, atomicAdd(&s[WORD], __nv_bfloat16(1.0f)))

#define HALF_SHARED(p) asm volatile("red.shared.add.noftz.f16 [%0], %1;" ::"r"((u32)__cvta_generic_to_shared(p)), "h"((u16)0x3c00) : "memory")
#define HALF_GLOBAL(p) asm volatile("red.global.add.noftz.f16 [%0], %1;" ::"l"(p), "h"((u16)0x3c00) : "memory")
// cutrace: half_shared<<<1, 32>>>(h, at, 59, 31)
// cutrace: half_shared<<<1, 32>>>(h, at, 60, 255)
KERNEL(half_shared, __half, HALF_SHARED(&s[WORD]))
// cutrace: half_global<<<1, 32>>>(h, at, 61, 15)
// cutrace: half_global<<<1, 32>>>(h, at, 62, 15)
// cutrace: half_global<<<1, 32>>>(h, at, 63, 127)
// cutrace: half_global<<<1, 32>>>(h, at, 64, 127)
// cutrace: half_global<<<1, 32>>>(h, at, 65, 8191)
// cutrace: half_global<<<1, 32>>>(h, at, 66, 8191)
GLOBAL(half_global, __half, atomicAdd(p + (WORD), __half(1.0f)))
// cutrace: brain_global<<<1, 32>>>(h, at, 67, 31)
// cutrace: brain_global<<<1, 32>>>(h, at, 68, 1023)
GLOBAL(brain_global, __nv_bfloat16, atomicAdd(p + (WORD), __nv_bfloat16(1.0f)))
// cutrace: half_named<<<1, 32>>>(h, at, 69, 31)
// cutrace: half_named<<<1, 32>>>(h, at, 70, 31)
// cutrace: half_named<<<1, 32>>>(h, at, 71, 1023)
// cutrace: half_named<<<1, 32>>>(h, at, 72, 1023)
GLOBAL(half_named, __half, HALF_GLOBAL(p + (WORD)))

// Warps with 128 words of their own.
// cutrace: f32_own<<<2, 256>>>(f, at, 73, 31)
// cutrace: f32_own<<<2, 256>>>(f, at, 74, 31)
// cutrace: f32_own<<<2, 256>>>(f, at, 75, 127)
// cutrace: f32_own<<<2, 256>>>(f, at, 76, 127)
KERNEL(f32_own, float, atomicAdd(&s[128 * WARP + (WORD)], 1.5f))
// cutrace: f64_own<<<2, 256>>>(d, at, 77, 31)
// cutrace: f64_own<<<2, 256>>>(d, at, 78, 31)
// cutrace: f64_own<<<2, 256>>>(d, at, 79, 127)
// cutrace: f64_own<<<2, 256>>>(d, at, 80, 127)
KERNEL(f64_own, double, atomicAdd(&s[128 * WARP + (WORD)], 1.5))
// cutrace: half_own<<<2, 256>>>(h, at, 81, 31)
// cutrace: half_own<<<2, 256>>>(h, at, 82, 127)
GLOBAL(half_own, __half, atomicAdd(p + 128 * WARP + 1024 * blockIdx.x + (WORD), __half(1.0f)))

// Warps on the same words, one behind another.
// cutrace: f32_turns<<<1, 128>>>(f, at, 83, 31)
// cutrace: f32_turns<<<1, 128>>>(f, at, 84, 127)
KERNEL(f32_turns, float, for (int w = 0; w < 4; w++) { if (WARP == w) atomicAdd(&s[WORD], 1.5f); __syncthreads(); })

// Warps on the same words at once.
// cutrace: f32_meet<<<1, 128>>>(f, at, 85, 31)
// cutrace: f32_meet<<<1, 128>>>(f, at, 86, 31)
// cutrace: f32_meet<<<1, 128>>>(f, at, 87, 127)
// cutrace: f32_meet<<<1, 128>>>(f, at, 88, 127)
// cutrace: f32_meet<<<1, 128>>>(f, at, 89, 1023)
// cutrace: f32_meet<<<1, 128>>>(f, at, 90, 1023)
KERNEL(f32_meet, float, atomicAdd(&s[WORD], 1.5f))
// cutrace: f64_meet<<<1, 128>>>(d, at, 91, 31)
// cutrace: f64_meet<<<1, 128>>>(d, at, 92, 127)
// cutrace: f64_meet<<<1, 128>>>(d, at, 93, 1023)
KERNEL(f64_meet, double, atomicAdd(&s[WORD], 1.5))

// Three lanes in one sector, the others in sectors of their own: bit n of `words` is the word of the
// n-th of them.
// cutrace: red_three<<<1, 32>>>(p:u32[65536], 0, 1, 2, 0, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 1, 2, 1, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 1, 2, 2, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 1, 2, 4, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 15, 31, 0, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 15, 31, 1, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 15, 31, 2, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 15, 31, 4, 8)
// cutrace: red_three<<<1, 32>>>(p, 5, 6, 20, 0, 8)
// cutrace: red_three<<<1, 32>>>(p, 5, 6, 20, 1, 8)
// cutrace: red_three<<<1, 32>>>(p, 5, 6, 20, 2, 8)
// cutrace: red_three<<<1, 32>>>(p, 5, 6, 20, 4, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 16, 17, 0, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 16, 17, 1, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 16, 17, 2, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 16, 17, 4, 8)
// cutrace: red_three<<<1, 32>>>(p, 0, 1, 2, 0, 32)
// cutrace: red_three<<<1, 32>>>(p, 0, 1, 2, 1, 32)
// cutrace: red_three<<<1, 32>>>(p, 0, 1, 2, 2, 32)
// cutrace: red_three<<<1, 32>>>(p, 0, 1, 2, 4, 32)
// cutrace: red_three<<<1, 32>>>(p, 0, 15, 31, 0, 32)
// cutrace: red_three<<<1, 32>>>(p, 0, 15, 31, 1, 32)
// cutrace: red_three<<<1, 32>>>(p, 0, 15, 31, 2, 32)
// cutrace: red_three<<<1, 32>>>(p, 0, 15, 31, 4, 32)
// cutrace: red_three<<<1, 32>>>(p, 5, 6, 20, 0, 32)
// cutrace: red_three<<<1, 32>>>(p, 5, 6, 20, 1, 32)
// cutrace: red_three<<<1, 32>>>(p, 5, 6, 20, 2, 32)
// cutrace: red_three<<<1, 32>>>(p, 5, 6, 20, 4, 32)
// cutrace: red_three<<<1, 32>>>(p, 0, 16, 17, 0, 32)
// cutrace: red_three<<<1, 32>>>(p, 0, 16, 17, 1, 32)
// cutrace: red_three<<<1, 32>>>(p, 0, 16, 17, 2, 32)
// cutrace: red_three<<<1, 32>>>(p, 0, 16, 17, 4, 32)
extern "C" __global__ void red_three(u32 *p, int i, int j, int k, int words, int stride)
{
    int t = threadIdx.x, n = t == i ? 0 : t == j ? 1 : t == k ? 2 : -1;
    atomicAdd(p + (n < 0 ? t : i) * stride + (n < 0 ? 0 : words >> n & 1), t + 2);
}
