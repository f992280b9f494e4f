/* Copies and sets: the runtime's, from places that are told in other ways. */

#include <string.h>

#include "driver.h"

static CUresult copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                     CUstream stream)
{
    return result(cudaMemcpyAsync(to, from, bytes, kind, stream));
}

#define HTOD cudaMemcpyHostToDevice
#define DTOH cudaMemcpyDeviceToHost

API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy(pointer(to), pointer(from), bytes, cudaMemcpyDefault, NULL);
}

API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy(pointer(to), pointer(from), bytes, cudaMemcpyDefault, stream);
}

API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes)
{
    return copy(pointer(to), from, bytes, HTOD, NULL);
}

API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy(pointer(to), from, bytes, HTOD, stream);
}

API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    return copy(to, pointer(from), bytes, DTOH, NULL);
}

API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy(to, pointer(from), bytes, DTOH, stream);
}

API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    return copy(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice, NULL);
}

API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice, stream);
}

API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                          CUcontext from_context, size_t bytes)
{
    (void)to_context, (void)from_context;
    return cuMemcpyDtoD_v2(to, from, bytes);
}

API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                               CUcontext from_context, size_t bytes, CUstream stream)
{
    (void)to_context, (void)from_context;
    return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

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

API CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *p)
{
    return cuMemcpy3DAsync_v2(p, NULL);
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

API CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *p)
{
    return cuMemcpy2DAsync_v2(p, NULL);
}

API CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *p)
{
    return cuMemcpy2DAsync_v2(p, NULL);
}

static CUresult copy_row(struct side to, struct side from, size_t bytes, CUstream stream)
{
    struct copy copy = {to, from, bytes, 1, 1, cudaMemcpyDefault};
    return result(submit_copy(stream, copy));
}

static struct side flat(const void *data)
{
    return (struct side){.data = (char *)data};
}

static struct side in_array(CUarray array, size_t x)
{
    return array_side((cudaArray_const_t)array, x, 0, 0);
}

API CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t x, const void *from, size_t bytes,
                                  CUstream stream)
{
    return copy_row(in_array(to, x), flat(from), bytes, stream);
}

API CUresult cuMemcpyHtoA_v2(CUarray to, size_t x, const void *from, size_t bytes)
{
    return cuMemcpyHtoAAsync_v2(to, x, from, bytes, NULL);
}

API CUresult cuMemcpyAtoHAsync_v2(void *to, CUarray from, size_t x, size_t bytes, CUstream stream)
{
    return copy_row(flat(to), in_array(from, x), bytes, stream);
}

API CUresult cuMemcpyAtoH_v2(void *to, CUarray from, size_t x, size_t bytes)
{
    return cuMemcpyAtoHAsync_v2(to, from, x, bytes, NULL);
}

API CUresult cuMemcpyDtoA_v2(CUarray to, size_t x, CUdeviceptr from, size_t bytes)
{
    return copy_row(in_array(to, x), flat(pointer(from)), bytes, NULL);
}

API CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t x, size_t bytes)
{
    return copy_row(flat(pointer(to)), in_array(from, x), bytes, NULL);
}

static CUresult set(CUdeviceptr place, size_t pitch, unsigned value, unsigned element, size_t width,
                    size_t height, CUstream stream)
{
    struct side to = {.data = pointer(place), .pitch = pitch};
    struct set set = {to, width, height, 1, value, element};
    return result(submit_set(stream, set));
}

API CUresult cuMemsetD8Async(CUdeviceptr place, unsigned char value, size_t count, CUstream stream)
{
    return set(place, 0, value, 1, count, 1, stream);
}

API CUresult cuMemsetD16Async(CUdeviceptr place, unsigned short value, size_t count, CUstream stream)
{
    return set(place, 0, value, 2, count, 1, stream);
}

API CUresult cuMemsetD32Async(CUdeviceptr place, unsigned value, size_t count, CUstream stream)
{
    return set(place, 0, value, 4, count, 1, stream);
}

API CUresult cuMemsetD8_v2(CUdeviceptr place, unsigned char value, size_t count)
{
    return cuMemsetD8Async(place, value, count, NULL);
}

API CUresult cuMemsetD16_v2(CUdeviceptr place, unsigned short value, size_t count)
{
    return cuMemsetD16Async(place, value, count, NULL);
}

API CUresult cuMemsetD32_v2(CUdeviceptr place, unsigned value, size_t count)
{
    return cuMemsetD32Async(place, value, count, NULL);
}

API CUresult cuMemsetD2D8Async(CUdeviceptr place, size_t pitch, unsigned char value, size_t width,
                               size_t height, CUstream stream)
{
    return set(place, pitch, value, 1, width, height, stream);
}

API CUresult cuMemsetD2D16Async(CUdeviceptr place, size_t pitch, unsigned short value, size_t width,
                                size_t height, CUstream stream)
{
    return set(place, pitch, value, 2, width, height, stream);
}

API CUresult cuMemsetD2D32Async(CUdeviceptr place, size_t pitch, unsigned value, size_t width,
                                size_t height, CUstream stream)
{
    return set(place, pitch, value, 4, width, height, stream);
}

API CUresult cuMemsetD2D8_v2(CUdeviceptr place, size_t pitch, unsigned char value, size_t width,
                             size_t height)
{
    return cuMemsetD2D8Async(place, pitch, value, width, height, NULL);
}

API CUresult cuMemsetD2D16_v2(CUdeviceptr place, size_t pitch, unsigned short value, size_t width,
                              size_t height)
{
    return cuMemsetD2D16Async(place, pitch, value, width, height, NULL);
}

API CUresult cuMemsetD2D32_v2(CUdeviceptr place, size_t pitch, unsigned value, size_t width,
                              size_t height)
{
    return cuMemsetD2D32Async(place, pitch, value, width, height, NULL);
}
