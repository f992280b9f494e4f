/* CUDA arrays: texels behind global memory in the arena, row after row. */

#include <stdint.h>

#include "runtime.h"

struct side array_side(cudaArray_const_t array, size_t x, size_t y, size_t z)
{
    size_t height = array->extent.height ? array->extent.height : 1;
    return (struct side){array->data, array->pitch, height, {x, y, z}, array};
}

/* Whether a device has arrays of such a size: the attributes say how large they may be. */
static int is_possible(struct cudaExtent extent, unsigned flags)
{
    size_t width = extent.width, height = extent.height, depth = extent.depth;
    if (flags & (cudaArrayLayered | cudaArrayCubemap))
        return width && width <= 32768 && height <= 32768 && depth && depth <= 2048;
    if (depth)
        return width && height && ((width <= 16384 && height <= 16384 && depth <= 16384) ||
                                   (width <= 8192 && height <= 8192 && depth <= 32768));
    return width && width <= 131072 && height <= 65536;
}

/* Layered arrays of one dimension have no height; `depth` counts slices or layers. */
static cudaError_t make(struct cudaArray **made, const struct cudaChannelFormatDesc *texel,
                        struct cudaExtent extent, unsigned flags)
{
    cudaError_t status = begin();
    if (status || !is_possible(extent, flags))
        return status ? status : cudaErrorInvalidValue;
    struct cudaArray *array = calloc(1, sizeof *array);
    struct message message = question(ARRAY);
    put32(&message, texel->x);
    put32(&message, texel->y);
    put32(&message, texel->z);
    put32(&message, texel->w);
    put32(&message, texel->f);
    put64(&message, extent.width);
    put64(&message, extent.height);
    put64(&message, extent.depth);
    put32(&message, flags);
    status = ask(&message);
    if (!status) {
        array->number = take32(&message);
        array->data = (char *)(uintptr_t)(device.base + device.texels + take64(&message));
        array->pitch = take64(&message);
        array->texel_bytes = take32(&message);
        array->texel = *texel;
        array->extent = extent;
        array->flags = flags;
        *made = array;
    } else {
        free(array);
    }
    close_message(&message);
    return status;
}

static cudaError_t drop(struct cudaArray *array)
{
    struct message message = question(DROP);
    put32(&message, array->number);
    cudaError_t status = ask(&message);
    close_message(&message);
    free(array);
    return status;
}

API cudaError_t cudaFreeArray(cudaArray_t array)
{
    cudaError_t status = begin();
    if (status || !array || array->is_level)
        return done(status);
    return done(drop(array));
}

API cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *texel, struct cudaExtent *extent,
                                 unsigned *flags, cudaArray_t array)
{
    if (texel)
        *texel = array->texel;
    if (extent)
        *extent = array->extent;
    if (flags)
        *flags = array->flags;
    return done(begin());
}

API struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                       enum cudaChannelFormatKind kind)
{
    struct cudaChannelFormatDesc texel = {x, y, z, w, kind};
    return texel;
}

static size_t halved(size_t size, unsigned times)
{
    size_t rest = size >> times;
    return size && !rest ? 1 : rest;
}

/* Levels down to one texel; layers and the faces of cubes are never fewer. */
static unsigned most_levels(struct cudaExtent extent, int has_layers)
{
    size_t largest = extent.width > extent.height ? extent.width : extent.height;
    if (!has_layers && extent.depth > largest)
        largest = extent.depth;
    unsigned levels = 1;
    while (levels < 16 && largest >> levels)
        levels++;
    return levels;
}

API cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *made,
                                         const struct cudaChannelFormatDesc *texel,
                                         struct cudaExtent extent, unsigned levels, unsigned flags)
{
    struct cudaMipmappedArray *mipmap = calloc(1, sizeof *mipmap);
    int has_layers = !!(flags & (cudaArrayLayered | cudaArrayCubemap));
    unsigned most = most_levels(extent, has_layers);
    cudaError_t status = begin();
    levels = levels < 1 ? 1 : levels > most ? most : levels;
    for (; !status && mipmap->levels < levels; mipmap->levels++) {
        unsigned n = mipmap->levels;
        struct cudaExtent own = {halved(extent.width, n), halved(extent.height, n),
                                 has_layers ? extent.depth : halved(extent.depth, n)};
        status = make(&mipmap->level[n], texel, own, flags);
        if (!status)
            mipmap->level[n]->is_level = 1;
    }
    *made = mipmap;
    return done(status);
}

API cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap)
{
    cudaError_t status = begin();
    for (unsigned i = 0; !status && mipmap && i < mipmap->levels; i++)
        status = drop(mipmap->level[i]);
    free(mipmap);
    return done(status);
}

#include "forwards_runtime_array.h"
