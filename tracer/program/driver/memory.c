/* Memory: the runtime's, with addresses for pointers. */

#include "driver.h"

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
