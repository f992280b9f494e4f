/* Memory: the runtime's, with addresses for pointers. */

#include <string.h>

#include "driver.h"

static CUresult made(CUdeviceptr *place, const void *data, cudaError_t status)
{
    if (!status)
        *place = address(data);
    return result(status);
}

API CUresult cuMemAlloc_v2(CUdeviceptr *place, size_t bytes)
{
    void *data = NULL;
    cudaError_t status = bytes ? allocate(&data, bytes, DEVICE, "") : cudaErrorInvalidValue;
    return made(place, data, status);
}

API CUresult cuMemAllocPitch_v2(CUdeviceptr *place, size_t *pitch, size_t width, size_t height,
                                unsigned element)
{
    (void)element;
    void *data = NULL;
    cudaError_t status = cudaMallocPitch(&data, pitch, width, height);
    return made(place, data, status);
}

API CUresult cuMemAllocManaged(CUdeviceptr *place, size_t bytes, unsigned flags)
{
    void *data = NULL;
    cudaError_t status =
        bytes ? cudaMallocManaged(&data, bytes, flags) : cudaErrorInvalidValue;
    return made(place, data, status);
}

API CUresult cuMemFree_v2(CUdeviceptr place)
{
    return result(cudaFree(pointer(place)));
}

API CUresult cuMemAllocHost_v2(void **data, size_t bytes)
{
    return result(cudaMallocHost(data, bytes));
}

API CUresult cuMemHostAlloc(void **data, size_t bytes, unsigned flags)
{
    return result(cudaHostAlloc(data, bytes, flags));
}

API CUresult cuMemFreeHost(void *data)
{
    return result(cudaFreeHost(data));
}

API CUresult cuMemHostRegister_v2(void *data, size_t bytes, unsigned flags)
{
    return result(cudaHostRegister(data, bytes, flags));
}

API CUresult cuMemHostUnregister(void *data)
{
    return result(cudaHostUnregister(data));
}

API CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *place, void *data, unsigned flags)
{
    void *there = NULL;
    cudaError_t status = cudaHostGetDevicePointer(&there, data, flags);
    return made(place, there, status);
}

API CUresult cuMemHostGetFlags(unsigned *flags, void *data)
{
    return result(cudaHostGetFlags(flags, data));
}

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    return result(cudaMemGetInfo(free_bytes, total));
}

API CUresult cuMemGetAddressRange_v2(CUdeviceptr *first, size_t *bytes, CUdeviceptr place)
{
    struct allocation found;
    if (!find_allocation(pointer(place), &found))
        return CUDA_ERROR_NOT_FOUND;
    if (first)
        *first = found.address;
    if (bytes)
        *bytes = found.bytes;
    return CUDA_SUCCESS;
}

static CUresult tell_attribute(void *value, CUpointer_attribute which, CUdeviceptr place,
                               const struct cudaPointerAttributes *own)
{
    struct allocation found = {0};
    if (!find_allocation(pointer(place), &found))
        found.address = place;
    switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return cuCtxGetCurrent(value);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value =
            own->type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)value = address(own->devicePointer);
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)value = own->hostPointer;
        return own->hostPointer ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)value = own->type == cudaMemoryTypeManaged;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)value = found.address;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)value = found.address; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = found.bytes; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: *(int *)value = 0; break;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(int *)value = 1; break;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES: *(uint64_t *)value = 0; break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(unsigned *)value = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(void **)value = NULL; break;
    default: return refuse_driver("this attribute of cuPointerGetAttribute");
    }
    return CUDA_SUCCESS;
}

/* Memory of the host that CUDA does not know has no attributes. */
API CUresult cuPointerGetAttribute(void *value, CUpointer_attribute which, CUdeviceptr place)
{
    struct cudaPointerAttributes own;
    CUresult status = result(cudaPointerGetAttributes(&own, pointer(place)));
    if (!status && own.type == cudaMemoryTypeUnregistered)
        status = CUDA_ERROR_INVALID_VALUE;
    return status ? status : tell_attribute(value, which, place, &own);
}

/* Here what has no attribute has a zero in its place; values are of 8 bytes or less. */
API CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *which, void **values,
                                    CUdeviceptr place)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t value = 0;
        CUresult status = cuPointerGetAttribute(&value, which[i], place);
        int is_wide = which[i] == CU_POINTER_ATTRIBUTE_CONTEXT ||
                      which[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                      which[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER ||
                      which[i] == CU_POINTER_ATTRIBUTE_BUFFER_ID ||
                      which[i] == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
                      which[i] == CU_POINTER_ATTRIBUTE_RANGE_SIZE ||
                      which[i] == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES ||
                      which[i] == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE;
        if (status == CUDA_ERROR_NOT_SUPPORTED)
            return status;
        memcpy(values[i], &value, is_wide ? sizeof value : sizeof(int));
    }
    return result(begin());
}

API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute which, CUdeviceptr place)
{
    (void)value, (void)which, (void)place;
    return result(begin());
}

API CUresult cuMemAllocAsync(CUdeviceptr *place, size_t bytes, CUstream stream)
{
    void *data = NULL;
    cudaError_t status = cudaMallocAsync(&data, bytes, stream);
    return made(place, data, status);
}

API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *place, size_t bytes, CUmemoryPool pool,
                                     CUstream stream)
{
    void *data = NULL;
    cudaError_t status = cudaMallocFromPoolAsync(&data, bytes, pool, stream);
    return made(place, data, status);
}

API CUresult cuMemFreeAsync(CUdeviceptr place, CUstream stream)
{
    return result(cudaFreeAsync(pointer(place), stream));
}

API CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    return result(cudaMemPoolCreate(pool, (const struct cudaMemPoolProps *)properties));
}

/* Memory of every kind is one memory here, and so is its pool. */
API CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *place, CUmemAllocationType kind)
{
    (void)place, (void)kind;
    return result(cudaDeviceGetDefaultMemPool(pool, 0));
}

API CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *place, CUmemAllocationType kind)
{
    (void)place, (void)kind;
    return result(cudaDeviceGetMemPool(pool, 0));
}

API CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    return result(cudaMemPoolDestroy(pool));
}

API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes)
{
    return result(cudaMemPoolTrimTo(pool, bytes));
}

API CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *list, size_t count)
{
    return result(cudaMemPoolSetAccess(pool, (const struct cudaMemAccessDesc *)list, count));
}

API CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *place)
{
    return result(cudaMemPoolGetAccess((enum cudaMemAccessFlags *)flags, pool,
                                       (struct cudaMemLocation *)place));
}

API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
    return result(cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)which, value));
}

API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute which, void *value)
{
    return result(cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)which, value));
}

/* Devices were numbers before they were places; -1 is the host. */
static CUmemLocation numbered(CUdevice number)
{
    CUmemLocation place = {number < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
                           {number < 0 ? 0 : number}};
    return place;
}

static struct cudaMemLocation as_runtime(CUmemLocation place)
{
    return (struct cudaMemLocation){(enum cudaMemLocationType)place.type, {place.id}};
}

API CUresult cuMemPrefetchAsync_v2(CUdeviceptr place, size_t bytes, CUmemLocation to,
                                   unsigned flags, CUstream stream)
{
    return result(cudaMemPrefetchAsync(pointer(place), bytes, as_runtime(to), flags, stream));
}

API CUresult cuMemPrefetchAsync(CUdeviceptr place, size_t bytes, CUdevice to, CUstream stream)
{
    return cuMemPrefetchAsync_v2(place, bytes, numbered(to), 0, stream);
}

/* The lists have the layout of the runtime's. */
API CUresult cuMemPrefetchBatchAsync(CUdeviceptr *places, size_t *bytes, size_t count,
                                     CUmemLocation *to, size_t *firsts, size_t to_count,
                                     unsigned long long flags, CUstream stream)
{
    return result(cudaMemPrefetchBatchAsync((void **)places, bytes, count,
                                            (struct cudaMemLocation *)to, firsts, to_count, flags,
                                            stream));
}

API CUresult cuMemDiscardBatchAsync(CUdeviceptr *places, size_t *bytes, size_t count,
                                    unsigned long long flags, CUstream stream)
{
    return result(cudaMemDiscardBatchAsync((void **)places, bytes, count, flags, stream));
}

API CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *places, size_t *bytes, size_t count,
                                               CUmemLocation *to, size_t *firsts, size_t to_count,
                                               unsigned long long flags, CUstream stream)
{
    return cuMemPrefetchBatchAsync(places, bytes, count, to, firsts, to_count, flags, stream);
}

API CUresult cuMemAdvise_v2(CUdeviceptr place, size_t bytes, CUmem_advise advice,
                            CUmemLocation where)
{
    return result(cudaMemAdvise(pointer(place), bytes, (enum cudaMemoryAdvise)advice,
                                as_runtime(where)));
}

API CUresult cuMemAdvise(CUdeviceptr place, size_t bytes, CUmem_advise advice, CUdevice where)
{
    return cuMemAdvise_v2(place, bytes, advice, numbered(where));
}

API CUresult cuMemRangeGetAttribute(void *value, size_t size, CUmem_range_attribute which,
                                    CUdeviceptr place, size_t bytes)
{
    return result(cudaMemRangeGetAttribute(value, size, (enum cudaMemRangeAttribute)which,
                                           pointer(place), bytes));
}

API CUresult cuMemRangeGetAttributes(void **values, size_t *sizes, CUmem_range_attribute *which,
                                     size_t count, CUdeviceptr place, size_t bytes)
{
    return result(cudaMemRangeGetAttributes(values, sizes, (enum cudaMemRangeAttribute *)which,
                                            count, pointer(place), bytes));
}
