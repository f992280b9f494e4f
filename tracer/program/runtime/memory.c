/* Memory: all of it lies in the arena, so that device pointers are good in the program, too. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"

#define OF_DRIVER 0 /* the recorder places it as the driver would */
#define ALIGNMENT 512
#define PITCH 512
#define WIDEST_ADDRESS 57 /* bits, of x86-64 with five levels of pages */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *table; /* by rising address */
static size_t count, room;
static size_t registrations; /* how many of them are registered memory */

/* The place of the last allocation that begins at or before an address, plus 1. */
static size_t search(uint64_t address)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct allocation allocation)
{
    if (count == room) {
        room = 2 * room + 64;
        table = realloc(table, room * sizeof *table);
        if (!table)
            abort();
    }
    size_t at = search(allocation.address);
    memmove(table + at + 1, table + at, (count - at) * sizeof *table);
    table[at] = allocation;
    count++;
}

void note_allocation(const void *pointer, size_t bytes, enum place place)
{
    struct allocation allocation = {(uint64_t)(uintptr_t)pointer, bytes, place, NULL, 0};
    pthread_mutex_lock(&lock);
    insert(allocation);
    pthread_mutex_unlock(&lock);
}

int find_allocation(const void *pointer, struct allocation *found)
{
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    pthread_mutex_lock(&lock);
    size_t at = search(address);
    int is_inside = at && address - table[at - 1].address < table[at - 1].bytes;
    if (is_inside)
        *found = table[at - 1];
    pthread_mutex_unlock(&lock);
    return is_inside;
}

enum place place_of(const void *pointer)
{
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    struct allocation found;
    if (address < device.base || address >= device.base + device.bytes)
        return HOST;
    return find_allocation(pointer, &found) ? found.place : DEVICE;
}

/* The allocation that begins there; the lock is held. */
static struct allocation *at(const void *pointer)
{
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    size_t found = search(address);
    return found && table[found - 1].address == address ? table + found - 1 : NULL;
}

int is_of_graph(const void *pointer)
{
    pthread_mutex_lock(&lock);
    struct allocation *found = at(pointer);
    int is_its = found && found->is_of_graph;
    pthread_mutex_unlock(&lock);
    return is_its;
}

void give_to_graph(const void *pointer)
{
    pthread_mutex_lock(&lock);
    struct allocation *found = at(pointer);
    if (found)
        found->is_of_graph = 1;
    pthread_mutex_unlock(&lock);
}

static cudaError_t reserve(struct allocation *allocation, size_t align, const char *name)
{
    struct message message = question(ALLOCATE);
    put64(&message, allocation->bytes);
    put64(&message, align);
    put_text(&message, name);
    struct stack stack;
    find_stack(&stack);
    stack.count = is_in_program(&stack) ? stack.count : 0; /* a library's is of no use to anybody */
    put_stack(&message, &stack);
    put32(&message, allocation->place);
    cudaError_t status = ask(&message);
    if (!status) {
        allocation->address = take64(&message);
        pthread_mutex_lock(&lock);
        insert(*allocation);
        pthread_mutex_unlock(&lock);
    }
    close_message(&message);
    return status;
}

static cudaError_t allocate_aligned(void **pointer, size_t bytes, size_t align, enum place place,
                                    const char *name)
{
    struct allocation allocation = {0, bytes, place, NULL, 0};
    cudaError_t status = begin();
    if (!pointer)
        return cudaErrorInvalidValue;
    if (!bytes)
        *pointer = NULL;
    if (status || !bytes)
        return status;
    status = reserve(&allocation, align, name);
    if (!status) {
        *pointer = (void *)(uintptr_t)allocation.address;
        forget_advice(*pointer, bytes);
    }
    return status;
}

cudaError_t allocate(void **pointer, size_t bytes, enum place place, const char *name)
{
    return allocate_aligned(pointer, bytes, OF_DRIVER, place, name);
}

/* Pools lay what they are asked for one behind the other, however large it is. */
cudaError_t allocate_in_pool(void **pointer, size_t bytes)
{
    return allocate_aligned(pointer, bytes, ALIGNMENT, DEVICE, "");
}

cudaError_t release(void *pointer)
{
    pthread_mutex_lock(&lock);
    struct allocation *found = at(pointer);
    if (found) {
        memmove(found, found + 1, (table + count - found - 1) * sizeof *table);
        count--;
    }
    pthread_mutex_unlock(&lock);
    if (!found)
        return cudaErrorInvalidValue;
    struct message message = question(FREE);
    put64(&message, (uint64_t)(uintptr_t)pointer);
    cudaError_t status = ask(&message);
    close_message(&message);
    return status;
}

cudaError_t free_if_any(void *pointer)
{
    cudaError_t status = begin();
    return status || !pointer || is_of_graph(pointer) ? status : release(pointer);
}

/* Rows that begin at multiples of PITCH. No memory has more bytes than 64 bits can say; a chip lets
   the product wrap, and calls it an invalid value if nothing is left of it. */
cudaError_t allocate_rows(void **pointer, size_t *pitch, size_t width, size_t rows,
                          size_t slices)
{
    size_t bytes, padded;
    int is_empty = !width || !rows || !slices;
    if (__builtin_add_overflow(width, PITCH - 1, &padded) && !is_empty)
        return cudaErrorInvalidValue;
    padded = padded / PITCH * PITCH;
    int is_endless = __builtin_mul_overflow(padded, rows, &bytes);
    is_endless |= __builtin_mul_overflow(bytes, slices, &bytes);
    if (is_endless && !is_empty)
        return padded * rows * slices ? cudaErrorMemoryAllocation : cudaErrorInvalidValue;
    *pitch = padded;
    return allocate(pointer, bytes, DEVICE, "");
}

API cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
    cudaError_t status = allocate_rows(&pitched->ptr, &pitched->pitch, extent.width, extent.height,
                                       extent.depth);
    pitched->xsize = extent.width;
    pitched->ysize = extent.height;
    return done(status);
}

/* Memory of the program's own becomes the device's: its pages move into the arena and are mapped
   where they were. */
static cudaError_t lend(char *first, size_t bytes)
{
    struct allocation allocation = {0, bytes, PINNED, first};
    cudaError_t status = reserve(&allocation, sysconf(_SC_PAGESIZE), "");
    if (status)
        return status;
    void *there = (void *)(uintptr_t)allocation.address;
    memcpy(there, first, bytes);
    void *moved = mremap(there, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, first);
    registrations++;
    return moved == first ? cudaSuccess : cudaErrorMemoryAllocation;
}

static struct allocation *registered(const void *pointer)
{
    for (size_t i = 0; registrations && i < count; i++) {
        const char *first = table[i].registered;
        if (first && (const char *)pointer >= first && (const char *)pointer < first + table[i].bytes)
            return table + i;
    }
    return NULL;
}

static char *page_of(const void *pointer)
{
    return (char *)((uintptr_t)pointer & ~(uintptr_t)(sysconf(_SC_PAGESIZE) - 1));
}

/* Whether there is memory at all of these bytes' pages, some at a time: the list of them has an end. */
int is_mapped(const void *pointer, size_t bytes)
{
    static const size_t most = (size_t)1 << 30;
    if (bytes > MOST_ADDRESS) /* an H200 answers so of 2^48 bytes, and of 2^62 and more */
        return done(bytes >> WIDEST_ADDRESS ? cudaErrorNotSupported : cudaErrorMemoryAllocation);
    char *first = page_of(pointer);
    size_t whole = (const char *)pointer + bytes - first, page = sysconf(_SC_PAGESIZE);
    unsigned char *present = malloc((whole < most ? whole : most) / page + 1);
    int status = 0;
    for (size_t at = 0; !status && at < whole; at += most)
        status = mincore(first + at, whole - at < most ? whole - at : most, present);
    free(present);
    return !status;
}

API cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    (void)flags;
    cudaError_t status = begin();
    if (status || !pointer || !bytes)
        return done(status ? status : cudaErrorInvalidValue);
    if (place_of(pointer) != HOST || registered(pointer))
        return done(cudaErrorHostMemoryAlreadyRegistered);
    uintptr_t last;
    if (__builtin_add_overflow((uintptr_t)pointer, bytes - 1, &last))
        return done(cudaErrorInvalidValue);
    if (bytes > MOST_ADDRESS) /* an H200 answers so of 2^48 bytes, and of 2^62 and more */
        return done(bytes >> WIDEST_ADDRESS ? cudaErrorNotSupported : cudaErrorMemoryAllocation);
    char *first = page_of(pointer);
    size_t whole = page_of((void *)last) - first + sysconf(_SC_PAGESIZE);
    return done(is_mapped(first, whole) ? lend(first, whole) : cudaErrorInvalidValue);
}

API cudaError_t cudaHostUnregister(void *pointer)
{
    cudaError_t status = begin();
    struct allocation *found = registered(pointer);
    if (status || !found)
        return done(status ? status : cudaErrorHostMemoryNotRegistered);
    struct allocation own = *found;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    if (mmap(own.registered, own.bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
        return done(cudaErrorUnknown);
    memcpy(own.registered, (void *)(uintptr_t)own.address, own.bytes);
    registrations--;
    return done(release((void *)(uintptr_t)own.address));
}

int can_use_registered(void) { return device.facts.major >= 6; }

/* Where the device has the bytes of registered memory; NULL for other pointers. */
static void *on_device_of(const void *pointer)
{
    struct allocation *found = registered(pointer);
    ptrdiff_t offset = found ? (const char *)pointer - (char *)found->registered : 0;
    return found ? (char *)(uintptr_t)found->address + offset : NULL;
}

/* A kernel may be given registered memory by the program's own pointers, also inside a struct. */
void replace_registered(char *value, size_t bytes)
{
    for (size_t at = 0; registrations && can_use_registered() && at + 8 <= bytes; at += 8) {
        void *pointer, *other;
        memcpy(&pointer, value + at, 8);
        other = on_device_of(pointer);
        memcpy(value + at, other ? &other : &pointer, 8);
    }
}

API cudaError_t cudaHostGetDevicePointer(void **on_device, void *pointer, unsigned flags)
{
    (void)flags;
    cudaError_t status = begin();
    if (status)
        return done(status);
    void *other = on_device_of(pointer);
    if (other)
        *on_device = other;
    else if (place_of(pointer) != HOST)
        *on_device = pointer;
    else
        return done(cudaErrorInvalidValue);
    return done(cudaSuccess);
}

API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    static const enum cudaMemoryType types[] = {
        [HOST] = cudaMemoryTypeUnregistered,
        [DEVICE] = cudaMemoryTypeDevice,
        [MANAGED] = cudaMemoryTypeManaged,
        [PINNED] = cudaMemoryTypeHost,
    };
    cudaError_t status = begin();
    if (status)
        return done(status);
    enum place place = place_of(pointer);
    struct allocation *lent = place == HOST ? registered(pointer) : NULL;
    memset(attributes, 0, sizeof *attributes);
    attributes->type = lent ? cudaMemoryTypeHost : types[place];
    attributes->device = place == HOST && !lent ? cudaInvalidDeviceId : 0;
    if (place == HOST && !lent)
        return done(cudaSuccess);
    attributes->devicePointer = (void *)pointer;
    if (lent)
        cudaHostGetDevicePointer(&attributes->devicePointer, (void *)pointer, 0);
    attributes->hostPointer = place == DEVICE ? NULL : (void *)pointer;
    return done(cudaSuccess);
}

API cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    cudaError_t status = begin();
    if (status)
        return done(status);
    *free_bytes = *total = device.facts.memory_bytes;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < count; i++)
        if (table[i].place != PINNED)
            *free_bytes -= table[i].bytes < *free_bytes ? table[i].bytes : *free_bytes;
    pthread_mutex_unlock(&lock);
    return done(cudaSuccess);
}

#include "forwards_runtime_memory.h"
