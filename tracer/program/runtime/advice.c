/* Advice about managed memory: there is one memory, so nothing is moved; what was advised is told. */

#include <pthread.h>

#include "runtime.h"

enum { PREFETCH, READ_MOSTLY, PREFERRED, ACCESSED }; /* the second and third of each pair undo it */

struct advice {
    struct advice *next;
    uintptr_t place, end;
    int about, holds;
    struct cudaMemLocation where;
};
static struct advice *all; /* the newest first */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int is_same_place(const struct cudaMemLocation *a, const struct cudaMemLocation *b)
{
    return a->type == b->type && a->id == b->id;
}

/* Newer advice about the same bytes takes the place of older. */
static void drop_replaced(const struct advice *newer)
{
    for (struct advice **link = &all; *link;) {
        struct advice *each = *link;
        int is_inside = each->place >= newer->place && each->end <= newer->end;
        if (is_inside && (newer->about < 0 || (each->about == newer->about &&
                                               (newer->about != ACCESSED ||
                                                is_same_place(&each->where, &newer->where))))) {
            *link = each->next;
            free(each);
        } else {
            link = &each->next;
        }
    }
}

static void advise(const void *pointer, size_t bytes, int about, int holds,
                   struct cudaMemLocation where)
{
    uintptr_t place = (uintptr_t)pointer;
    struct advice *made = malloc(sizeof *made);
    if (!made)
        abort();
    pthread_mutex_lock(&lock);
    *made = (struct advice){NULL, place, place + bytes, about, holds, where};
    drop_replaced(made);
    made->next = all;
    all = made;
    pthread_mutex_unlock(&lock);
}

void forget_advice(const void *pointer, size_t bytes)
{
    uintptr_t place = (uintptr_t)pointer;
    struct advice whole = {NULL, place, place + bytes, -1, 0, {0}};
    pthread_mutex_lock(&lock);
    drop_replaced(&whole);
    pthread_mutex_unlock(&lock);
}

/* What is advised about is memory that is there. */
static cudaError_t check_range(const void *pointer, size_t bytes)
{
    struct allocation own;
    cudaError_t status = begin();
    if (!status && (!bytes || bytes > PTRDIFF_MAX))
        status = cudaErrorInvalidValue;
    if (!status && place_of(pointer) != HOST &&
        (!find_allocation(pointer, &own) || bytes > own.address + own.bytes - (uintptr_t)pointer))
        status = cudaErrorInvalidValue;
    return status;
}

API cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise what,
                              struct cudaMemLocation where)
{
    int number = what - cudaMemAdviseSetReadMostly;
    cudaError_t status = check_range(pointer, bytes);
    if (!status)
        advise(pointer, bytes, READ_MOSTLY + number / 2, number % 2 == 0, where);
    return done(status);
}

/* Each place is that of the buffers from its index on. */
API cudaError_t cudaMemPrefetchBatchAsync(void **pointers, size_t *bytes, size_t count,
                                          struct cudaMemLocation *places, size_t *firsts,
                                          size_t place_count, unsigned long long flags,
                                          cudaStream_t stream)
{
    cudaError_t status = flags ? cudaErrorInvalidValue : cudaSuccess;
    size_t place = 0;
    for (size_t i = 0; !status && i < count; i++) {
        while (place + 1 < place_count && firsts[place + 1] <= i)
            place++;
        status = cudaMemPrefetchAsync(pointers[i], bytes[i], places[place], 0, stream);
    }
    return done(status);
}

/* The newest advice about all of the bytes, if it still holds. */
static const struct advice *find_advice(uintptr_t place, size_t bytes, int about)
{
    const struct advice *each = all;
    while (each && (each->about != about || each->place > place || each->end < place + bytes))
        each = each->next;
    return each && each->holds ? each : NULL;
}

static int number_of(const struct advice *advice)
{
    if (!advice)
        return cudaInvalidDeviceId;
    return advice->where.type == cudaMemLocationTypeDevice ? advice->where.id : cudaCpuDeviceId;
}

static void list_users(int *numbers, size_t room, uintptr_t place, size_t bytes)
{
    size_t found = 0;
    for (const struct advice *each = all; each && found < room; each = each->next)
        if (each->about == ACCESSED && each->holds && each->place <= place &&
            each->end >= place + bytes)
            numbers[found++] = number_of(each);
    while (found < room)
        numbers[found++] = cudaInvalidDeviceId;
}

static int tell_advice(int *value, size_t room, enum cudaMemRangeAttribute which, uintptr_t place,
                       size_t bytes)
{
    const struct advice *wish = find_advice(place, bytes, PREFERRED);
    const struct advice *last = find_advice(place, bytes, PREFETCH);
    switch (which) {
    case cudaMemRangeAttributeReadMostly: *value = !!find_advice(place, bytes, READ_MOSTLY); break;
    case cudaMemRangeAttributePreferredLocation: *value = number_of(wish); break;
    case cudaMemRangeAttributeLastPrefetchLocation: *value = number_of(last); break;
    case cudaMemRangeAttributePreferredLocationType: *value = wish ? wish->where.type : 0; break;
    case cudaMemRangeAttributePreferredLocationId: *value = wish ? wish->where.id : 0; break;
    case cudaMemRangeAttributeLastPrefetchLocationType: *value = last ? last->where.type : 0; break;
    case cudaMemRangeAttributeLastPrefetchLocationId: *value = last ? last->where.id : 0; break;
    case cudaMemRangeAttributeAccessedBy: list_users(value, room, place, bytes); break;
    default: return 0;
    }
    return 1;
}

API cudaError_t cudaMemRangeGetAttribute(void *value, size_t size, enum cudaMemRangeAttribute which,
                                         const void *pointer, size_t bytes)
{
    cudaError_t status = check_range(pointer, bytes);
    if (!status && (!value || !size || size % sizeof(int)))
        status = cudaErrorInvalidValue;
    if (status)
        return done(status);
    pthread_mutex_lock(&lock);
    int is_known = tell_advice(value, size / sizeof(int), which, (uintptr_t)pointer, bytes);
    pthread_mutex_unlock(&lock);
    return done(is_known ? cudaSuccess : cudaErrorInvalidValue);
}

API cudaError_t cudaMemRangeGetAttributes(void **values, size_t *sizes,
                                          enum cudaMemRangeAttribute *which, size_t count,
                                          const void *pointer, size_t bytes)
{
    cudaError_t status = count ? cudaSuccess : cudaErrorInvalidValue;
    for (size_t i = 0; !status && i < count; i++)
        status = cudaMemRangeGetAttribute(values[i], sizes[i], which[i], pointer, bytes);
    return done(status);
}

#include "forwards_runtime_advice.h"
