/* Copies and sets: memcpy and memset in the program, of which the recorder is told. */

#include <stdint.h>
#include <string.h>

#include "runtime.h"

static int is_on_device(const void *pointer)
{
    enum place place = place_of(pointer);
    return place == DEVICE || place == MANAGED;
}

static void report(unsigned direction, size_t bytes, const void *pointer)
{
    struct message message = question(COPIED);
    put32(&message, direction);
    put64(&message, bytes);
    put64(&message, (uint64_t)(uintptr_t)pointer);
    tell(&message);
}

/* Whether the program may touch so many bytes: device memory has ends. */
static int is_inside(const void *pointer, size_t bytes)
{
    struct allocation found;
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    if (place_of(pointer) == HOST)
        return 1;
    if (address >= device.base + device.constants)
        return 1; /* constants and texels, whose owners have checked */
    uint64_t end = address + bytes;
    do { /* memory that is mapped page by page may lie side by side */
        if (!find_allocation((const void *)(uintptr_t)address, &found))
            return 0;
        address = found.address + found.bytes;
    } while (address < end);
    return 1;
}

static size_t span(struct side side, const struct copy *copy)
{
    return (copy->slices - 1) * side.slice + (copy->rows - 1) * side.pitch + copy->width;
}

static cudaError_t check(const struct copy *copy)
{
    int to_host = place_of(copy->to.data) == HOST, from_host = place_of(copy->from.data) == HOST;
    int to_device = copy->kind == cudaMemcpyHostToDevice || copy->kind == cudaMemcpyDeviceToDevice;
    int from_device = copy->kind == cudaMemcpyDeviceToHost || copy->kind == cudaMemcpyDeviceToDevice;
    if (!copy->to.data || !copy->from.data || (to_host && to_device) || (from_host && from_device))
        return cudaErrorInvalidValue;
    if (!is_inside(copy->to.data, span(copy->to, copy)))
        return cudaErrorInvalidValue;
    return is_inside(copy->from.data, span(copy->from, copy)) ? cudaSuccess : cudaErrorInvalidValue;
}

static void move(const struct copy *copy)
{
    for (size_t z = 0; z < copy->slices; z++)
        for (size_t y = 0; y < copy->rows; y++)
            memmove(copy->to.data + z * copy->to.slice + y * copy->to.pitch,
                    copy->from.data + z * copy->from.slice + y * copy->from.pitch, copy->width);
}

cudaError_t run_copy(const void *what)
{
    const struct copy *copy = what;
    if (!copy->width || !copy->rows || !copy->slices)
        return cudaSuccess;
    cudaError_t status = check(copy);
    if (status)
        return status;
    int to = is_on_device(copy->to.data), from = is_on_device(copy->from.data);
    move(copy);
    if (to || from)
        report(from ? to ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
               copy->width * copy->rows * copy->slices, to ? copy->to.data : copy->from.data);
    return cudaSuccess;
}

cudaError_t submit_copy(cudaStream_t stream, struct copy copy)
{
    cudaError_t status = begin();
    if (status)
        return status;
    return submit(stream, cudaGraphNodeTypeMemcpy, run_copy, &copy, sizeof copy);
}

static struct side flat(const void *data)
{
    struct side side = {(char *)data, 0, 0};
    return side;
}

static struct side rows(const void *data, size_t pitch)
{
    struct side side = {(char *)data, pitch, 0};
    return side;
}

static cudaError_t copy_flat(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                             cudaStream_t stream)
{
    struct copy copy = {flat(to), flat(from), bytes, 1, 1, kind};
    return done(submit_copy(stream, copy));
}

static cudaError_t copy_rows(struct side to, struct side from, size_t width, size_t height,
                             enum cudaMemcpyKind kind, cudaStream_t stream)
{
    struct copy copy = {to, from, width, height, 1, kind};
    if (height > 1 && (to.pitch < width || from.pitch < width))
        return done(cudaErrorInvalidPitchValue);
    return done(submit_copy(stream, copy));
}

API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    return copy_flat(to, from, bytes, kind, NULL);
}

API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                cudaStream_t stream)
{
    return copy_flat(to, from, bytes, kind, stream);
}

API cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device,
                               size_t bytes)
{
    (void)to_device, (void)from_device;
    return copy_flat(to, from, bytes, cudaMemcpyDefault, NULL);
}

API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                    size_t bytes, cudaStream_t stream)
{
    (void)to_device, (void)from_device;
    return copy_flat(to, from, bytes, cudaMemcpyDefault, stream);
}

API cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                             size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return copy_rows(rows(to, to_pitch), rows(from, from_pitch), width, height, kind, NULL);
}

API cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                                  size_t width, size_t height, enum cudaMemcpyKind kind,
                                  cudaStream_t stream)
{
    return copy_rows(rows(to, to_pitch), rows(from, from_pitch), width, height, kind, stream);
}

API cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from,
                                    size_t pitch, size_t width, size_t height,
                                    enum cudaMemcpyKind kind)
{
    return copy_rows(array_side(to, x, y, 0), rows(from, pitch), width, height, kind, NULL);
}

API cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                         size_t pitch, size_t width, size_t height,
                                         enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_rows(array_side(to, x, y, 0), rows(from, pitch), width, height, kind, stream);
}

API cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                      size_t y, size_t width, size_t height,
                                      enum cudaMemcpyKind kind)
{
    return copy_rows(rows(to, pitch), array_side(from, x, y, 0), width, height, kind, NULL);
}

API cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                           size_t y, size_t width, size_t height,
                                           enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_rows(rows(to, pitch), array_side(from, x, y, 0), width, height, kind, stream);
}

API cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y,
                                         cudaArray_const_t from, size_t from_x, size_t from_y,
                                         size_t width, size_t height, enum cudaMemcpyKind kind)
{
    return copy_rows(array_side(to, to_x, to_y, 0), array_side(from, from_x, from_y, 0), width,
                     height, kind, NULL);
}

/* Bytes one after the other, over as many rows of the array as they fill. */
static cudaError_t fill_array(struct side array, size_t row, struct side flat_side, int to_array,
                              size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    size_t width = bytes < row ? bytes : row;
    flat_side.pitch = row;
    if (width && bytes % width)
        return refuse("a copy of part of a row to or from an array");
    return copy_rows(to_array ? array : flat_side, to_array ? flat_side : array, width,
                     width ? bytes / width : 0, kind, stream);
}

API cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from,
                                  size_t bytes, enum cudaMemcpyKind kind)
{
    return fill_array(array_side(to, x, y, 0), to->extent.width * to->texel_bytes, flat(from), 1,
                      bytes, kind, NULL);
}

API cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from,
                                       size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return fill_array(array_side(to, x, y, 0), to->extent.width * to->texel_bytes, flat(from), 1,
                      bytes, kind, stream);
}

API cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y,
                                    size_t bytes, enum cudaMemcpyKind kind)
{
    return fill_array(array_side(from, x, y, 0), from->extent.width * from->texel_bytes, flat(to),
                      0, bytes, kind, NULL);
}

/* The origin of a pitched pointer is in bytes, or in texels where an array takes part. */
static struct side pitched(struct cudaPitchedPtr pointer, struct cudaPos at, size_t unit)
{
    size_t slice = pointer.pitch * pointer.ysize;
    char *data = (char *)pointer.ptr + at.z * slice + at.y * pointer.pitch + at.x * unit;
    struct side side = {data, pointer.pitch, slice};
    return side;
}

struct copy copy_of(const struct cudaMemcpy3DParms *p)
{
    cudaArray_const_t array = p->dstArray ? p->dstArray : p->srcArray;
    size_t unit = array ? array->texel_bytes : 1;
    struct copy copy;
    copy.to = p->dstArray ? array_side(p->dstArray, p->dstPos.x * unit, p->dstPos.y, p->dstPos.z)
                          : pitched(p->dstPtr, p->dstPos, 1);
    copy.from = p->srcArray ? array_side(p->srcArray, p->srcPos.x * unit, p->srcPos.y, p->srcPos.z)
                            : pitched(p->srcPtr, p->srcPos, 1);
    copy.width = p->extent.width * unit;
    copy.rows = p->extent.height;
    copy.slices = p->extent.depth;
    copy.kind = p->kind;
    return copy;
}

API cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *parameters)
{
    return done(submit_copy(NULL, copy_of(parameters)));
}

API cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *parameters, cudaStream_t stream)
{
    return done(submit_copy(stream, copy_of(parameters)));
}

static cudaError_t copy_symbol(const void *symbol, size_t offset, const void *other, size_t bytes,
                               int to_symbol, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *address;
    size_t size;
    cudaError_t status = begin();
    if (!status)
        status = find_symbol(symbol, &address, &size);
    if (!status && (offset > size || bytes > size - offset))
        status = cudaErrorInvalidValue;
    if (status)
        return done(status);
    char *data = (char *)address + offset;
    return copy_flat(to_symbol ? data : (void *)other, to_symbol ? other : data, bytes, kind, stream);
}

API cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                   enum cudaMemcpyKind kind)
{
    return copy_symbol(symbol, offset, from, bytes, 1, kind, NULL);
}

API cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes,
                                        size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_symbol(symbol, offset, from, bytes, 1, kind, stream);
}

API cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset,
                                     enum cudaMemcpyKind kind)
{
    return copy_symbol(symbol, offset, to, bytes, 0, kind, NULL);
}

API cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                          enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return copy_symbol(symbol, offset, to, bytes, 0, kind, stream);
}

static void set_row(char *data, const struct set *set)
{
    if (set->element == 1)
        memset(data, set->value, set->width);
    else
        for (size_t i = 0; i < set->width; i++)
            memcpy(data + i * set->element, &set->value, set->element);
}

cudaError_t run_set(const void *what)
{
    const struct set *set = what;
    size_t row = set->width * set->element;
    if (!row || !set->rows || !set->slices)
        return cudaSuccess;
    size_t bytes = (set->slices - 1) * set->slice + (set->rows - 1) * set->pitch + row;
    if (place_of(set->data) == HOST || !is_inside(set->data, bytes))
        return cudaErrorInvalidValue;
    for (size_t z = 0; z < set->slices; z++)
        for (size_t y = 0; y < set->rows; y++)
            set_row(set->data + z * set->slice + y * set->pitch, set);
    if (is_on_device(set->data))
        report(0, row * set->rows * set->slices, set->data);
    return cudaSuccess;
}

static cudaError_t submit_set(cudaStream_t stream, struct set set)
{
    cudaError_t status = begin();
    if (status)
        return done(status);
    return done(submit(stream, cudaGraphNodeTypeMemset, run_set, &set, sizeof set));
}

API cudaError_t cudaMemsetAsync(void *data, int value, size_t bytes, cudaStream_t stream)
{
    struct set set = {data, 0, 0, bytes, 1, 1, (unsigned char)value, 1};
    return submit_set(stream, set);
}

API cudaError_t cudaMemset(void *data, int value, size_t bytes)
{
    return cudaMemsetAsync(data, value, bytes, NULL);
}

API cudaError_t cudaMemset2DAsync(void *data, size_t pitch, int value, size_t width, size_t height,
                                  cudaStream_t stream)
{
    struct set set = {data, pitch, 0, width, height, 1, (unsigned char)value, 1};
    return submit_set(stream, set);
}

API cudaError_t cudaMemset2D(void *data, size_t pitch, int value, size_t width, size_t height)
{
    return cudaMemset2DAsync(data, pitch, value, width, height, NULL);
}

API cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
                                  cudaStream_t stream)
{
    struct set set = {
        to.ptr,       to.pitch,     to.pitch * to.ysize,  extent.width,
        extent.height, extent.depth, (unsigned char)value, 1,
    };
    return submit_set(stream, set);
}

API cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent extent)
{
    return cudaMemset3DAsync(to, value, extent, NULL);
}
