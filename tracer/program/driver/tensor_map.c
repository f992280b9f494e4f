/* Tensor maps: 128 bytes in the layout of NVIDIA's driver, as tracer/simt/tma/tensor_map.py describes
   it, since libraries encode maps of their own. */

#include "driver.h"

#define MOST 5
#define MOST_BYTES (227 * 1024) /* of a box: shared memory of a block of 9.0 and 10.0 */

/* A field of a map: its first bit and how many it has. */
struct field {
    int first, bits;
};
#define IS_IM2COL (struct field){64, 1}
#define RANK (struct field){68, 3}
#define TYPE (struct field){71, 4}
#define INTERLEAVE (struct field){75, 2}
#define SWIZZLE (struct field){77, 2}
#define FILL (struct field){79, 1}
#define ROUNDS (struct field){80, 1}
#define PROMOTION (struct field){81, 2}
#define ATOM (struct field){83, 2}
#define STRIDE(i) (struct field){96 + 32 * (i), 32}
#define STRIDE_HIGH(i) (struct field){224 + 4 * (i), 4}
#define EXTENT(i) (struct field){256 + 32 * (i), 32}
#define STEP(i) (struct field){416 + 3 * (i), 3}
#define BOX(i) (struct field){440 + 8 * (i), 8}
#define CHANNELS BOX(0)
#define PIXELS (struct field){480, 10}
#define LOWER(i, bits) (struct field){448 + (bits) * (i), bits}
#define UPPER(i, bits) (struct field){464 + (bits) * (i), bits}

/* The last words tell of the box: its bytes, and how it has to be aligned. */
enum { ADDRESS = 0, BOX_BYTES = 8, BOX_ALIGNMENT = 9, WORDS = 16 };
struct map {
    uint64_t words[WORDS];
};

static void put(struct map *map, struct field field, uint64_t value)
{
    for (int i = 0; i < field.bits; i++) {
        int bit = field.first + i;
        uint64_t one = 1ull << bit % 64;
        map->words[bit / 64] = (map->words[bit / 64] & ~one) | (value >> i & 1 ? one : 0);
    }
}

/* By CUtensorMapDataType; 11 and 12 are those of f32, and round to tf32. 10.0 and later have the
   packed types from 13 on, and the swizzles from 4 on: those of 128 bytes with larger atoms. */
static const uint8_t formats[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8, 13, 14, 15};
static const uint8_t widths[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
static const uint32_t spans[] = {0, 32, 64, 128, 128, 128, 128};
static const uint32_t alignments[] = {16, 256, 512, 1024, 1024, 1024, 1024};
#define PADDED_BOX 128 /* numbers in a row of a box of a padded type */

static int is_packed(CUtensorMapDataType type)
{
    return type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B;
}

/* Whether 16 numbers of 4 or 6 bits take 16 bytes of shared memory. */
static int is_padded(CUtensorMapDataType type)
{
    return type >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B;
}

/* Bytes of shared memory that a row of a box takes. */
static uint64_t row_bytes(CUtensorMapDataType type, uint32_t count)
{
    return is_padded(type) ? count : (uint64_t)count * widths[type] / 8;
}

static int is_known(CUtensorMapDataType type, CUtensorMapSwizzle swizzle)
{
    if ((unsigned)type >= sizeof widths || (unsigned)swizzle >= sizeof spans / sizeof *spans)
        return 0;
    if (is_padded(type) && swizzle > CU_TENSOR_MAP_SWIZZLE_NONE &&
        swizzle < CU_TENSOR_MAP_SWIZZLE_128B)
        return 0;
    return device.facts.major >= 10 ||
           (!is_packed(type) && swizzle <= CU_TENSOR_MAP_SWIZZLE_128B);
}

/* What maps of both kinds have. */
static CUresult begin_map(struct map *map, CUtensorMap *to, CUtensorMapDataType type, uint32_t rank,
                          void *address, const cuuint64_t *extents, const cuuint64_t *strides,
                          const cuuint32_t *steps, CUtensorMapInterleave interleave,
                          CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                          CUtensorMapFloatOOBfill fill)
{
    uint64_t align = interleave == CU_TENSOR_MAP_INTERLEAVE_32B || is_padded(type) ? 32 : 16;
    if (!to || (uintptr_t)to % 16 || !is_known(type, swizzle) || rank < 1 || rank > MOST || (uintptr_t)address % align || !extents || !steps ||
        (rank > 1 && !strides) || (unsigned)fill > 1 ||
        (fill && (type < CU_TENSOR_MAP_DATA_TYPE_FLOAT16 || is_packed(type))) ||
        (is_packed(type) && extents[0] % (is_padded(type) ? PADDED_BOX : 2)))
        return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, sizeof *map);
    map->words[ADDRESS] = (uintptr_t)address;
    map->words[BOX_ALIGNMENT] = alignments[swizzle];
    put(map, RANK, rank - 1);
    put(map, TYPE, formats[type]);
    put(map, ROUNDS, type >= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 && !is_packed(type));
    put(map, INTERLEAVE, interleave);
    int atom = swizzle > CU_TENSOR_MAP_SWIZZLE_128B ? swizzle - CU_TENSOR_MAP_SWIZZLE_128B : 0;
    put(map, SWIZZLE, swizzle - atom);
    put(map, ATOM, atom);
    put(map, FILL, fill);
    put(map, PROMOTION, promotion);
    for (uint32_t i = 0; i < rank; i++) {
        if (!extents[i] || extents[i] > 1ull << 32 || !steps[i] || steps[i] > 8)
            return CUDA_ERROR_INVALID_VALUE;
        put(map, EXTENT(i), extents[i] - 1);
        put(map, STEP(i), steps[i] - 1);
    }
    for (uint32_t i = 0; i + 1 < rank; i++) {
        if (strides[i] % align || strides[i] >= 1ull << 40)
            return CUDA_ERROR_INVALID_VALUE;
        put(map, STRIDE(i), strides[i] >> 4);
        put(map, STRIDE_HIGH(i), strides[i] >> 36);
    }
    return CUDA_SUCCESS;
}

static int is_wider(CUtensorMapSwizzle swizzle, uint64_t bytes)
{
    return swizzle && bytes > spans[swizzle];
}

API CUresult cuTensorMapEncodeTiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank,
                                    void *address, const cuuint64_t *extents,
                                    const cuuint64_t *strides, const cuuint32_t *box,
                                    const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                    CUtensorMapFloatOOBfill fill)
{
    struct map map;
    CUresult status = begin_map(&map, to, type, rank, address, extents, strides, steps, interleave,
                                swizzle, promotion, fill);
    if (status)
        return status;
    if (interleave)
        return refuse_driver("cuTensorMapEncodeTiled with interleaved layouts");
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (!box || !box[i] || box[i] > 256)
            return CUDA_ERROR_INVALID_VALUE;
        put(&map, BOX(i), box[i] - 1);
        count *= box[i] / steps[i];
    }
    uint64_t inner = row_bytes(type, box[0]), bytes = count * widths[type] / 8;
    if (inner % 16 || is_wider(swizzle, inner) || bytes > MOST_BYTES ||
        (is_padded(type) && box[0] != PADDED_BOX))
        return CUDA_ERROR_INVALID_VALUE;
    map.words[BOX_BYTES] = bytes;
    memcpy(to, &map, sizeof map);
    return CUDA_SUCCESS;
}

API CUresult cuTensorMapEncodeIm2col(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank,
                                     void *address, const cuuint64_t *extents,
                                     const cuuint64_t *strides, const int *lower, const int *upper,
                                     cuuint32_t channels, cuuint32_t pixels,
                                     const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                     CUtensorMapFloatOOBfill fill)
{
    struct map map;
    CUresult status = begin_map(&map, to, type, rank, address, extents, strides, steps, interleave,
                                swizzle, promotion, fill);
    if (status)
        return status;
    if (interleave)
        return refuse_driver("cuTensorMapEncodeIm2col with interleaved layouts");
    uint64_t inner = row_bytes(type, channels);
    if (rank < 3 || !lower || !upper || !channels || channels > 256 || pixels > 1024 ||
        inner % 16 || is_wider(swizzle, inner) || inner * pixels > MOST_BYTES ||
        (is_padded(type) && channels != PADDED_BOX))
        return CUDA_ERROR_INVALID_VALUE;
    static const int corner_bits[] = {0, 16, 8, 5};
    int bits = corner_bits[rank - 2];
    for (uint32_t i = 0; i + 2 < rank; i++) {
        int64_t count = extents[i + 1], most = 1 << (bits - 1);
        if (count > INT32_MAX || lower[i] < -most || lower[i] >= most || upper[i] < -most ||
            upper[i] >= most || count + upper[i] <= lower[i])
            return CUDA_ERROR_INVALID_VALUE;
        put(&map, LOWER(i, bits), lower[i]);
        put(&map, UPPER(i, bits), upper[i]);
    }
    put(&map, IS_IM2COL, 1);
    put(&map, CHANNELS, channels - 1);
    put(&map, PIXELS, pixels - 1);
    map.words[BOX_BYTES] = (uint64_t)channels * widths[type] / 8 * pixels;
    memcpy(to, &map, sizeof map);
    return CUDA_SUCCESS;
}

API CUresult cuTensorMapReplaceAddress(CUtensorMap *to, void *address)
{
    if (!to || (uintptr_t)address % 16)
        return CUDA_ERROR_INVALID_VALUE;
    ((struct map *)to)->words[ADDRESS] = (uintptr_t)address;
    return CUDA_SUCCESS;
}
