// CUDA C for g++, one thread after another: the second opinion on random kernels.
//
// Every thread of a block is a fiber. It runs until it meets a barrier or a warp-wide operation,
// then the next one runs; a barrier opens when all wait for it, a shuffle or vote when all lanes of
// its mask wait with the same mask. The blocks of a cluster run together: the variables of shared
// memory are those of the block whose thread runs, and those of the others are kept in copies.
// Nothing here knows of PTX or of cutrace. Two orders of threads
// must give the same results, otherwise the kernel has a race and says nothing about anybody.
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__ static
#define __constant__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __shared__ static __attribute__((section("shared_memory")))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))

typedef unsigned long long u64_t;

struct dim3 { unsigned x, y, z; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

struct int2 { int x, y; } __attribute__((aligned(8)));
struct int4 { int x, y, z, w; } __attribute__((aligned(16)));
struct uint2 { unsigned x, y; } __attribute__((aligned(8)));
struct uint4 { unsigned x, y, z, w; } __attribute__((aligned(16)));
struct float2 { float x, y; } __attribute__((aligned(8)));
struct float4 { float x, y, z, w; } __attribute__((aligned(16)));
struct double2 { double x, y; } __attribute__((aligned(16)));
struct short2 { short x, y; } __attribute__((aligned(4)));
struct uchar4 { unsigned char x, y, z, w; } __attribute__((aligned(4)));
static int2 make_int2(int x, int y) { return {x, y}; }
static int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
static uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static float2 make_float2(float x, float y) { return {x, y}; }
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static double2 make_double2(double x, double y) { return {x, y}; }
static short2 make_short2(short x, short y) { return {x, y}; }
typedef unsigned char uchar;
static uchar4 make_uchar4(uchar x, uchar y, uchar z, uchar w) { return {x, y, z, w}; }

// ---- fibers -------------------------------------------------------------------------------------

enum State { READY, BARRIER, CLUSTER, GROUP, AT_GATE, COLLECT, DONE };
typedef std::vector<std::function<void()>> Copies;

struct Fiber {
    ucontext_t context;
    State state;
    unsigned mask; // of lanes; of a group its number, of a gate the parity
    u64_t given, got[32];
    char *gate;
    Copies open_copies;
    std::deque<Copies> groups;
};

// An mbarrier.
struct Gate { u64_t count : 14, pending : 14, phase : 16; long long bytes : 20; };
static_assert(sizeof(Gate) == 8, "a gate is 64 bits");

static const int MOST_THREADS = 2048, MOST_BLOCKS = 16, STACK = 1 << 16;
static Fiber *fibers;
static char *stacks;
static ucontext_t scheduler;
static int current, thread_count, block_count, live_block; // blocks of a cluster
static bool is_late;                                       // copies happen when they are waited for
static unsigned arrived[MOST_BLOCKS][16];                  // at the barriers of groups of warps
static char *shared_of[MOST_BLOCKS];
static dim3 cluster_place[MOST_BLOCKS];
static std::function<void()> body;

extern "C" char __start_shared_memory[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_shared_memory[] __attribute__((weak, visibility("hidden")));

static size_t shared_size() { return __start_shared_memory ? __stop_shared_memory - __start_shared_memory : 0; }
static int current_block() { return current / thread_count; }
static void give_up_turn() { swapcontext(&fibers[current].context, &scheduler); }

// Where a pointer into shared memory leads in that of a block.
static char *seen_in(unsigned block, char *p)
{
    char *base = block == (unsigned)live_block ? __start_shared_memory : shared_of[block];
    return base + (p - __start_shared_memory);
}

static void make_live(int block)
{
    if (block == live_block || !shared_size())
        return;
    memcpy(shared_of[live_block], __start_shared_memory, shared_size());
    memcpy(__start_shared_memory, shared_of[block], shared_size());
    live_block = block;
}

static void fiber_main()
{
    body();
    fibers[current].state = DONE;
    give_up_turn();
}

static void wait_at_barrier(State kind = BARRIER)
{
    fibers[current].state = kind;
    give_up_turn();
}

static const u64_t *collect(unsigned mask, u64_t given)
{
    Fiber &me = fibers[current];
    me.state = COLLECT, me.mask = mask, me.given = given;
    give_up_turn();
    return me.got;
}

// A barrier of the threads from one on.
static bool open_barrier(int first, int count, State kind)
{
    for (int t = first; t < first + count; t++)
        if (fibers[t].state != kind)
            return false;
    for (int t = first; t < first + count; t++)
        fibers[t].state = READY;
    return true;
}

static void arrive_at_group(int block, unsigned id, unsigned threads)
{
    if (++arrived[block][id] < threads)
        return;
    arrived[block][id] = 0;
    for (int t = block * thread_count; t < (block + 1) * thread_count; t++)
        if (fibers[t].state == GROUP && fibers[t].mask == id)
            fibers[t].state = READY;
}

static bool open_gate(int t)
{
    Gate *gate = (Gate *)seen_in(t / thread_count, fibers[t].gate);
    if ((gate->phase & 1) == fibers[t].mask)
        return false;
    fibers[t].state = READY;
    return true;
}

static bool open_collect(int first)
{
    unsigned mask = fibers[first].mask;
    int block = first / thread_count * thread_count, warp = block + (first - block & ~31);
    if (!(mask >> (first - warp) & 1))
        return false;
    for (int lane = 0; lane < 32; lane++)
        if (mask >> lane & 1) {
            int t = warp + lane;
            if (t >= block + thread_count || fibers[t].state != COLLECT || fibers[t].mask != mask)
                return false;
        }
    for (int lane = 0; lane < 32; lane++)
        for (int from = 0; from < 32; from++)
            if ((mask >> lane & 1) && (mask >> from & 1))
                fibers[warp + lane].got[from] = fibers[warp + from].given;
    for (int lane = 0; lane < 32; lane++)
        if (mask >> lane & 1)
            fibers[warp + lane].state = READY;
    return true;
}

static void start_fiber(int t)
{
    Fiber &fiber = fibers[t];
    fiber.state = READY;
    fiber.open_copies.clear(), fiber.groups.clear();
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = stacks + (size_t)t * STACK;
    fiber.context.uc_stack.ss_size = STACK;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, fiber_main, 0);
}

static void resume(int number)
{
    current = number;
    int block = current_block(), t = number % thread_count;
    make_live(block);
    blockIdx = cluster_place[block];
    threadIdx.x = t % blockDim.x;
    threadIdx.y = t / blockDim.x % blockDim.y;
    threadIdx.z = t / blockDim.x / blockDim.y;
    swapcontext(&scheduler, &fibers[number].context);
}

// 0, or 1 where threads wait for ever: a kernel that is not defined.
static int run_cluster(bool backwards)
{
    int count = thread_count * block_count;
    memset(arrived, 0, sizeof arrived);
    for (int t = 0; t < count; t++)
        start_fiber(t);
    for (;;) {
        bool moved = false;
        int left = 0;
        for (int k = 0; k < count; k++) {
            int t = backwards ? count - 1 - k : k;
            if (fibers[t].state == READY) {
                resume(t);
                moved = true;
            }
            left += fibers[t].state != DONE;
        }
        if (!left)
            return 0;
        for (int t = 0; t < count; t++)
            if (fibers[t].state == COLLECT)
                moved |= open_collect(t);
            else if (fibers[t].state == AT_GATE)
                moved |= open_gate(t);
        for (int block = 0; block < block_count; block++)
            moved |= open_barrier(block * thread_count, thread_count, BARRIER);
        moved |= open_barrier(0, count, CLUSTER);
        for (int t = 0; t < count; t++)
            moved |= fibers[t].state == READY;
        if (!moved)
            return 1;
    }
}

static int launch(dim3 grid, dim3 block, dim3 cluster, bool backwards, std::function<void()> kernel)
{
    if (!fibers) {
        fibers = new Fiber[MOST_THREADS]();
        stacks = (char *)malloc((size_t)MOST_THREADS * STACK);
        for (char *&copy : shared_of)
            copy = (char *)aligned_alloc(128, shared_size() + 128 & ~(size_t)127);
    }
    body = kernel, gridDim = grid, blockDim = block, is_late = backwards;
    thread_count = block.x * block.y * block.z;
    block_count = cluster.x * cluster.y * cluster.z;
    dim3 clusters = {grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z};
    unsigned many = clusters.x * clusters.y * clusters.z;
    for (unsigned k = 0; k < many; k++) {
        unsigned c = backwards ? many - 1 - k : k;
        for (unsigned b = 0; b < block_count; b++) {
            cluster_place[b] = {
                c % clusters.x * cluster.x + b % cluster.x,
                c / clusters.x % clusters.y * cluster.y + b / cluster.x % cluster.y,
                c / clusters.x / clusters.y * cluster.z + b / cluster.x / cluster.y};
            if (shared_size()) // what nobody wrote differs between the two orders
                memset(shared_of[b], backwards ? 0x5A : 0xA5, shared_size());
        }
        if (shared_size())
            memcpy(__start_shared_memory, shared_of[live_block = 0], shared_size());
        if (run_cluster(backwards))
            return 1;
    }
    return 0;
}

// ---- barriers, shuffles and votes ---------------------------------------------------------------

static void __syncthreads() { wait_at_barrier(); }
static void __syncwarp(unsigned mask) { collect(mask, 0); }
static void __threadfence() {}
static void __threadfence_block() {}
static int lane_number() { return current % thread_count & 31; }

template <class T> static u64_t packed(T x)
{
    u64_t bits = 0;
    memcpy(&bits, &x, sizeof x);
    return bits;
}
template <class T> static T unpacked(u64_t bits)
{
    T x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
template <class T> static T __shfl_sync(unsigned mask, T x, int lane, int width = 32)
{
    int from = (lane_number() & ~(width - 1)) | (lane & (width - 1));
    return unpacked<T>(collect(mask, packed(x))[from]);
}
template <class T> static T __shfl_up_sync(unsigned mask, T x, unsigned delta, int width = 32)
{
    int me = lane_number(), from = me - (int)delta;
    bool in = from >= (me & ~(width - 1));
    return unpacked<T>(collect(mask, packed(x))[in ? from : me]);
}
template <class T> static T __shfl_down_sync(unsigned mask, T x, unsigned delta, int width = 32)
{
    int me = lane_number(), from = me + (int)delta;
    bool in = from <= (me | (width - 1));
    return unpacked<T>(collect(mask, packed(x))[in ? from : me]);
}
template <class T> static T __shfl_xor_sync(unsigned mask, T x, int bits, int width = 32)
{
    int me = lane_number(), from = me ^ bits;
    bool in = from <= (me | (width - 1));
    return unpacked<T>(collect(mask, packed(x))[in ? from : me]);
}
static unsigned __ballot_sync(unsigned mask, int x)
{
    const u64_t *got = collect(mask, x != 0);
    unsigned set = 0;
    for (int lane = 0; lane < 32; lane++)
        if (mask >> lane & 1)
            set |= (unsigned)(got[lane] != 0) << lane;
    return set;
}
static int __any_sync(unsigned mask, int x) { return __ballot_sync(mask, x) != 0; }
static int __all_sync(unsigned mask, int x) { return __ballot_sync(mask, x) == mask; }
template <class T> static unsigned __match_any_sync(unsigned mask, T x)
{
    const u64_t *got = collect(mask, packed(x));
    unsigned set = 0;
    for (int lane = 0; lane < 32; lane++)
        if (mask >> lane & 1)
            set |= (unsigned)(got[lane] == packed(x)) << lane;
    return set;
}
#define REDUCE(name, T, start, sum) \
    static T __reduce_##name##_sync(unsigned mask, T x) \
    { \
        const u64_t *got = collect(mask, packed(x)); \
        T a = start; \
        for (int lane = 0; lane < 32; lane++) \
            if (mask >> lane & 1) { \
                T b = unpacked<T>(got[lane]); \
                a = sum; \
            } \
        return a; \
    }
REDUCE(add, unsigned, 0, a + b)
REDUCE(min, unsigned, ~0u, a < b ? a : b)
REDUCE(max, unsigned, 0, a > b ? a : b)
REDUCE(and, unsigned, ~0u, a & b)
REDUCE(or, unsigned, 0, a | b)
REDUCE(xor, unsigned, 0, a ^ b)
static int __syncthreads_count(int x)
{
    static int counts[MOST_BLOCKS], arrivals[MOST_BLOCKS];
    int &count = counts[current_block()], &arrived = arrivals[current_block()];
    if (arrived == 0)
        count = 0;
    arrived++;
    count += x != 0;
    wait_at_barrier();
    int found = count;
    arrived = 0;
    wait_at_barrier();
    return found;
}
static int __syncthreads_or(int x) { return __syncthreads_count(x) != 0; }
static int __syncthreads_and(int x) { return __syncthreads_count(x) == thread_count; }

// ---- atomics ------------------------------------------------------------------------------------

#define ATOMIC(name, value) \
    template <class T> static T name(T *p, T x) { T old = *p; *p = value; return old; }
ATOMIC(atomicAdd, old + x)
ATOMIC(atomicSub, old - x)
ATOMIC(atomicMin, old < x ? old : x)
ATOMIC(atomicMax, old > x ? old : x)
ATOMIC(atomicAnd, old & x)
ATOMIC(atomicOr, old | x)
ATOMIC(atomicXor, old ^ x)
ATOMIC(atomicExch, x)
static unsigned atomicInc(unsigned *p, unsigned x)
{
    unsigned old = *p;
    *p = old >= x ? 0 : old + 1;
    return old;
}
static unsigned atomicDec(unsigned *p, unsigned x)
{
    unsigned old = *p;
    *p = old == 0 || old > x ? x : old - 1;
    return old;
}
template <class T> static T atomicCAS(T *p, T compare, T x)
{
    T old = *p;
    *p = old == compare ? x : old;
    return old;
}

// ---- integers -----------------------------------------------------------------------------------

#define BOTH(T) \
    static T min(T a, T b) { return a < b ? a : b; } \
    static T max(T a, T b) { return a > b ? a : b; }
BOTH(int) BOTH(unsigned) BOTH(long long) BOTH(u64_t)
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __popcll(u64_t x) { return __builtin_popcountll(x); }
static int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static int __clzll(long long x) { return x ? __builtin_clzll((u64_t)x) : 64; }
static int __ffs(int x) { return __builtin_ffs(x); }
static int __ffsll(long long x) { return __builtin_ffsll(x); }
static unsigned __brev(unsigned x)
{
    unsigned y = 0;
    for (int k = 0; k < 32; k++)
        y |= (x >> k & 1) << (31 - k);
    return y;
}
static u64_t __brevll(u64_t x) { return (u64_t)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32)); }
static unsigned __byte_perm(unsigned a, unsigned b, unsigned s)
{
    u64_t both = (u64_t)b << 32 | a;
    unsigned y = 0;
    for (int k = 0; k < 4; k++)
        y |= (unsigned)(both >> 8 * (s >> 4 * k & 7) & 255) << 8 * k;
    return y;
}
static unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)((((u64_t)hi << 32 | lo) << (n & 31)) >> 32);
}
static unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n)
{
    return (unsigned)(((u64_t)hi << 32 | lo) >> (n & 31));
}
static unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned n)
{
    return n >= 32 ? lo : __funnelshift_l(lo, hi, n);
}
static unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned n)
{
    return n >= 32 ? hi : __funnelshift_r(lo, hi, n);
}
static int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((u64_t)a * b >> 32); }
static long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
static u64_t __umul64hi(u64_t a, u64_t b) { return (u64_t)((unsigned __int128)a * b >> 64); }
static int low24(int x) { return (int)((unsigned)x << 8) >> 8; }
static int __mul24(int a, int b) { return (int)((unsigned)low24(a) * (unsigned)low24(b)); }
static unsigned __umul24(unsigned a, unsigned b) { return (a & 0xFFFFFF) * (b & 0xFFFFFF); }
static unsigned __sad(int a, int b, unsigned c)
{
    return (unsigned)(a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c;
}
static unsigned __usad(unsigned a, unsigned b, unsigned c) { return (a > b ? a - b : b - a) + c; }
static int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
static int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
static unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((u64_t)a + b) >> 1); }
static int dot4(int a, int b, int c)
{
    unsigned sum = (unsigned)c;
    for (int k = 0; k < 4; k++)
        sum += (unsigned)((signed char)(a >> 8 * k) * (signed char)(b >> 8 * k));
    return (int)sum;
}
static int __dp4a(int a, int b, int c) { return dot4(a, b, c); }

// ---- floats -------------------------------------------------------------------------------------

static int __float_as_int(float x) { return unpacked<int>(packed(x)); }
static unsigned __float_as_uint(float x) { return unpacked<unsigned>(packed(x)); }
static float __int_as_float(int x) { return unpacked<float>(packed(x)); }
static float __uint_as_float(unsigned x) { return unpacked<float>(packed(x)); }
static long long __double_as_longlong(double x) { return unpacked<long long>(packed(x)); }
static double __longlong_as_double(long long x) { return unpacked<double>(packed(x)); }
static int __double2hiint(double x) { return (int)(packed(x) >> 32); }
static int __double2loint(double x) { return (int)packed(x); }
static double __hiloint2double(int hi, int lo)
{
    return unpacked<double>((u64_t)(unsigned)hi << 32 | (unsigned)lo);
}

// A number before no number, -0 below +0; what a compiler folds may be the other zero.
static bool other_zero;
template <class T> static T lesser(T a, T b)
{
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) != other_zero ? a : b;
    return a < b ? a : b;
}
template <class T> static T greater(T a, T b)
{
    if (a != a) return b;
    if (b != b) return a;
    if (a == b) return std::signbit(a) != other_zero ? b : a;
    return a > b ? a : b;
}
static float oracle_fminf(float a, float b) { return lesser(a, b); }
static float oracle_fmaxf(float a, float b) { return greater(a, b); }
static double oracle_fmin(double a, double b) { return lesser(a, b); }
static double oracle_fmax(double a, double b) { return greater(a, b); }
#define fminf oracle_fminf
#define fmaxf oracle_fmaxf
#define fmin oracle_fmin
#define fmax oracle_fmax
static float __saturatef(float x) { return x != x || x <= 0 ? 0.0f : x > 1 ? 1.0f : x; }

// Cut off and held in the range of the type; no number is 0, or the lowest number of the sign where
// 64 bits are on either side.
template <class T, class F> static T whole(F x, F low, F end, T lowest, T highest, bool wide)
{
    if (x != x) return wide ? (T)((u64_t)1 << (8 * sizeof(T) - 1)) : 0;
    x = sizeof(F) == 4 ? truncf(x) : trunc(x);
    if (x < low) return lowest;
    if (x >= end) return highest;
    return (T)x;
}
#define WHOLE(T, low, end, lowest, highest, f2, d2, f_wide) \
    static T f2(float x) { return whole<T, float>(x, low, end, lowest, highest, f_wide); } \
    static T d2(double x) { return whole<T, double>(x, low, end, lowest, highest, true); }
WHOLE(int, -2147483648.0, 2147483648.0, INT32_MIN, INT32_MAX, __float2int_rz, __double2int_rz, false)
WHOLE(unsigned, 0, 4294967296.0, 0, UINT32_MAX, __float2uint_rz, __double2uint_rz, false)
WHOLE(long long, -9223372036854775808.0, 9223372036854775808.0, INT64_MIN, INT64_MAX,
      __float2ll_rz, __double2ll_rz, true)
WHOLE(u64_t, 0, 18446744073709551616.0, 0, UINT64_MAX, __float2ull_rz, __double2ull_rz, true)
static int __float2int_rn(float x) { return __float2int_rz(rintf(x)); }
static int __float2int_rd(float x) { return __float2int_rz(floorf(x)); }
static int __float2int_ru(float x) { return __float2int_rz(ceilf(x)); }
static unsigned __float2uint_rn(float x) { return __float2uint_rz(rintf(x)); }

#define ROUNDED(name, T, way, what) \
    static __attribute__((noinline)) T name(T a, T b) \
    { \
        volatile T x = a, y = b; \
        fesetround(way); \
        volatile T z = x what y; \
        fesetround(FE_TONEAREST); \
        return z; \
    }
ROUNDED(__fadd_rz, float, FE_TOWARDZERO, +)
ROUNDED(__fadd_ru, float, FE_UPWARD, +)
ROUNDED(__fadd_rd, float, FE_DOWNWARD, +)
ROUNDED(__fmul_rz, float, FE_TOWARDZERO, *)
ROUNDED(__fmul_ru, float, FE_UPWARD, *)
ROUNDED(__fmul_rd, float, FE_DOWNWARD, *)
ROUNDED(__fdiv_rz, float, FE_TOWARDZERO, /)
ROUNDED(__dadd_rz, double, FE_TOWARDZERO, +)
ROUNDED(__dadd_ru, double, FE_UPWARD, +)
ROUNDED(__dmul_rd, double, FE_DOWNWARD, *)
static float __fadd_rn(float a, float b) { return a + b; }
static float __fmul_rn(float a, float b) { return a * b; }
static float __fdiv_rn(float a, float b) { return a / b; }
static float __fsqrt_rn(float a) { return sqrtf(a); }
static float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
#define TO_FLOAT(name, T, S, way) \
    static __attribute__((noinline)) T name(S a) \
    { \
        volatile S x = a; \
        fesetround(way); \
        volatile T z = (T)x; \
        fesetround(FE_TONEAREST); \
        return z; \
    }
TO_FLOAT(__int2float_rz, float, int, FE_TOWARDZERO)
TO_FLOAT(__int2float_ru, float, int, FE_UPWARD)
TO_FLOAT(__uint2float_rd, float, unsigned, FE_DOWNWARD)
TO_FLOAT(__double2float_rz, float, double, FE_TOWARDZERO)

#include "oracle_units.h"
