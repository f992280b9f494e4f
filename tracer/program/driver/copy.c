/* Copies and sets: the runtime's, from places that are told in other ways. */

#include "driver.h"

/* One side of a copy of rows and slices: memory of some kind, or an array. */
static struct side side_of(CUmemorytype type, const void *host, CUdeviceptr there, CUarray array,
                           size_t pitch, size_t height, size_t x, size_t y, size_t z)
{
    if (type == CU_MEMORYTYPE_ARRAY)
        return array_side((cudaArray_const_t)array, x, y, z);
    char *data = type == CU_MEMORYTYPE_HOST ? (char *)host : pointer(there);
    return (struct side){data, pitch, height, {x, y, z}, NULL};
}

/* A pitch of 0 means rows side by side. */
CUresult box_of(const CUDA_MEMCPY3D *given, struct copy *copy)
{
    CUDA_MEMCPY3D own = *given, *p = &own;
    p->srcPitch = p->srcPitch ? p->srcPitch : p->WidthInBytes;
    p->dstPitch = p->dstPitch ? p->dstPitch : p->WidthInBytes;
    p->srcHeight = p->srcHeight ? p->srcHeight : p->Height;
    p->dstHeight = p->dstHeight ? p->dstHeight : p->Height;
    *copy = (struct copy){
        .to = side_of(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstPitch,
                      p->dstHeight, p->dstXInBytes, p->dstY, p->dstZ),
        .from = side_of(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcPitch,
                        p->srcHeight, p->srcXInBytes, p->srcY, p->srcZ),
        .width = p->WidthInBytes,
        .rows = p->Height,
        .slices = p->Depth,
        .kind = cudaMemcpyDefault,
    };
    return result(check_copy(copy));
}

API CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *p, CUstream stream)
{
    struct copy copy;
    CUresult status = box_of(p, &copy);
    return status ? status : result(submit_copy(stream, copy));
}

API CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *p, CUstream stream)
{
    CUDA_MEMCPY3D box = {
        .srcMemoryType = p->srcMemoryType, .srcHost = p->srcHost, .srcDevice = p->srcDevice,
        .srcArray = p->srcArray, .srcPitch = p->srcPitch, .srcXInBytes = p->srcXInBytes,
        .srcY = p->srcY, .dstMemoryType = p->dstMemoryType, .dstHost = p->dstHost,
        .dstDevice = p->dstDevice, .dstArray = p->dstArray, .dstPitch = p->dstPitch,
        .dstXInBytes = p->dstXInBytes, .dstY = p->dstY, .WidthInBytes = p->WidthInBytes,
        .Height = p->Height, .Depth = 1,
    };
    return cuMemcpy3DAsync_v2(&box, stream);
}

CUresult copy_row(struct side to, struct side from, size_t bytes, CUstream stream)
{
    struct copy copy = {to, from, bytes, 1, 1, cudaMemcpyDefault};
    return result(submit_copy(stream, copy));
}

CUresult set_elements(CUdeviceptr place, size_t pitch, unsigned value, unsigned element, size_t width,
                      size_t height, CUstream stream)
{
    struct side to = {.data = pointer(place), .pitch = pitch};
    struct set set = {to, width, height, 1, value, element};
    return result(submit_set(stream, set));
}
