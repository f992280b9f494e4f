// Kernels of what Hopper alone has, each a little of one thing; 8 blocks of 128 threads. An H200's
// counts of them are in test_hopper.py.

typedef unsigned long long u64;
typedef unsigned u32;

__device__ u32 sh(const void *p) { return (u32)__cvta_generic_to_shared(p); }

__device__ u32 at(u32 a, u32 r)
{
    u32 b;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(b) : "r"(a), "r"(r));
    return b;
}

__device__ u32 rank()
{
    u32 r;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

__device__ void meet()
{
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

__device__ void init(u64 *g, u32 n)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(sh(g)), "r"(n) : "memory");
}

__device__ void expect(u64 *g, u32 n)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(sh(g)), "r"(n) : "memory");
}

#define AWAIT(g) asm volatile("{ .reg .pred p; A: mbarrier.try_wait.parity.shared::cta.b64 p, " \
                              "[%0], 0; @!p bra A; }" :: "r"(sh(g)) : "memory")
#define FENCE asm volatile("fence.proxy.async;" ::: "memory")
#define PAIR __global__ void __cluster_dims__(2, 1, 1)
#define PLACE threadIdx.x + blockIdx.x * 128

extern "C" {
PAIR nothing(int *out)
{
    __shared__ int b[1024];
    meet();
    if (out == 0) out[0] = b[threadIdx.x];
    meet();
}

PAIR load_other(int *out)
{
    __shared__ int b[1024];
    b[threadIdx.x] = threadIdx.x;
    meet();
    int v;
    asm volatile("ld.shared::cluster.u32 %0, [%1];"
                 : "=r"(v) : "r"(at(sh(b + threadIdx.x), 1 - rank())) : "memory");
    out[PLACE] = v;
    meet();
}

PAIR load_own(int *out)
{
    __shared__ int b[1024];
    b[threadIdx.x] = threadIdx.x;
    meet();
    int v;
    asm volatile("ld.shared::cluster.u32 %0, [%1];"
                 : "=r"(v) : "r"(at(sh(b + threadIdx.x), rank())) : "memory");
    out[PLACE] = v;
    meet();
}

PAIR store_other(int *out)
{
    __shared__ int b[4096];
    meet();
    asm volatile("st.shared::cluster.u32 [%1], %0;"
                 :: "r"(threadIdx.x), "r"(at(sh(b + 32 * threadIdx.x), 1 - rank())) : "memory");
    meet();
    out[PLACE] = b[threadIdx.x];
}

PAIR send(int *out)
{
    __shared__ int b[128];
    __shared__ u64 g;
    if (threadIdx.x == 0) {
        init(&g, 1);
        expect(&g, 512);
    }
    meet();
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%1], %0, [%2];"
                 :: "r"(threadIdx.x), "r"(at(sh(b + threadIdx.x), 1 - rank())),
                 "r"(at(sh(&g), 1 - rank())) : "memory");
    AWAIT(&g);
    out[PLACE] = b[threadIdx.x];
    meet();
}

__global__ void gate(int *out)
{
    __shared__ u64 g;
    if (threadIdx.x == 0) init(&g, 128);
    __syncthreads();
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(sh(&g)) : "memory");
    AWAIT(&g);
    if (out == 0) out[0] = 1;
}

__global__ void bulk_in(int *out)
{
    __shared__ __align__(128) int b[2048];
    __shared__ u64 g;
    if (threadIdx.x == 0) {
        init(&g, 1);
        expect(&g, 8192);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1], 8192, [%2];"
                     :: "r"(sh(b)), "l"(out + 2048 * blockIdx.x), "r"(sh(&g)) : "memory");
    }
    __syncthreads();
    AWAIT(&g);
    if (b[threadIdx.x] == 12345) out[0] = 1;
}

__global__ void bulk_out(int *out)
{
    __shared__ __align__(128) int b[2048];
    b[threadIdx.x] = 1;
    FENCE;
    __syncthreads();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 8192;"
                     "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
                     :: "l"(out + 2048 * blockIdx.x), "r"(sh(b)) : "memory");
}

PAIR bulk_across(int *out)
{
    __shared__ __align__(128) int b[2048], c[2048];
    __shared__ u64 g;
    if (threadIdx.x == 0) {
        init(&g, 1);
        expect(&g, 8192);
    }
    meet();
    if (threadIdx.x == 0)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                     "[%0], [%1], 8192, [%2];"
                     :: "r"(at(sh(c), 1 - rank())), "r"(sh(b)), "r"(at(sh(&g), 1 - rank()))
                     : "memory");
    AWAIT(&g);
    if (c[threadIdx.x] == 12345) out[0] = 1;
    meet();
}

__global__ void products(int *out)
{
    extern __shared__ __align__(1024) int d[];
    float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
    for (int i = threadIdx.x; i < 4096; i += 128) d[i] = 0;
    FENCE;
    __syncthreads();
    u64 swizzled = 1ull << 62 | (u64)64 << 32 | 1 << 16;
    u64 a = swizzled + (sh(d) >> 4), b = a + 512;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < 4; k++)
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, "
                     "1, 1, 1, 0, 0;" : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    out[PLACE] = d0 + d1 + d2 + d3;
}
}
