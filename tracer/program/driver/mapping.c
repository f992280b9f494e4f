/* Virtual memory management: ranges of addresses are reserved, memory is created, and the one is
   mapped at the other. Here memory lies where it is mapped first. What is unmapped while its handle
   lives is kept aside until it is mapped again. */

#include "driver.h"

#define GRANULARITY ((size_t)2 << 20)

struct memory {
    CUmemAllocationProp properties;
    size_t bytes;
    int users; /* its handle, and where it is mapped */
    CUdeviceptr place;
    char *kept;
};

static struct mapping {
    struct mapping *next;
    CUdeviceptr place;
    size_t bytes;
    struct memory *memory;
} *mappings;

static struct memory *memory_of(CUmemGenericAllocationHandle handle)
{
    return (struct memory *)(uintptr_t)handle;
}

static void drop(struct memory *memory)
{
    if (--memory->users)
        return;
    free(memory->kept);
    free(memory);
}

static struct mapping *mapping_at(CUdeviceptr place)
{
    struct mapping *each = mappings;
    while (each && (place < each->place || place >= each->place + each->bytes))
        each = each->next;
    return each;
}

API CUresult cuMemAddressReserve(CUdeviceptr *place, size_t bytes, size_t alignment,
                                 CUdeviceptr wish, unsigned long long flags)
{
    (void)wish;
    if (!place || !bytes || bytes % GRANULARITY || flags || alignment & (alignment - 1))
        return CUDA_ERROR_INVALID_VALUE;
    struct message message = question(RESERVE);
    put64(&message, bytes);
    put64(&message, alignment > GRANULARITY ? alignment : GRANULARITY);
    cudaError_t status = ask(&message);
    if (!status)
        *place = take64(&message);
    close_message(&message);
    return result(status);
}

API CUresult cuMemAddressFree(CUdeviceptr place, size_t bytes)
{
    (void)bytes;
    struct message message = question(UNRESERVE);
    put64(&message, place);
    cudaError_t status = ask(&message);
    close_message(&message);
    return result(status);
}

API CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                         const CUmemAllocationProp *properties, unsigned long long flags)
{
    CUresult status = result(begin());
    if (status || !bytes || bytes % GRANULARITY || flags)
        return status ? status : CUDA_ERROR_INVALID_VALUE;
    if (bytes > (uint64_t)device.facts.memory_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct memory *memory = calloc(1, sizeof *memory);
    memory->properties = *properties;
    memory->bytes = bytes;
    memory->users = 1;
    *handle = (uintptr_t)memory;
    return CUDA_SUCCESS;
}

API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *data)
{
    struct mapping *found = mapping_at(address(data));
    if (!found)
        return CUDA_ERROR_INVALID_VALUE;
    found->memory->users++;
    *handle = (uintptr_t)found->memory;
    return result(begin());
}

static CUresult fill(CUdeviceptr place, size_t bytes)
{
    struct message message = question(MAP);
    put64(&message, place);
    put64(&message, bytes);
    cudaError_t status = ask(&message);
    close_message(&message);
    return result(status);
}

API CUresult cuMemMap(CUdeviceptr place, size_t bytes, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    struct memory *memory = memory_of(handle);
    if (!memory || offset || flags || bytes != memory->bytes ||
        place % GRANULARITY || mapping_at(place))
        return CUDA_ERROR_INVALID_VALUE;
    if (memory->place)
        return refuse_driver("cuMemMap of memory that is mapped elsewhere, too,");
    CUresult status = fill(place, bytes);
    if (status)
        return status;
    struct mapping *mapping = malloc(sizeof *mapping);
    *mapping = (struct mapping){mappings, place, bytes, memory};
    mappings = mapping;
    memory->users++;
    memory->place = place;
    note_allocation(pointer(place), bytes, DEVICE);
    if (memory->kept)
        memcpy(pointer(place), memory->kept, bytes);
    return CUDA_SUCCESS;
}

static CUresult unmap(struct mapping *mapping)
{
    struct memory *memory = mapping->memory;
    if (memory->users > 1) {
        memory->kept = realloc(memory->kept, memory->bytes);
        if (!memory->kept)
            return CUDA_ERROR_OUT_OF_MEMORY;
        memcpy(memory->kept, pointer(mapping->place), memory->bytes);
    }
    memory->place = 0;
    drop(memory);
    return result(release(pointer(mapping->place)));
}

API CUresult cuMemUnmap(CUdeviceptr place, size_t bytes)
{
    CUresult status = mapping_at(place) && bytes <= PTRDIFF_MAX ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
    for (struct mapping **at = &mappings; *at && !status;) {
        struct mapping *each = *at;
        if (each->place < place || each->place + each->bytes > place + bytes) {
            at = &each->next;
            continue;
        }
        status = unmap(each);
        *at = each->next;
        free(each);
    }
    return status;
}

API CUresult cuMemSetAccess(CUdeviceptr place, size_t bytes, const CUmemAccessDesc *access,
                            size_t count)
{
    (void)access, (void)count;
    for (size_t done = 0; done < bytes; done += GRANULARITY)
        if (!mapping_at(place + done))
            return CUDA_ERROR_INVALID_VALUE;
    return result(begin());
}

#include "forwards_driver_mapping.h"
