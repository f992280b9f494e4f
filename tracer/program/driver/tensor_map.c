/* Tensor maps: 128 bytes that the engine reads (tracer/simt/tma/tensor_map.py). NVIDIA's own are
   not documented, and programs only hand them on. */

#include <string.h>

#include "driver.h"

#define MARK 0xc7
#define MOST 5

enum { TILED, IM2COL };

struct __attribute__((packed)) map {
    uint64_t address;
    uint8_t type, rank, interleave, swizzle, hint, fill, kind, mark;
    uint32_t extents[MOST]; /* less one */
    uint64_t strides[MOST - 1];
    uint16_t box[MOST];
    uint8_t steps[MOST];
    int16_t lower[MOST - 2], upper[MOST - 2];
    uint16_t channels, pixels;
};

static const uint8_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
static const uint32_t spans[] = {0, 32, 64, 128};

/* What maps of both kinds have. */
static CUresult begin_map(struct map *map, CUtensorMap *to, CUtensorMapDataType type, uint32_t rank,
                          void *address, const cuuint64_t *extents, const cuuint64_t *strides,
                          const cuuint32_t *steps, CUtensorMapInterleave interleave,
                          CUtensorMapSwizzle swizzle, CUtensorMapFloatOOBfill fill)
{
    uint64_t align = interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
    if (!to || (uintptr_t)to % 16 || (unsigned)type >= sizeof sizes || (unsigned)swizzle > 3 ||
        rank < 1 || rank > MOST || (uintptr_t)address % align || !extents || !steps ||
        (rank > 1 && !strides) || (unsigned)fill > 1 ||
        (fill && type < CU_TENSOR_MAP_DATA_TYPE_FLOAT16))
        return CUDA_ERROR_INVALID_VALUE;
    memset(map, 0, sizeof *map);
    *map = (struct map){.address = (uintptr_t)address, .type = type, .rank = rank,
                        .interleave = interleave, .swizzle = swizzle, .fill = fill, .mark = MARK};
    for (uint32_t i = 0; i < rank; i++) {
        if (!extents[i] || extents[i] > 1ull << 32 || !steps[i] || steps[i] > 8)
            return CUDA_ERROR_INVALID_VALUE;
        map->extents[i] = extents[i] - 1;
        map->steps[i] = steps[i];
    }
    for (uint32_t i = 0; i + 1 < rank; i++) {
        if (strides[i] % align || strides[i] >= 1ull << 40)
            return CUDA_ERROR_INVALID_VALUE;
        map->strides[i] = strides[i];
    }
    return CUDA_SUCCESS;
}

static CUresult end_map(CUtensorMap *to, const struct map *map)
{
    memset(to, 0, sizeof *to);
    memcpy(to, map, sizeof *map);
    return CUDA_SUCCESS;
}

static int is_wider(const struct map *map, uint64_t bytes)
{
    return map->swizzle && bytes > spans[map->swizzle];
}

API CUresult cuTensorMapEncodeTiled(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank,
                                    void *address, const cuuint64_t *extents,
                                    const cuuint64_t *strides, const cuuint32_t *box,
                                    const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                    CUtensorMapFloatOOBfill fill)
{
    (void)promotion;
    struct map map;
    CUresult status = begin_map(&map, to, type, rank, address, extents, strides, steps, interleave,
                                swizzle, fill);
    if (status)
        return status;
    if (interleave)
        return refuse_driver("cuTensorMapEncodeTiled with interleaved layouts");
    for (uint32_t i = 0; i < rank; i++) {
        if (!box || !box[i] || box[i] > 256)
            return CUDA_ERROR_INVALID_VALUE;
        map.box[i] = box[i];
    }
    uint64_t inner = (uint64_t)box[0] * sizes[type];
    if (inner % 16 || is_wider(&map, inner))
        return CUDA_ERROR_INVALID_VALUE;
    map.kind = TILED;
    return end_map(to, &map);
}

API CUresult cuTensorMapEncodeIm2col(CUtensorMap *to, CUtensorMapDataType type, cuuint32_t rank,
                                     void *address, const cuuint64_t *extents,
                                     const cuuint64_t *strides, const int *lower, const int *upper,
                                     cuuint32_t channels, cuuint32_t pixels,
                                     const cuuint32_t *steps, CUtensorMapInterleave interleave,
                                     CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                                     CUtensorMapFloatOOBfill fill)
{
    (void)promotion;
    struct map map;
    CUresult status = begin_map(&map, to, type, rank, address, extents, strides, steps, interleave,
                                swizzle, fill);
    if (status)
        return status;
    if (interleave)
        return refuse_driver("cuTensorMapEncodeIm2col with interleaved layouts");
    uint64_t inner = (uint64_t)channels * sizes[type];
    if (rank < 3 || !lower || !upper || !channels || channels > 256 || pixels > 1024 ||
        inner % 16 || is_wider(&map, inner))
        return CUDA_ERROR_INVALID_VALUE;
    for (uint32_t i = 0; i + 2 < rank; i++) {
        map.lower[i] = lower[i];
        map.upper[i] = upper[i];
    }
    map.channels = channels;
    map.pixels = pixels;
    map.kind = IM2COL;
    return end_map(to, &map);
}

API CUresult cuTensorMapReplaceAddress(CUtensorMap *to, void *address)
{
    struct map map;
    if (!to || (uintptr_t)address % 16)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&map, to, sizeof map);
    if (map.mark != MARK)
        return CUDA_ERROR_INVALID_VALUE;
    map.address = (uintptr_t)address;
    memcpy(to, &map, sizeof map);
    return CUDA_SUCCESS;
}
