// What device.h says to a chip's units, for g++: from the PTX ISA's words and pictures alone.

// ---- clusters: of the shared memory of other blocks there are copies, see oracle.h --------------

static unsigned cluster_rank() { return current_block(); }
static unsigned cluster_blocks() { return block_count; }
static void cluster_sync() { wait_at_barrier(CLUSTER); }
static void cluster_arrive() {}
static void cluster_wait() { cluster_sync(); }
template <class T> static T *peer(T *p, unsigned rank) { return (T *)seen_in(rank, (char *)p); }
static unsigned peer_load(const unsigned *p, unsigned rank) { return *peer(p, rank); }
static void peer_store(unsigned *p, unsigned rank, unsigned x) { *peer(p, rank) = x; }
static void peer_add(unsigned *p, unsigned rank, unsigned x) { *peer(p, rank) += x; }

// ---- groups of warps ----------------------------------------------------------------------------

static void group_sync(unsigned id, unsigned threads)
{
    Fiber &me = fibers[current];
    me.state = GROUP, me.mask = id;
    arrive_at_group(current_block(), id, threads);
    give_up_turn();
}
static void group_arrive(unsigned id, unsigned threads) { arrive_at_group(current_block(), id, threads); }

// ---- mbarriers ----------------------------------------------------------------------------------

static Gate *gate_of(u64_t *p) { return (Gate *)p; }
static void gate_step(Gate *gate)
{
    if (gate->pending == 0 && gate->bytes == 0)
        gate->phase++, gate->pending = gate->count;
}
static void gate_init(u64_t *gate, unsigned count)
{
    gate_of(gate)->count = gate_of(gate)->pending = count;
    gate_of(gate)->phase = 0, gate_of(gate)->bytes = 0;
}
static void gate_end(u64_t *gate) { *gate = 0; }
static void gate_arrive_many(u64_t *gate, unsigned count)
{
    gate_of(gate)->pending -= count;
    gate_step(gate_of(gate));
}
static void gate_arrive(u64_t *gate) { gate_arrive_many(gate, 1); }
static void gate_complete(u64_t *gate, unsigned bytes)
{
    gate_of(gate)->bytes -= bytes;
    gate_step(gate_of(gate));
}
static void gate_expect(u64_t *gate, unsigned bytes)
{
    gate_of(gate)->bytes += bytes;
    gate_arrive(gate);
}
static bool gate_open(u64_t *gate, unsigned parity) { return (gate_of(gate)->phase & 1) != parity; }
static void gate_wait(u64_t *gate, unsigned parity)
{
    if (gate_open(gate, parity))
        return;
    fibers[current].state = AT_GATE, fibers[current].mask = parity, fibers[current].gate = (char *)gate;
    give_up_turn();
}
static void gate_arrive_and_wait(u64_t *gate)
{
    unsigned parity = gate_of(gate)->phase & 1;
    gate_arrive(gate);
    gate_wait(gate, parity);
}
static void gate_poll(u64_t *gate, unsigned parity) { gate_wait(gate, parity); }
static void peer_send(unsigned *p, u64_t *gate, unsigned rank, unsigned x)
{
    *peer(p, rank) = x;
    gate_complete(peer(gate, rank), 4);
}
static void peer_send_add(unsigned *p, u64_t *gate, unsigned rank, unsigned x)
{
    *peer(p, rank) += x;
    gate_complete(peer(gate, rank), 4);
}
static void peer_copy(void *to, const void *from, u64_t *gate, unsigned rank)
{
    memcpy(peer((char *)to, rank), from, 16);
    gate_complete(peer(gate, rank), 16);
}
static void peer_arrive(u64_t *gate, unsigned rank) { gate_arrive(peer(gate, rank)); }

// ---- copies: done at once, or not before somebody waits for them --------------------------------

template <int bytes> static void copy(void *to, const void *from, unsigned read)
{
    char what[bytes] = {};
    memcpy(what, from, read);
    auto act = [=] { memcpy(to, what, bytes); };
    if (is_late)
        fibers[current].open_copies.push_back(act);
    else
        act();
}
#define copy_4 copy<4>
#define copy_8 copy<8>
#define copy_16 copy<16>
static void copy_commit()
{
    Fiber &me = fibers[current];
    me.groups.push_back(std::move(me.open_copies));
    me.open_copies.clear();
}
static void copy_wait_for(size_t rest)
{
    for (auto &groups = fibers[current].groups; groups.size() > rest; groups.pop_front())
        for (auto &act : groups.front())
            act();
}
static void copy_wait_but_one() { copy_wait_for(1); }
static void copy_wait()
{
    copy_commit();
    copy_wait_for(0);
}
static void copy_arrive(u64_t *gate)
{
    copy_wait();
    gate_arrive(gate);
}
static void bulk_copy(void *to, const void *from, unsigned bytes, u64_t *gate)
{
    memcpy(to, from, bytes);
    gate_complete(gate, bytes);
}
static void bulk_store(void *to, const void *from, unsigned bytes) { memcpy(to, from, bytes); }
static void bulk_add(unsigned *to, const unsigned *from, unsigned bytes)
{
    for (unsigned k = 0; k < bytes / 4; k++)
        to[k] += from[k];
}

// ---- atomics on less than a word ----------------------------------------------------------------

static unsigned short cas_16(unsigned short *p, unsigned short old, unsigned short x) { return atomicCAS(p, old, x); }
static unsigned char cas_8(unsigned char *p, unsigned char old, unsigned char x) { return atomicCAS(p, old, x); }
static void add_16(unsigned short *p, unsigned short x) { *p += x; }
static unsigned cas_128(unsigned *p, unsigned old, unsigned x, unsigned y)
{
    unsigned before = p[0] ^ p[1];
    if (p[0] == old)
        p[0] = p[2] = x, p[1] = p[3] = y;
    return before;
}
static float value_f16(unsigned x) { return (float)unpacked<_Float16>(x & 0xFFFF); }
static float value_bf16(unsigned x) { return unpacked<float>((u64_t)(x & 0xFFFF) << 16); }
static unsigned bits_f16(float x) { return (unsigned)packed((_Float16)x); }
static unsigned bits_bf16(float x)
{
    unsigned y = (unsigned)packed(x);
    return (y + 0x7FFF + (y >> 16 & 1)) >> 16;
}
#define SUB_WORD(name) \
    static unsigned sum_##name(unsigned x, unsigned y) { return bits_##name(value_##name(x) + value_##name(y)); } \
    static unsigned add_##name(unsigned short *p, unsigned x) \
    { \
        unsigned old = *p; \
        *p = sum_##name(old, x); \
        return old; \
    } \
    static unsigned add_##name##x2(unsigned *p, unsigned x) \
    { \
        unsigned old = *p; \
        *p = sum_##name(old, x) | sum_##name(old >> 16, x >> 16) << 16; \
        return old; \
    }
SUB_WORD(f16) SUB_WORD(bf16)
static void add_pair_f16x2(unsigned *p, unsigned x, unsigned y) { add_f16x2(p, x), add_f16x2(p + 1, y); }
static unsigned chosen(unsigned x, unsigned y, bool less)
{
    return ((value_f16(x) < value_f16(y)) == less ? x : y) & 0xFFFF;
}
static unsigned chosen_2(unsigned x, unsigned y, bool less)
{
    return chosen(x, y, less) | chosen(x >> 16, y >> 16, less) << 16;
}
static void max_pair_f16x2(unsigned *p, unsigned x, unsigned y)
{
    p[0] = chosen_2(p[0], x, false), p[1] = chosen_2(p[1], y, false);
}
static void min_pair_f16x2(unsigned *p, unsigned x, unsigned y)
{
    p[0] = chosen_2(p[0], x, true), p[1] = chosen_2(p[1], y, true);
}

// ---- matrices -----------------------------------------------------------------------------------

template <class T> struct Lanes { T of[32]; };
template <class T> static Lanes<T> all_lanes(T x)
{
    const u64_t *got = collect(0xFFFFFFFF, packed(x));
    Lanes<T> lanes;
    for (int lane = 0; lane < 32; lane++)
        lanes.of[lane] = unpacked<T>(got[lane]);
    return lanes;
}
// A times B of which a register holds 32 / BITS elements: row (a) or column (b) by lane / 4,
// columns (rows) by lane % 4, registers below (a) and beside each other.
template <int BITS, class C, class F> static void mma(C *d, const unsigned *a, const unsigned *b, F multiply)
{
    const int PER = 32 / BITS;
    Lanes<unsigned> as[4], bs[2];
    for (int k = 0; k < 4; k++) as[k] = all_lanes(a[k]);
    for (int k = 0; k < 2; k++) bs[k] = all_lanes(b[k]);
    for (int i = 0; i < 4; i++) {
        int row = lane_number() / 4 + 8 * (i / 2), column = lane_number() % 4 * 2 + i % 2;
        for (int k = 0; k < 8 * PER; k++) {
            unsigned x = as[row / 8 + 2 * (k / (4 * PER))].of[row % 8 * 4 + k / PER % 4];
            unsigned y = bs[k / (4 * PER)].of[column * 4 + k / PER % 4];
            unsigned mask = BITS == 32 ? ~0u : (1u << BITS % 32) - 1;
            d[i] += multiply(x >> k % PER * BITS & mask, y >> k % PER * BITS & mask);
        }
    }
}
#define MMA(name, BITS, C, product) \
    static void name(C *d, const unsigned *a, const unsigned *b) \
    { \
        mma<BITS, C>(d, a, b, [](unsigned x, unsigned y) { return product; }); \
    }
MMA(mma_f16, 16, float, value_f16(x) * value_f16(y))
MMA(mma_bf16, 16, float, value_bf16(x) * value_bf16(y))
MMA(mma_tf32, 32, float, unpacked<float>(x) * unpacked<float>(y))
MMA(mma_s8, 8, int, (signed char)x * (signed char)y)
MMA(mma_u8, 8, int, (int)(x * y))
MMA(mma_s4, 4, int, ((int)(x << 28) >> 28) * ((int)(y << 28) >> 28))
MMA(mma_and, 1, int, (int)(x & y))
MMA(mma_xor, 1, int, (int)(x ^ y))
static void mma_f64(double *d, double a, double b)
{
    Lanes<double> as = all_lanes(a), bs = all_lanes(b);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 4; k++)
            d[i] += as.of[lane_number() / 4 * 4 + k] * bs.of[(lane_number() % 4 * 2 + i) * 4 + k];
}
// Lanes 8 m to 8 m + 7 name the rows of matrix m; a lane holds elements 2 (lane % 4) and the next
// of row lane / 4.
static unsigned short *matrix_element(const Lanes<unsigned short *> &rows, int m, int i, bool turned)
{
    int row = lane_number() / 4, column = lane_number() % 4 * 2 + i;
    return turned ? rows.of[8 * m + column] + row : rows.of[8 * m + row] + column;
}
static void move_matrix(unsigned *r, const void *row, bool turned, bool stored)
{
    Lanes<unsigned short *> rows = all_lanes((unsigned short *)row);
    for (int m = 0; m < 4; m++)
        for (int i = 0; i < 2; i++) {
            unsigned short *p = matrix_element(rows, m, i, turned);
            if (stored)
                *p = r[m] >> 16 * i;
            else
                r[m] = i ? r[m] & 0xFFFF | *p << 16 : *p;
        }
    collect(0xFFFFFFFF, 0);
}
static void load_rows(unsigned *r, const void *row) { move_matrix(r, row, false, false); }
static void load_columns(unsigned *r, const void *row) { move_matrix(r, row, true, false); }
static void store_rows(unsigned *r, void *row) { move_matrix(r, row, false, true); }
static void store_columns(unsigned *r, void *row) { move_matrix(r, row, true, true); }
static unsigned load_one(const void *row)
{
    unsigned r[4];
    load_rows(r, row);
    return r[0];
}
static unsigned load_two(const void *row)
{
    unsigned r[4];
    load_columns(r, row);
    return r[0] + 3 * r[1];
}
static unsigned transpose(unsigned x)
{
    Lanes<unsigned> all = all_lanes(x);
    unsigned y = 0;
    for (int i = 0; i < 2; i++) {
        int row = lane_number() % 4 * 2 + i, column = lane_number() / 4;
        y |= (all.of[row * 4 + column / 2] >> column % 2 * 16 & 0xFFFF) << 16 * i;
    }
    return y;
}
static void wmma_f16(const unsigned *a, const unsigned *b, float *c)
{
    collect(0xFFFFFFFF, 0);
    if (lane_number() == 0)
        for (int k = 0; k < 4096; k++) {
            int x = k / 256 * 16 + k % 16, y = k / 16 % 16 * 16 + k % 16;
            c[k / 16] += value_f16(a[x / 2] >> x % 2 * 16) * value_f16(b[y / 2] >> y % 2 * 16);
        }
    collect(0xFFFFFFFF, 0);
}

// ---- textures and surfaces: sizes and modes as in texture.py ------------------------------------

typedef const void *cudaTextureObject_t;
typedef void *cudaSurfaceObject_t;
static int clamped(int i, int size) { return i < 0 ? 0 : i < size ? i : size - 1; }
static int whole_of(int i, int per) { return (int)floor((double)i / per); }
static unsigned sample_u(cudaTextureObject_t t, int i)
{
    return i >= 0 && i < 1024 ? ((const unsigned *)t)[i] : 0;
}
static float texel_f(cudaTextureObject_t t, int x, int y)
{
    return ((const float *)t)[16 * clamped(y, 12) + clamped(x, 16)];
}
static float sample_f(cudaTextureObject_t t, int x, int y) { return texel_f(t, whole_of(x, 4), whole_of(y, 4)); }
static float sample_l(cudaTextureObject_t t, int x, int y)
{
    int i = whole_of(x - 8, 16), j = whole_of(y - 8, 16);
    float a = (x - 8 - 16 * i) / 16.0f, b = (y - 8 - 16 * j) / 16.0f;
    return (1 - a) * (1 - b) * texel_f(t, i, j) + a * (1 - b) * texel_f(t, i + 1, j) +
           (1 - a) * b * texel_f(t, i, j + 1) + a * b * texel_f(t, i + 1, j + 1);
}
static float gather_f(cudaTextureObject_t t, int x, int y)
{
    // the four that linear filtering would take, from the lower left against the clock
    int i = (int)floor(x * 0.5 + 0.25 - 0.5), j = (int)floor(y * 0.5 + 0.25 - 0.5);
    return texel_f(t, i, j + 1) + 2 * texel_f(t, i + 1, j + 1) + 4 * texel_f(t, i + 1, j) + 8 * texel_f(t, i, j);
}
static int sample_w(cudaTextureObject_t t, int x, int y)
{
    int i = whole_of(x, 2) & 31, j = whole_of(y, 8) & 15; // wrapped of 32, mirrored of 8
    return ((const short *)t)[32 * (j < 8 ? j : 15 - j) + i];
}
static unsigned sample_3(cudaTextureObject_t t, int x, int y, int z)
{
    bool in = x >= 0 && x < 8 && y >= 0 && y < 4 && z >= 0 && z < 4;
    return in ? ((const unsigned *)t)[32 * z + 8 * y + x] : 0;
}
static unsigned surface_read(cudaSurfaceObject_t s, int x, int y) { return ((unsigned *)s)[32 * y + x]; }
static void surface_write(cudaSurfaceObject_t s, int x, int y, unsigned value) { ((unsigned *)s)[32 * y + x] = value; }
