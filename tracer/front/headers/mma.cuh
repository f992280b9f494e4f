// mma.h in terms of mma.sync (tensor_core.py).
#pragma once
#include <cuda_fp16.h>
#include <cuda_bf16.h>

namespace nvcuda { namespace wmma {
struct matrix_a; struct matrix_b; struct accumulator; struct row_major; struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision { struct tf32; }
namespace experimental {
namespace precision { struct u4; struct s4; struct b1; }
enum bmmaBitOp {
    bmmaBitOpXOR = 1,
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    bmmaBitOpAND = 2,
#endif
};
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
}

namespace tile {
template <class T> struct factor { typedef T type; enum { packed = 4 / sizeof(T), since = 750 }; };
template <> struct factor<__nv_bfloat16>
{ typedef __nv_bfloat16 type; enum { packed = 2, since = 800 }; };
template <> struct factor<precision::tf32>
{ typedef float type; enum { packed = 1, since = 800 }; };
template <class A, class B> struct same { enum { value = 0 }; };
template <class A> struct same<A, A> { enum { value = 1 }; };

#define __CUTRACE_DEVICE __device__ __forceinline__
__CUTRACE_DEVICE unsigned lane()
{ unsigned n; asm("mov.u32 %0, %%laneid;" : "=r"(n)); return n; }

__CUTRACE_DEVICE unsigned bits(const void *at) { return *static_cast<const unsigned *>(at); }
template <int size> struct couple {  // two values of two bytes that lie side by side
    static __CUTRACE_DEVICE void copy(void *to, const void *from)
    { *static_cast<unsigned *>(to) = bits(from); }
    static __CUTRACE_DEVICE void load(void *to, const void *from) { copy(to, from); }
    static __CUTRACE_DEVICE void store(void *to, const void *from) { copy(to, from); }
};
template <> struct couple<4> {
    static __CUTRACE_DEVICE void load(void *to, const void *from)
    {
        uint2 both = *static_cast<const uint2 *>(from);
        unsigned *words = static_cast<unsigned *>(to);
        words[0] = both.x, words[1] = both.y;
    }
    static __CUTRACE_DEVICE void store(void *to, const void *from)
    {
        const unsigned *words = static_cast<const unsigned *>(from);
        *static_cast<uint2 *>(to) = make_uint2(words[0], words[1]);
    }
};

__CUTRACE_DEVICE void multiply(float *d, const half *a, const half *b, const float *c, bool)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(bits(a)), "r"(bits(a + 2)), "r"(bits(a + 4)), "r"(bits(a + 6)),
          "r"(bits(b)), "r"(bits(b + 2)), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#else
    for (int k = 0; k < 2; ++k, c = d)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
            "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
            : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
            : "r"(bits(a + 4 * k)), "r"(bits(a + 4 * k + 2)), "r"(bits(b + 2 * k)),
              "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#endif
}

__CUTRACE_DEVICE void multiply(half *d, const half *a, const half *b, const half *c, bool)
{
    unsigned r[2] = {bits(c), bits(c + 2)};
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
        "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
        : "+r"(r[0]), "+r"(r[1])
        : "r"(bits(a)), "r"(bits(a + 2)), "r"(bits(a + 4)), "r"(bits(a + 6)),
          "r"(bits(b)), "r"(bits(b + 2)));
#else
    for (int k = 0; k < 2; ++k)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 "
            "{%0,%1}, {%2,%3}, {%4}, {%0,%1};"
            : "+r"(r[0]), "+r"(r[1])
            : "r"(bits(a + 4 * k)), "r"(bits(a + 4 * k + 2)), "r"(bits(b + 2 * k)));
#endif
    *reinterpret_cast<unsigned *>(d) = r[0];
    *reinterpret_cast<unsigned *>(d + 2) = r[1];
}

#define __CUTRACE_PRODUCT(FORM)                                                               \
    asm volatile("mma.sync.aligned." FORM " {%0,%1}, {%2}, {%3}, {%4,%5};"                     \
        : "=r"(d[0]), "=r"(d[1]) : "r"(a), "r"(b), "r"(c[0]), "r"(c[1]));
#define __CUTRACE_WHOLE(K, NAME)                                                              \
    if (clamps) { __CUTRACE_PRODUCT(K ".row.col.satfinite.s32." NAME "." NAME ".s32") }        \
    else { __CUTRACE_PRODUCT(K ".row.col.s32." NAME "." NAME ".s32") }
#define __CUTRACE_BYTES(T, NAME)                                                              \
    __CUTRACE_DEVICE                                                                          \
    void multiply(int *d, const T *left, const T *right, const int *c, bool clamps)           \
    {                                                                                         \
        for (int h = 0; h < 2; ++h, d += 2, c += 2) {                                         \
            unsigned a = bits(left + 4 * h), b = bits(right);                                 \
            __CUTRACE_WHOLE("m8n8k16", NAME)                                                  \
        }                                                                                     \
    }
__CUTRACE_BYTES(signed char, "s8")
__CUTRACE_BYTES(unsigned char, "u8")
#undef __CUTRACE_BYTES

__CUTRACE_DEVICE
void multiply(float *d, const __nv_bfloat16 *a, const __nv_bfloat16 *b, const float *c, bool)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(bits(a)), "r"(bits(a + 2)), "r"(bits(a + 4)), "r"(bits(a + 6)),
          "r"(bits(b)), "r"(bits(b + 2)), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

__CUTRACE_DEVICE void multiply(float *d, const float *a, const float *b, const float *c, bool)
{
    for (int k = 0; k < 2; ++k, c = d)
        asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 "
            "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
            : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
            : "r"(bits(a + 2 * k)), "r"(bits(a + 2 * k + 1)), "r"(bits(b + k)),
              "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}
}

template <class Use, int m, int n, int k, class T, class Layout = void> class fragment
{
    typedef tile::factor<T> factor;
#ifdef __CUDA_ARCH__
    static_assert(__CUDA_ARCH__ >= int(factor::since),
                  "tensor cores multiply half and bytes from 7.5 on, others from 8.0: --arch");
#endif
    static_assert((m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32),
                  "wmma: expected 16 by 16, 32 by 8 or 8 by 32");
    static_assert(k * int(sizeof(typename factor::type)) == 32
                      || (sizeof(typename factor::type) == 1 && k == 16),
                  "wmma: expected 16 along the sum, 8 of tf32");
public:
    typedef T element_type;
    typedef typename factor::type storage_element_type;
    enum {
        is_a = tile::same<Use, matrix_a>::value, packed = factor::packed,
        outer = is_a ? m : n, rows = (m == 8) == bool(is_a) ? 8 : 16,
        words = rows / 8 * k / (4 * packed), tiles = outer / rows,
        num_elements = tiles * words * packed, num_storage_elements = num_elements,
        follows_sum = bool(is_a) == bool(tile::same<Layout, row_major>::value),
    };
    alignas(4) storage_element_type x[num_elements];
};

template <int m, int n, int k, class T> class fragment<accumulator, m, n, k, T, void>
{
public:
    typedef T element_type;
    typedef T storage_element_type;
    enum {
        num_elements = m * n / 32, num_storage_elements = num_elements,
        across = n == 32 ? 1 : n / 8, turned = n == 32,
    };
    alignas(sizeof(T) < 4 ? 4 : sizeof(T)) T x[num_elements];
};

template <class F, class T> __CUTRACE_DEVICE void fill_fragment(F &f, const T &value)
{ for (int i = 0; i < F::num_elements; ++i) f.x[i] = value; }

namespace tile {
__CUTRACE_DEVICE unsigned transposed(unsigned word)
{
    unsigned r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(word));
    return r;
}

#define __CUTRACE_MATRICES(TRANSPOSED)                                                        \
    if (count == 4)                                                                           \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" TRANSPOSED ".shared.b16 "                \
            "{%0,%1,%2,%3}, [%4];" : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])       \
            : "r"(row) : "memory");                                                           \
    else                                                                                      \
        asm volatile("ldmatrix.sync.aligned.m8n8.x2" TRANSPOSED ".shared.b16 {%0,%1}, [%2];"  \
            : "=r"(to[0]), "=r"(to[1]) : "r"(row) : "memory");
template <int count, bool follows_sum> __CUTRACE_DEVICE void matrices(unsigned *to, const void *at)
{
    unsigned row = unsigned(__cvta_generic_to_shared(at));
    if (follows_sum) { __CUTRACE_MATRICES("") } else { __CUTRACE_MATRICES(".trans") }
}
#undef __CUTRACE_MATRICES

template <class F> struct place {  // of the word i of a fragment: where its tile of 8 rows begins
    static __CUTRACE_DEVICE unsigned outer(int i)
    { return i / F::words * F::rows + 8 * (i % F::words % (F::rows / 8)); }
    static __CUTRACE_DEVICE unsigned sum(int i)
    { return i % F::words / (F::rows / 8) * 4 * F::packed; }
    // From shared memory, whose pitch is mostly constant, a line is an offset of the instruction;
    // elsewhere it is a 32-bit index, which takes one instruction.
    template <bool shared, class P> static __CUTRACE_DEVICE
    P *at(P *from, unsigned start, unsigned outer, unsigned sum, unsigned pitch)
    {
        unsigned line = (F::follows_sum ? outer : sum) * pitch;
        P *first = shared ? from + start + size_t(line) : from + (start + line);
        return first + (F::follows_sum ? sum : outer);
    }
};

template <class F, class P> __CUTRACE_DEVICE void load_rows(F &f, const P *from, unsigned pitch)
{
    typedef place<F> place;
    enum { total = F::tiles * F::words, count = total < 4 ? total : 4 };
    #pragma unroll
    for (int i = 0; i < total; i += count) {
        int matrix = i + lane() / 8 % count;
        const P *row = place::template at<true>(from, lane() % 8 * pitch, place::outer(matrix),
                                                place::sum(matrix), pitch);
        unsigned *words = reinterpret_cast<unsigned *>(f.x + i * F::packed);
        matrices<count, F::follows_sum>(words, row);
    }
}

template <bool shared, class F, class P> __CUTRACE_DEVICE
void load_words(F &f, const P *from, unsigned pitch)
{
    typedef place<F> place;
    enum { straight = F::follows_sum || F::packed == 2 };
    unsigned group = lane() / 4, part = lane() % 4 * F::packed;
    unsigned start = straight ? group * pitch + part : part * pitch + group;
    if (shared) from += start, start = 0;
    #pragma unroll
    for (int i = 0; i < F::tiles * F::words; ++i) {
        P *x = f.x + i * F::packed;
        unsigned outer = place::outer(i), sum = place::sum(i);
        const P *first = place::template at<shared>(from, start, outer, sum, pitch);
        if (straight) {
            unsigned word = bits(first);
            *reinterpret_cast<unsigned *>(x) = F::follows_sum ? word : transposed(word);
        } else
            for (int j = 0; j < F::packed; ++j)
                x[j] = *place::template at<shared>(from, start, outer, sum + j, pitch);
    }
}
}

template <class Use, int m, int n, int k, class T, class Layout, class P> __CUTRACE_DEVICE
void load_matrix_sync(fragment<Use, m, n, k, T, Layout> &f, const P *from, unsigned pitch)
{
    typedef fragment<Use, m, n, k, T, Layout> F;
    if (!__isShared(from))
        tile::load_words<false>(f, from, pitch);
    else if (F::packed == 2 || (F::packed == 4 && F::follows_sum))
        tile::load_rows(f, from, pitch);
    else
        tile::load_words<true>(f, from, pitch);
}

namespace tile {
template <int m, int n, int k, class T, class P, class M> __CUTRACE_DEVICE
void visit(fragment<accumulator, m, n, k, T> &f, P *at, unsigned pitch, layout_t layout, M move)
{
    typedef fragment<accumulator, m, n, k, T> F;
    bool straight = (layout == mem_row_major) != bool(F::turned);
    unsigned group = lane() / 4, part = lane() % 4 * 2;
    unsigned start = straight || sizeof(T) == 2 ? group * pitch + part : part * pitch + group;
    #pragma unroll
    for (int i = 0; i < F::num_elements; i += 2) {
        unsigned down = i / 4 / F::across * 16 + 8 * (i / 2 % 2), right = i / 4 % F::across * 8;
        if (straight)
            move.both(f.x + i, at + (start + down * pitch) + right);
        else if (sizeof(T) == 2)
            move.turned(f.x + i, at + (start + right * pitch) + down);
        else {
            move.one(f.x[i], at + (start + right * pitch) + down);
            move.one(f.x[i + 1], at + (start + (right + 1) * pitch) + down);
        }
    }
}
template <class T> struct load {
    __CUTRACE_DEVICE void one(T &x, const T *from) { x = *from; }
    __CUTRACE_DEVICE void both(T *x, const T *from) { couple<sizeof(T)>::load(x, from); }
    __CUTRACE_DEVICE void turned(T *x, const T *from)
    {
        both(x, from);
        *reinterpret_cast<unsigned *>(x) = transposed(bits(x));
    }
};
template <class T> struct store {
    __CUTRACE_DEVICE void one(T &x, T *to) { *to = x; }
    __CUTRACE_DEVICE void both(T *x, T *to) { couple<sizeof(T)>::store(to, x); }
    __CUTRACE_DEVICE void turned(T *x, T *to)
    { *reinterpret_cast<unsigned *>(to) = transposed(bits(x)); }
};
}

template <int m, int n, int k, class T> __CUTRACE_DEVICE
void load_matrix_sync(fragment<accumulator, m, n, k, T> &f, const T *from, unsigned pitch,
                      layout_t layout)
{ tile::visit(f, from, pitch, layout, tile::load<T>()); }

template <int m, int n, int k, class T> __CUTRACE_DEVICE
void store_matrix_sync(T *to, const fragment<accumulator, m, n, k, T> &f, unsigned pitch,
                       layout_t layout)
{
    fragment<accumulator, m, n, k, T> copy = f;
    tile::visit(copy, to, pitch, layout, tile::store<T>());
}

template <int m, int n, int k, class T, class R, class LA, class LB> __CUTRACE_DEVICE
void mma_sync(fragment<accumulator, m, n, k, R> &d, const fragment<matrix_a, m, n, k, T, LA> &a,
              const fragment<matrix_b, m, n, k, T, LB> &b,
              const fragment<accumulator, m, n, k, R> &c, bool clamps = false)
{
    enum { turned = m == 8, across = fragment<accumulator, m, n, k, R>::across };
    #pragma unroll
    for (int i = 0; i < m * n / 128; ++i) {
        int down = i / across, right = i % across;
        int tall = 16 * k / 32 * down, flat = 8 * k / 32 * right;
        R sum[4];
        tile::multiply(sum, turned ? b.x + tall : a.x + tall, turned ? a.x + flat : b.x + flat,
                       c.x + 4 * i, clamps);
        for (int j = 0; j < 4; ++j) d.x[4 * i + j] = sum[j];
    }
}

// double: 8 by 8, 4 along the sum; a lane holds one value of each factor, two of the result
template <class Layout> class fragment<matrix_a, 8, 8, 4, double, Layout>
{
public:
    typedef double element_type, storage_element_type;
    enum { num_elements = 1, num_storage_elements = 1 };
    double x[num_elements];
};
template <class Layout> class fragment<matrix_b, 8, 8, 4, double, Layout>
{
public:
    typedef double element_type, storage_element_type;
    enum { num_elements = 1, num_storage_elements = 1 };
    double x[num_elements];
};

template <class Layout> __CUTRACE_DEVICE
void load_matrix_sync(fragment<matrix_a, 8, 8, 4, double, Layout> &f, const double *from,
                      unsigned pitch)
{
    unsigned row = tile::lane() / 4, column = tile::lane() % 4;
    bool by_rows = tile::same<Layout, row_major>::value;
    f.x[0] = from[by_rows ? row * pitch + column : column * pitch + row];
}

template <class Layout> __CUTRACE_DEVICE
void load_matrix_sync(fragment<matrix_b, 8, 8, 4, double, Layout> &f, const double *from,
                      unsigned pitch)
{
    unsigned row = tile::lane() % 4, column = tile::lane() / 4;
    bool by_rows = tile::same<Layout, row_major>::value;
    f.x[0] = from[by_rows ? row * pitch + column : column * pitch + row];
}

__CUTRACE_DEVICE
void load_matrix_sync(fragment<accumulator, 8, 8, 4, double> &f, const double *from,
                      unsigned pitch, layout_t layout)
{
    unsigned row = tile::lane() / 4, column = tile::lane() % 4 * 2;
    if (layout == mem_row_major) {
        double2 both = *reinterpret_cast<const double2 *>(from + row * pitch + column);
        f.x[0] = both.x, f.x[1] = both.y;
    } else
        for (int i = 0; i < 2; ++i) f.x[i] = from[(column + i) * pitch + row];
}

__CUTRACE_DEVICE
void store_matrix_sync(double *to, const fragment<accumulator, 8, 8, 4, double> &f,
                       unsigned pitch, layout_t layout)
{
    unsigned row = tile::lane() / 4, column = tile::lane() % 4 * 2;
    if (layout == mem_row_major)
        *reinterpret_cast<double2 *>(to + row * pitch + column) = make_double2(f.x[0], f.x[1]);
    else
        for (int i = 0; i < 2; ++i) to[(column + i) * pitch + row] = f.x[i];
}

template <class LA, class LB> __CUTRACE_DEVICE
void mma_sync(fragment<accumulator, 8, 8, 4, double> &d,
              const fragment<matrix_a, 8, 8, 4, double, LA> &a,
              const fragment<matrix_b, 8, 8, 4, double, LB> &b,
              const fragment<accumulator, 8, 8, 4, double> &c)
{
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%4,%5};"
                 : "=d"(d.x[0]), "=d"(d.x[1])
                 : "d"(a.x[0]), "d"(b.x[0]), "d"(c.x[0]), "d"(c.x[1]));
}

// 4-bit integers and bits: 8 by 8, four words along the sum; a lane holds a word of each factor
namespace tile {
template <class T, class Word, int bits> struct words {
    typedef T element_type;
    typedef Word storage_element_type;
    enum { num_elements = 32 / bits, num_storage_elements = 1, element_bits = bits };
    alignas(8) Word x[1];
};
}

#define __CUTRACE_WORDS(K, T, WORD, BITS)                                                     \
    template <> class fragment<matrix_a, 8, 8, K, experimental::precision::T, row_major>      \
        : public tile::words<experimental::precision::T, WORD, BITS> {};                      \
    template <> class fragment<matrix_b, 8, 8, K, experimental::precision::T, col_major>      \
        : public tile::words<experimental::precision::T, WORD, BITS> {};                      \
    template <class Use, class Layout, class V> __CUTRACE_DEVICE                              \
    void fill_fragment(fragment<Use, 8, 8, K, experimental::precision::T, Layout> &f,         \
                       const V &value)                                                        \
    { f.x[0] = (unsigned(value) & ((1u << BITS) - 1)) * (~0u / ((1u << BITS) - 1)); }
__CUTRACE_WORDS(32, u4, unsigned, 4)
__CUTRACE_WORDS(32, s4, int, 4)
__CUTRACE_WORDS(128, b1, unsigned, 1)
#undef __CUTRACE_WORDS

template <class Use, int k, class T, class Layout, class P> __CUTRACE_DEVICE
void load_matrix_sync(fragment<Use, 8, 8, k, T, Layout> &f, const P *from, unsigned pitch)
{
    unsigned line = pitch * fragment<Use, 8, 8, k, T, Layout>::element_bits / 32;
    const unsigned *words = reinterpret_cast<const unsigned *>(from);
    f.x[0] = words[tile::lane() / 4 * line + tile::lane() % 4];
}

#define __CUTRACE_SUM(K) fragment<accumulator, 8, 8, K, int>
#define __CUTRACE_FACTORS(K, T)                                                               \
    const fragment<matrix_a, 8, 8, K, experimental::precision::T, row_major> &left,           \
    const fragment<matrix_b, 8, 8, K, experimental::precision::T, col_major> &right
#define __CUTRACE_FOURS(T, NAME)                                                              \
    __CUTRACE_DEVICE                                                                          \
    void mma_sync(__CUTRACE_SUM(32) &to, __CUTRACE_FACTORS(32, T),                            \
                  const __CUTRACE_SUM(32) &start, bool clamps = false)                        \
    {                                                                                         \
        unsigned a = left.x[0], b = right.x[0];                                               \
        int *d = to.x;                                                                        \
        const int *c = start.x;                                                               \
        __CUTRACE_WHOLE("m8n8k32", NAME)                                                      \
    }
__CUTRACE_FOURS(u4, "u4")
__CUTRACE_FOURS(s4, "s4")

__CUTRACE_DEVICE
void bmma_sync(__CUTRACE_SUM(128) &to, __CUTRACE_FACTORS(128, b1),
               const __CUTRACE_SUM(128) &start,
               experimental::bmmaBitOp op = experimental::bmmaBitOpXOR,
               experimental::bmmaAccumulateOp = experimental::bmmaAccumulateOpPOPC)
{
    unsigned a = left.x[0], b = right.x[0];
    int *d = to.x;
    const int *c = start.x;
#if __CUDA_ARCH__ >= 800
    if (op == experimental::bmmaBitOpAND)
        __CUTRACE_PRODUCT("m8n8k128.row.col.s32.b1.b1.s32.and.popc")
    else
#endif
        __CUTRACE_PRODUCT("m8n8k128.row.col.s32.b1.b1.s32.xor.popc")
}
#undef __CUTRACE_FOURS
#undef __CUTRACE_FACTORS
#undef __CUTRACE_SUM
#undef __CUTRACE_WHOLE
#undef __CUTRACE_PRODUCT

__CUTRACE_DEVICE float __float_to_tf32(float x)
{
    unsigned r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
    return __uint_as_float(r);
}
#undef __CUTRACE_DEVICE
} }
