// What random kernels say to a chip's units, for CUDA; for g++ it is in oracle_units.h.
#define SHARED(p) ((unsigned)__cvta_generic_to_shared(p))
typedef unsigned long long u64_t;

// ---- clusters -----------------------------------------------------------------------------------

__device__ __forceinline__ unsigned cluster_rank() { return __clusterRelativeBlockRank(); }
__device__ __forceinline__ unsigned cluster_blocks() { return __clusterSizeInBlocks(); }
__device__ __forceinline__ void cluster_sync()
{
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
}
__device__ __forceinline__ void cluster_arrive() { __cluster_barrier_arrive(); }
__device__ __forceinline__ void cluster_wait() { __cluster_barrier_wait(); }
template <class T> __device__ __forceinline__ T *peer(T *p, unsigned rank)
{
    return (T *)__cluster_map_shared_rank(p, rank);
}
__device__ __forceinline__ unsigned peer_address(const void *p, unsigned rank)
{
    unsigned q;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(q) : "r"(SHARED(p)), "r"(rank));
    return q;
}
__device__ __forceinline__ unsigned peer_load(const unsigned *p, unsigned rank)
{
    unsigned x;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(peer_address(p, rank)) : "memory");
    return x;
}
__device__ __forceinline__ void peer_store(unsigned *p, unsigned rank, unsigned x)
{
    asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(peer_address(p, rank)), "r"(x) : "memory");
}
__device__ __forceinline__ void peer_add(unsigned *p, unsigned rank, unsigned x)
{
    asm volatile("red.shared::cluster.add.u32 [%0], %1;" :: "r"(peer_address(p, rank)), "r"(x) : "memory");
}
__device__ __forceinline__ void peer_send(unsigned *p, u64_t *gate, unsigned rank, unsigned x)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
                 :: "r"(peer_address(p, rank)), "r"(x), "r"(peer_address(gate, rank)) : "memory");
}
__device__ __forceinline__ void peer_arrive(u64_t *gate, unsigned rank)
{
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                 :: "r"(peer_address(gate, rank)) : "memory");
}
__device__ __forceinline__ void peer_send_add(unsigned *p, u64_t *gate, unsigned rank, unsigned x)
{
    asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];"
                 :: "r"(peer_address(p, rank)), "r"(x), "r"(peer_address(gate, rank)) : "memory");
}
__device__ __forceinline__ void peer_copy(void *to, const void *from, u64_t *gate, unsigned rank)
{
    asm volatile("fence.proxy.async;\n"
                 "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];"
                 :: "r"(peer_address(to, rank)), "r"(SHARED(from)), "r"(peer_address(gate, rank)) : "memory");
}

// ---- groups of warps ----------------------------------------------------------------------------

__device__ __forceinline__ void group_sync(unsigned id, unsigned threads)
{
    asm volatile("barrier.sync %0, %1;" :: "r"(id), "r"(threads + 31 & ~31) : "memory");
}
__device__ __forceinline__ void group_arrive(unsigned id, unsigned threads)
{
    asm volatile("barrier.arrive %0, %1;" :: "r"(id), "r"(threads + 31 & ~31) : "memory");
}

// ---- mbarriers ----------------------------------------------------------------------------------

__device__ __forceinline__ void gate_init(u64_t *gate, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(SHARED(gate)), "r"(count) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void gate_end(u64_t *gate)
{
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(SHARED(gate)) : "memory");
}
__device__ __forceinline__ void gate_arrive(u64_t *gate)
{
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0]; }" :: "r"(SHARED(gate)) : "memory");
}
__device__ __forceinline__ void gate_arrive_and_wait(u64_t *gate)
{
    u64_t state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(SHARED(gate)) : "memory");
    asm volatile("{ .reg .pred p;\nagain: mbarrier.test_wait.shared::cta.b64 p, [%0], %1;\n@!p bra again; }"
                 :: "r"(SHARED(gate)), "l"(state) : "memory");
}
__device__ __forceinline__ void gate_expect(u64_t *gate, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(SHARED(gate)), "r"(bytes) : "memory");
}
__device__ __forceinline__ bool gate_open(u64_t *gate, unsigned parity)
{
    unsigned open;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p; }" : "=r"(open) : "r"(SHARED(gate)), "r"(parity) : "memory");
    return open;
}
__device__ __forceinline__ void gate_poll(u64_t *gate, unsigned parity)
{
    while (!gate_open(gate, parity)) {
    }
}
__device__ __forceinline__ void gate_wait(u64_t *gate, unsigned parity)
{
    asm volatile("{ .reg .pred p;\nagain: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra again; }" :: "r"(SHARED(gate)), "r"(parity) : "memory");
}

// ---- copies that do not wait --------------------------------------------------------------------

#define COPY(bytes) \
    __device__ __forceinline__ void copy_##bytes(void *to, const void *from, unsigned read) \
    { \
        asm volatile("cp.async.ca.shared.global [%0], [%1], " #bytes ", %2;" \
                     :: "r"(SHARED(to)), "l"(__cvta_generic_to_global(from)), "r"(read) : "memory"); \
    }
COPY(4) COPY(8) COPY(16)
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ __forceinline__ void copy_wait_but_one() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }
__device__ __forceinline__ void copy_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }
__device__ __forceinline__ void copy_arrive(u64_t *gate)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(SHARED(gate)) : "memory");
}
__device__ __forceinline__ void bulk_copy(void *to, const void *from, unsigned bytes, u64_t *gate)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(SHARED(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(SHARED(gate)) : "memory");
}
__device__ __forceinline__ void bulk_wait()
{
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ __forceinline__ void bulk_store(void *to, const void *from, unsigned bytes)
{
    asm volatile("fence.proxy.async;\ncp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                 :: "l"(__cvta_generic_to_global(to)), "r"(SHARED(from)), "r"(bytes) : "memory");
    bulk_wait();
}
__device__ __forceinline__ void bulk_add(unsigned *to, const unsigned *from, unsigned bytes)
{
    asm volatile("fence.proxy.async;\n"
                 "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;"
                 :: "l"(__cvta_generic_to_global(to)), "r"(SHARED(from)), "r"(bytes) : "memory");
    bulk_wait();
}

// ---- atomics on less than a word ----------------------------------------------------------------

__device__ __forceinline__ unsigned short cas_16(unsigned short *p, unsigned short old, unsigned short x)
{
    return atomicCAS(p, old, x);
}
__device__ __forceinline__ unsigned char cas_8(unsigned char *p, unsigned char old, unsigned char x)
{
    unsigned *word = (unsigned *)((u64_t)p & ~3ull), shift = 8 * ((u64_t)p & 3), before = *(volatile unsigned *)word;
    for (;;) {
        if ((unsigned char)(before >> shift) != old)
            return before >> shift;
        unsigned assumed = before;
        before = atomicCAS(word, assumed, assumed & ~(255u << shift) | (unsigned)x << shift);
        if (before == assumed)
            return old;
    }
}
__device__ __forceinline__ void add_16(unsigned short *p, unsigned short x)
{
    unsigned short before = *(volatile unsigned short *)p, assumed;
    do {
        assumed = before;
        before = cas_16(p, assumed, assumed + x);
    } while (before != assumed);
}
__device__ __forceinline__ unsigned cas_128(unsigned *p, unsigned old, unsigned x, unsigned y)
{
    u64_t a = (u64_t)p[1] << 32 | old, b = (u64_t)p[3] << 32 | p[2], c = (u64_t)y << 32 | x, d;
    asm volatile("{ .reg .b128 a, b;\nmov.b128 a, {%1, %2};\nmov.b128 b, {%3, %3};\n"
                 "atom.cas.b128 a, [%4], a, b;\nmov.b128 {%0, _}, a; }"
                 : "=l"(d) : "l"(a), "l"(b), "l"(c), "l"(p) : "memory");
    return (unsigned)(d ^ d >> 32);
}
#define ADD_2(name) \
    __device__ __forceinline__ unsigned add_##name(unsigned *p, unsigned x) \
    { \
        unsigned old; \
        asm volatile("atom.add.noftz." #name " %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(x) : "memory"); \
        return old; \
    }
#define ADD_1(name) \
    __device__ __forceinline__ unsigned add_##name(unsigned short *p, unsigned x) \
    { \
        unsigned short old; \
        asm volatile("atom.add.noftz." #name " %0, [%1], %2;" \
                     : "=h"(old) : "l"(p), "h"((unsigned short)x) : "memory"); \
        return old; \
    }
ADD_2(f16x2) ADD_2(bf16x2) ADD_1(f16) ADD_1(bf16)
#define RED_2(what) \
    __device__ __forceinline__ void what##_pair_f16x2(unsigned *p, unsigned x, unsigned y) \
    { \
        asm volatile("red.global." #what ".noftz.v2.f16x2 [%0], {%1, %2};" \
                     :: "l"(__cvta_generic_to_global(p)), "r"(x), "r"(y) : "memory"); \
    }
RED_2(add) RED_2(max) RED_2(min)

// ---- matrices -----------------------------------------------------------------------------------

#define MMA(name, op, C, letter) \
    __device__ __forceinline__ void name(C *d, const unsigned *a, const unsigned *b) \
    { \
        asm volatile("mma.sync.aligned." op " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                     : "+" letter(d[0]), "+" letter(d[1]), "+" letter(d[2]), "+" letter(d[3]) \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1])); \
    }
MMA(mma_f16, "m16n8k16.row.col.f32.f16.f16.f32", float, "f")
MMA(mma_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", float, "f")
MMA(mma_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", float, "f")
MMA(mma_s8, "m16n8k32.row.col.s32.s8.s8.s32", int, "r")
MMA(mma_u8, "m16n8k32.row.col.s32.u8.u8.s32", int, "r")
MMA(mma_s4, "m16n8k64.row.col.s32.s4.s4.s32", int, "r")
MMA(mma_and, "m16n8k256.row.col.s32.b1.b1.s32.and.popc", int, "r")
MMA(mma_xor, "m16n8k256.row.col.s32.b1.b1.s32.xor.popc", int, "r")
__device__ __forceinline__ void mma_f64(double *d, double a, double b)
{
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d[0]), "+d"(d[1]) : "d"(a), "d"(b));
}
__device__ __forceinline__ unsigned load_one(const void *row)
{
    unsigned x;
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(x) : "r"(SHARED(row)) : "memory");
    return x;
}
__device__ __forceinline__ unsigned load_two(const void *row)
{
    unsigned x, y;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(x), "=r"(y) : "r"(SHARED(row)) : "memory");
    return x + 3 * y;
}
#define LDMATRIX(name, trans) \
    __device__ __forceinline__ void name(unsigned *r, const void *row) \
    { \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(SHARED(row)) : "memory"); \
    }
LDMATRIX(load_rows, "") LDMATRIX(load_columns, ".trans")
#define STMATRIX(name, trans) \
    __device__ __forceinline__ void name(const unsigned *r, void *row) \
    { \
        asm volatile("stmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 [%4], {%0, %1, %2, %3};" \
                     :: "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(SHARED(row)) : "memory"); \
    }
STMATRIX(store_rows, "") STMATRIX(store_columns, ".trans")
__device__ __forceinline__ unsigned transpose(unsigned x)
{
    unsigned y;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}
// 16 x 16 of halves, row by row, times 16 x 16, column by column, to 16 x 16 of floats.
__device__ __forceinline__ void wmma_f16(const unsigned *a, const unsigned *b, float *c)
{
    asm volatile("{ .reg .b32 a<8>; .reg .b32 b<8>; .reg .f32 c<8>;\n"
                 "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {a0, a1, a2, a3, a4, a5, a6, a7}, [%0], 16;\n"
                 "wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {b0, b1, b2, b3, b4, b5, b6, b7}, [%1], 16;\n"
                 "wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {c0, c1, c2, c3, c4, c5, c6, c7}, [%2], 16;\n"
                 "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {c0, c1, c2, c3, c4, c5, c6, c7},"
                 " {a0, a1, a2, a3, a4, a5, a6, a7}, {b0, b1, b2, b3, b4, b5, b6, b7}, {c0, c1, c2, c3, c4, c5, c6, c7};\n"
                 "wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%2], {c0, c1, c2, c3, c4, c5, c6, c7}, 16; }"
                 :: "r"(SHARED(a)), "r"(SHARED(b)), "r"(SHARED(c)) : "memory");
}

// ---- textures and surfaces ----------------------------------------------------------------------

__device__ __forceinline__ unsigned sample_u(cudaTextureObject_t t, int i) { return tex1Dfetch<unsigned>(t, i); }
__device__ __forceinline__ float sample_f(cudaTextureObject_t t, int x, int y)
{
    return tex2D<float>(t, x * 0.25f, y * 0.25f);
}
__device__ __forceinline__ float sample_l(cudaTextureObject_t t, int x, int y)
{
    return tex2D<float>(t, x * 0.0625f, y * 0.0625f);
}
__device__ __forceinline__ float gather_f(cudaTextureObject_t t, int x, int y)
{
    float4 four = tex2Dgather<float4>(t, x * 0.5f + 0.25f, y * 0.5f + 0.25f, 0);
    return four.x + 2 * four.y + 4 * four.z + 8 * four.w;
}
__device__ __forceinline__ int sample_w(cudaTextureObject_t t, int x, int y)
{
    return tex2D<short>(t, x * 0.015625f, y * 0.015625f);
}
__device__ __forceinline__ unsigned sample_3(cudaTextureObject_t t, int x, int y, int z)
{
    return tex3D<unsigned>(t, x + 0.5f, y + 0.5f, z + 0.5f);
}
__device__ __forceinline__ unsigned surface_read(cudaSurfaceObject_t s, int x, int y)
{
    return surf2Dread<unsigned>(s, 4 * x, y);
}
__device__ __forceinline__ void surface_write(cudaSurfaceObject_t s, int x, int y, unsigned value)
{
    surf2Dwrite(value, s, 4 * x, y);
}
