/* Copies and sets: memcpy and memset in the program, of which the recorder is told. */

#include <stdint.h>

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

#define PLAUSIBLE ((size_t)1 << 30)

/* Whether the program may touch these bytes of `data`: device memory has ends. What lies far into
   memory of the host is looked at first, since a wrong size would end the program there. */
static int is_inside(const char *data, size_t first, size_t last)
{
    struct allocation found;
    uint64_t address = (uint64_t)(uintptr_t)data + first, end = (uint64_t)(uintptr_t)data + last;
    if (place_of(data) == HOST)
        return (end <= device.base || address >= device.base + device.bytes) &&
               (last < PLAUSIBLE || (is_mapped(data + first, 1) && is_mapped(data + last - 1, 1)));
    do { /* memory that is mapped page by page may lie side by side */
        if (!find_allocation((const void *)(uintptr_t)address, &found))
            return 0;
        address = found.address + found.bytes;
    } while (address < end);
    return 1;
}

/* Bytes from a side's `data` to a row's first; false where no address can say them. */
static int offset_of(const struct side *side, size_t y, size_t z, size_t *offset)
{
    size_t row;
    return !__builtin_mul_overflow(z, side->height, &row) &&
           !__builtin_add_overflow(row, y, &row) &&
           !__builtin_mul_overflow(row, side->pitch, offset) &&
           !__builtin_add_overflow(*offset, side->at.x, offset);
}

static int fits(size_t at, size_t length, size_t room)
{
    return at <= room && length <= room - at;
}

/* Whether all of a box lies where a side has memory. */
static int has_box(const struct side *side, size_t width, size_t rows, size_t slices)
{
    const struct cudaArray *array = side->array;
    size_t y, z, first, last;
    if (array)
        return fits(side->at.x, width, array->extent.width * array->texel_bytes) &&
               fits(side->at.y, rows, side->height) &&
               fits(side->at.z, slices, array->extent.depth ? array->extent.depth : 1);
    return !__builtin_add_overflow(side->at.y, rows - 1, &y) &&
           !__builtin_add_overflow(side->at.z, slices - 1, &z) &&
           offset_of(side, side->at.y, side->at.z, &first) && offset_of(side, y, z, &last) &&
           !__builtin_add_overflow(last, width, &last) && last <= MOST_ADDRESS &&
           (uintptr_t)side->data <= MOST_ADDRESS - last && is_inside(side->data, first, last);
}

/* A row of a box that has_box. */
static char *row_of(const struct side *side, size_t y, size_t z)
{
    size_t row = (side->at.z + z) * side->height + side->at.y + y;
    return side->data + row * side->pitch + side->at.x;
}

/* Rows must not overlap; an array's are as long as they are. */
static int has_short_rows(const struct side *side, const struct copy *copy)
{
    int has_one_row = copy->rows == 1 && copy->slices == 1;
    return !side->array && !has_one_row &&
           (side->pitch < copy->width || (copy->slices > 1 && side->height < copy->rows));
}

cudaError_t check_copy(const struct copy *copy)
{
    if (!copy->width || !copy->rows || !copy->slices)
        return cudaSuccess;
    if (!copy->to.data || !copy->from.data)
        return cudaErrorInvalidValue;
    if (has_short_rows(&copy->to, copy) || has_short_rows(&copy->from, copy))
        return cudaErrorInvalidPitchValue;
    int to_host = place_of(copy->to.data) == HOST, from_host = place_of(copy->from.data) == HOST;
    int to_device = copy->kind == cudaMemcpyHostToDevice || copy->kind == cudaMemcpyDeviceToDevice;
    int from_device = copy->kind == cudaMemcpyDeviceToHost || copy->kind == cudaMemcpyDeviceToDevice;
    if ((to_host && to_device) || (from_host && from_device))
        return cudaErrorInvalidValue;
    return has_box(&copy->to, copy->width, copy->rows, copy->slices) &&
                   has_box(&copy->from, copy->width, copy->rows, copy->slices)
               ? cudaSuccess
               : cudaErrorInvalidValue;
}

static void move(const struct copy *copy)
{
    for (size_t z = 0; z < copy->slices; z++)
        for (size_t y = 0; y < copy->rows; y++)
            memmove(row_of(&copy->to, y, z), row_of(&copy->from, y, z), copy->width);
}

cudaError_t run_copy(const void *what)
{
    const struct copy *copy = what;
    cudaError_t status = check_copy(copy);
    if (status || !copy->width || !copy->rows || !copy->slices)
        return status;
    int to = is_on_device(copy->to.data), from = is_on_device(copy->from.data);
    move(copy);
    if (to || from)
        report(from ? to ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice,
               copy->width * copy->rows * copy->slices,
               to ? row_of(&copy->to, 0, 0) : row_of(&copy->from, 0, 0));
    return cudaSuccess;
}

cudaError_t submit_copy(cudaStream_t stream, struct copy copy)
{
    cudaError_t status = begin();
    if (!status)
        status = check_copy(&copy);
    if (status)
        return status;
    return submit(stream, cudaGraphNodeTypeMemcpy, run_copy, &copy, sizeof copy);
}

cudaError_t copy_flat(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                      cudaStream_t stream)
{
    struct copy copy = {flat(to), flat(from), bytes, 1, 1, kind};
    return done(submit_copy(stream, copy));
}

/* A pitch that is given is as long as the row, even if there is one row alone. */
static int has_short_pitch(const struct side *side, size_t width)
{
    return !side->array && side->pitch && side->pitch < width;
}

cudaError_t copy_rows(struct side to, struct side from, size_t width, size_t height,
                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
    if (height == 1 && (has_short_pitch(&to, width) || has_short_pitch(&from, width)))
        return done(cudaErrorInvalidValue);
    struct copy copy = {to, from, width, height, 1, kind};
    return done(submit_copy(stream, copy));
}

/* Bytes one after the other, over as many rows of the array as they fill. */
cudaError_t fill_array(struct side array, size_t row, struct side flat_side, int to_array,
                       size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    size_t width = bytes < row ? bytes : row;
    flat_side.pitch = row;
    if (bytes / row > array.height)
        return done(cudaErrorInvalidValue);
    if (width && bytes % width)
        return refuse("a copy of part of a row to or from an array");
    return copy_rows(to_array ? array : flat_side, to_array ? flat_side : array, width,
                     width ? bytes / width : 0, kind, stream);
}

static struct side pitched(struct cudaPitchedPtr pointer, struct cudaPos at)
{
    return (struct side){pointer.ptr, pointer.pitch, pointer.ysize, at, NULL};
}

/* A product that is too large for any memory stays too large. */
static size_t times(size_t count, size_t unit)
{
    size_t product;
    return __builtin_mul_overflow(count, unit, &product) ? SIZE_MAX : product;
}

/* The origin and the extent are in bytes, or in texels where an array takes part. */
struct copy copy_of(const struct cudaMemcpy3DParms *p)
{
    cudaArray_const_t array = p->dstArray ? p->dstArray : p->srcArray;
    size_t unit = array ? array->texel_bytes : 1;
    struct copy copy;
    copy.to = p->dstArray ? array_side(p->dstArray, times(p->dstPos.x, unit), p->dstPos.y, p->dstPos.z)
                          : pitched(p->dstPtr, p->dstPos);
    copy.from = p->srcArray ? array_side(p->srcArray, times(p->srcPos.x, unit), p->srcPos.y, p->srcPos.z)
                            : pitched(p->srcPtr, p->srcPos);
    copy.width = times(p->extent.width, unit);
    copy.rows = p->extent.height;
    copy.slices = p->extent.depth;
    copy.kind = p->kind;
    return copy;
}

cudaError_t copy_symbol(const void *symbol, size_t offset, const void *other, size_t bytes,
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

static void set_row(char *data, const struct set *set)
{
    if (set->element == 1)
        memset(data, set->value, set->width);
    else
        for (size_t i = 0; i < set->width; i++)
            memcpy(data + i * set->element, &set->value, set->element);
}

cudaError_t check_set(const struct set *set)
{
    size_t row = times(set->width, set->element);
    if (!row || !set->rows || !set->slices)
        return cudaSuccess;
    if ((set->rows > 1 && set->to.pitch < row) || (set->slices > 1 && set->to.height < set->rows))
        return cudaErrorInvalidValue;
    return place_of(set->to.data) != HOST && has_box(&set->to, row, set->rows, set->slices)
               ? cudaSuccess
               : cudaErrorInvalidValue;
}

cudaError_t run_set(const void *what)
{
    const struct set *set = what;
    size_t row = times(set->width, set->element);
    cudaError_t status = check_set(set);
    if (status || !row || !set->rows || !set->slices)
        return status;
    for (size_t z = 0; z < set->slices; z++)
        for (size_t y = 0; y < set->rows; y++)
            set_row(row_of(&set->to, y, z), set);
    if (is_on_device(set->to.data))
        report(0, row * set->rows * set->slices, set->to.data);
    return cudaSuccess;
}

cudaError_t submit_set(cudaStream_t stream, struct set set)
{
    cudaError_t status = begin();
    replace_registered((char *)&set.to.data, sizeof set.to.data);
    if (!status)
        status = check_set(&set);
    if (status)
        return status;
    return submit(stream, cudaGraphNodeTypeMemset, run_set, &set, sizeof set);
}

API cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent extent,
                                  cudaStream_t stream)
{
    static const struct cudaPos origin;
    struct set set = {
        pitched(to, origin), extent.width, extent.height, extent.depth, (unsigned char)value, 1,
    };
    return done(submit_set(stream, set));
}

#include "forwards_runtime_copy.h"
