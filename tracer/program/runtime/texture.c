/* Texture and surface objects: handles that the recorder gives. */

#include <stdint.h>

#include "runtime.h"

enum { OVER_ARRAY = 1, OVER_LINEAR = 2, OVER_ROWS = 3, OVER_LEVELS = 4 };

/* What the program may ask a texture again. */
struct object {
    struct object *next;
    unsigned long long handle;
    struct cudaResourceDesc resource;
    struct cudaTextureDesc texture;
    struct cudaResourceViewDesc view;
    int has_view;
};
static struct object *objects;

static struct object *find(unsigned long long handle)
{
    struct object *each = objects;
    while (each && each->handle != handle)
        each = each->next;
    return each;
}

static void put_texel(struct message *message, struct cudaChannelFormatDesc texel)
{
    put32(message, texel.x);
    put32(message, texel.y);
    put32(message, texel.z);
    put32(message, texel.w);
    put32(message, texel.f);
}

static void put_place(struct message *message, unsigned over, uint64_t where,
                      struct cudaChannelFormatDesc texel, size_t width, size_t height, size_t pitch)
{
    put32(message, over);
    put64(message, where);
    put_texel(message, texel);
    put64(message, width);
    put64(message, height);
    put64(message, pitch);
}

static size_t texel_bytes(struct cudaChannelFormatDesc texel)
{
    return (texel.x + texel.y + texel.z + texel.w) / 8;
}

#define ALIGNMENT 512 /* of linear memory: cudaDeviceProp.textureAlignment */
#define PITCH_ALIGNMENT 32
#define MOST_LINEAR ((size_t)1 << 32) /* bytes: the largest power of two that an H200 took */

static int is_aligned(const void *memory)
{
    return memory && (uintptr_t)memory % ALIGNMENT == 0;
}

/* Rows may be as many and as long as the attributes of linear 2D textures say. */
static int are_rows(const struct cudaResourceDesc *resource)
{
    size_t width = resource->res.pitch2D.width, height = resource->res.pitch2D.height;
    size_t pitch = resource->res.pitch2D.pitchInBytes;
    return width <= 131072 && height <= 65000 && pitch <= 2097120 && pitch % PITCH_ALIGNMENT == 0 &&
           is_aligned(resource->res.pitch2D.devPtr);
}

/* A chip takes rows that have no texels, and rows that lie on each other. */
static int are_apart(const struct cudaResourceDesc *resource)
{
    size_t width = resource->res.pitch2D.width;
    return width && resource->res.pitch2D.height &&
           width * texel_bytes(resource->res.pitch2D.desc) <= resource->res.pitch2D.pitchInBytes;
}

static unsigned first_level(const struct cudaMipmappedArray *mipmap,
                            const struct cudaResourceViewDesc *view)
{
    return view && view->firstMipmapLevel < mipmap->levels ? view->firstMipmapLevel : 0;
}

static cudaError_t put_resource(struct message *message, const struct cudaResourceDesc *resource)
{
    struct cudaChannelFormatDesc texel;
    switch (resource->resType) {
    case cudaResourceTypeArray: {
        struct cudaArray *array = resource->res.array.array;
        if (!array)
            return cudaErrorInvalidResourceHandle;
        put_place(message, OVER_ARRAY, array->number, array->texel, 0, 0, 0);
        return cudaSuccess;
    }
    case cudaResourceTypeLinear:
        texel = resource->res.linear.desc;
        if (!texel_bytes(texel))
            return cudaErrorInvalidChannelDescriptor;
        if (resource->res.linear.sizeInBytes > MOST_LINEAR ||
            !is_aligned(resource->res.linear.devPtr))
            return cudaErrorInvalidValue;
        put_place(message, OVER_LINEAR, (uintptr_t)resource->res.linear.devPtr, texel,
                  resource->res.linear.sizeInBytes / texel_bytes(texel), 1, 0);
        return cudaSuccess;
    case cudaResourceTypePitch2D:
        if (!are_rows(resource))
            return cudaErrorInvalidValue;
        if (!are_apart(resource))
            return refuse("a texture of rows without texels, or longer than pitchInBytes,");
        put_place(message, OVER_ROWS, (uintptr_t)resource->res.pitch2D.devPtr,
                  resource->res.pitch2D.desc, resource->res.pitch2D.width,
                  resource->res.pitch2D.height, resource->res.pitch2D.pitchInBytes);
        return cudaSuccess;
    case cudaResourceTypeMipmappedArray: {
        struct cudaMipmappedArray *mipmap = resource->res.mipmap.mipmap;
        if (!mipmap)
            return cudaErrorInvalidResourceHandle;
        put_place(message, OVER_LEVELS, mipmap->level[0]->number,
                  mipmap->level[0]->texel, 0, 0, 0);
        return cudaSuccess;
    }
    default:
        return cudaErrorInvalidValue;
    }
}

/* The levels that a mipmapped texture has: none of other textures. */
static void put_levels(struct message *message, const struct cudaResourceDesc *resource,
                       const struct cudaResourceViewDesc *view)
{
    uint32_t numbers[16], count = 0;
    if (resource->resType == cudaResourceTypeMipmappedArray) {
        struct cudaMipmappedArray *mipmap = resource->res.mipmap.mipmap;
        unsigned last = view && view->lastMipmapLevel < mipmap->levels ? view->lastMipmapLevel
                                                                       : mipmap->levels - 1;
        unsigned first = first_level(mipmap, view);
        for (unsigned i = first; i == first || i <= last; i++)
            numbers[count++] = mipmap->level[i]->number;
    }
    put_bytes(message, numbers, count * sizeof *numbers);
}

static cudaError_t remember(unsigned long long handle, const struct cudaResourceDesc *resource,
                            const struct cudaTextureDesc *texture,
                            const struct cudaResourceViewDesc *view)
{
    struct object *object = calloc(1, sizeof *object);
    object->handle = handle;
    object->resource = *resource;
    if (texture)
        object->texture = *texture;
    if (view)
        object->view = *view;
    object->has_view = !!view;
    object->next = objects;
    objects = object;
    return cudaSuccess;
}

static cudaError_t forget(unsigned long long handle)
{
    for (struct object **place = &objects; *place; place = &(*place)->next) {
        struct object *object = *place;
        if (object->handle != handle)
            continue;
        *place = object->next;
        free(object);
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

API cudaError_t cudaCreateTextureObject(cudaTextureObject_t *made,
                                        const struct cudaResourceDesc *resource,
                                        const struct cudaTextureDesc *texture,
                                        const struct cudaResourceViewDesc *view)
{
    cudaError_t status = begin();
    struct message message = question(TEXTURE);
    if (!status)
        status = put_resource(&message, resource);
    if (!status) {
        put_bytes(&message, texture, sizeof *texture);
        put_bytes(&message, view, view ? sizeof *view : 0);
        put_levels(&message, resource, view);
        status = ask(&message);
    }
    if (!status)
        status = remember(*made = take64(&message), resource, texture, view);
    close_message(&message);
    return done(status);
}

API cudaError_t cudaDestroyTextureObject(cudaTextureObject_t handle)
{
    cudaError_t status = begin();
    if (status || !handle)
        return done(status);
    struct message message = question(RELEASE);
    put64(&message, handle);
    status = ask(&message);
    close_message(&message);
    return done(status ? status : forget(handle));
}

API cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *resource,
                                                 cudaTextureObject_t handle)
{
    struct object *object = find(handle);
    if (object)
        *resource = object->resource;
    return done(object ? begin() : cudaErrorInvalidValue);
}

API cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *texture,
                                                cudaTextureObject_t handle)
{
    struct object *object = find(handle);
    if (object)
        *texture = object->texture;
    return done(object ? begin() : cudaErrorInvalidValue);
}

API cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc *view,
                                                     cudaTextureObject_t handle)
{
    struct object *object = find(handle);
    if (!object || !object->has_view)
        return done(cudaErrorInvalidValue);
    *view = object->view;
    return done(begin());
}

API cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *made,
                                        const struct cudaResourceDesc *resource)
{
    cudaError_t status = begin();
    if (status || resource->resType != cudaResourceTypeArray)
        return done(status ? status : cudaErrorInvalidChannelDescriptor);
    struct message message = question(SURFACE);
    put32(&message, resource->res.array.array->number);
    status = ask(&message);
    if (!status)
        status = remember(*made = take64(&message), resource, NULL, NULL);
    close_message(&message);
    return done(status);
}

#include "forwards_runtime_texture.h"
