/* What a name means in CUDA 12, where that differs: `twelve_X` is X of libcudart.so.12. */

#include "runtime.h"

#define TWELVE(name) __asm__(".symver twelve_" #name ", " #name "@libcudart.so.12");

/* cudaDeviceProp of CUDA 12: eight numbers that 13 has no more, and between them what it still has
   in that order. */
struct properties {
    char names_to_grid[348];
    int clockRate;
    size_t totalConstMem;
    int capability[2];
    size_t texture_alignments[2];
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, kinds[2], computeMode;
    int maxTexture1D[2], maxTexture1DLinear, textures_and_surfaces[37];
    size_t surfaceAlignment;
    int abilities[8], memoryClockRate, bus_to_caches[7];
    size_t sharedMemPerMultiprocessor;
    int registers_to_atomics[5], singleToDoublePrecisionPerfRatio, accesses[5];
    int cooperativeMultiDeviceLaunch;
    size_t sharedMemPerBlockOptin;
    int tables_to_window[4];
    size_t reservedSharedMemPerBlock;
    int host_to_pointers[13], reserved[63];
};
_Static_assert(sizeof(struct properties) == 1032, "cudaDeviceProp of CUDA 12 has 1032 bytes");

API cudaError_t twelve_cudaGetDeviceProperties_v2(struct properties *p, int number)
{
    struct cudaDeviceProp now;
    cudaError_t status = cudaGetDeviceProperties(&now, number);
    if (status)
        return status;
    memset(p, 0, sizeof *p);
#define TAKE(field, first) memcpy(&p->field, &now.first, sizeof p->field)
    TAKE(names_to_grid, name);
    TAKE(totalConstMem, totalConstMem);
    TAKE(capability, major);
    TAKE(texture_alignments, textureAlignment);
    TAKE(multiProcessorCount, multiProcessorCount);
    TAKE(kinds, integrated);
    TAKE(maxTexture1D, maxTexture1D);
    TAKE(textures_and_surfaces, maxTexture2D);
    TAKE(surfaceAlignment, surfaceAlignment);
    TAKE(abilities, concurrentKernels);
    TAKE(bus_to_caches, memoryBusWidth);
    TAKE(sharedMemPerMultiprocessor, sharedMemPerMultiprocessor);
    TAKE(registers_to_atomics, regsPerMultiprocessor);
    TAKE(accesses, pageableMemoryAccess);
    TAKE(sharedMemPerBlockOptin, sharedMemPerBlockOptin);
    TAKE(tables_to_window, pageableMemoryAccessUsesHostPageTables);
    TAKE(reservedSharedMemPerBlock, reservedSharedMemPerBlock);
    TAKE(host_to_pointers, hostRegisterSupported);
#undef TAKE
    p->clockRate = device.facts.kilohertz;
    p->memoryClockRate = device.facts.memory_kilohertz;
    p->maxTexture1DLinear = 1 << 28;
    p->deviceOverlap = 1;
    cudaDeviceGetAttribute(&p->singleToDoublePrecisionPerfRatio,
                           cudaDevAttrSingleToDoublePrecisionPerfRatio, number);
    return cudaSuccess;
}
TWELVE(cudaGetDeviceProperties_v2)

/* Behind the last of these pointers CUDA 13 has 64 bytes more. */
API cudaError_t twelve_cudaPointerGetAttributes(struct cudaPointerAttributes *attributes,
                                                const void *pointer)
{
    struct cudaPointerAttributes now;
    cudaError_t status = cudaPointerGetAttributes(&now, pointer);
    if (!status)
        memcpy(attributes, &now, (char *)(&now.hostPointer + 1) - (char *)&now);
    return status;
}
TWELVE(cudaPointerGetAttributes)

/* Devices were numbers; the host was -1. */
static struct cudaMemLocation numbered(int number)
{
    if (number == cudaCpuDeviceId)
        return (struct cudaMemLocation){cudaMemLocationTypeHost, {0}};
    return (struct cudaMemLocation){cudaMemLocationTypeDevice, {number}};
}

#include "forwards_runtime_twelve.h"
TWELVE(cudaMemAdvise)
TWELVE(cudaMemPrefetchAsync)
TWELVE(cudaStreamGetCaptureInfo)
TWELVE(cudaStreamGetCaptureInfo_v2)
TWELVE(cudaGraphAddDependencies)
TWELVE(cudaGraphAddNode)
