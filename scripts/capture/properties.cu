// What the runtime and the driver answer when a program asks about the device, as CSV.
// nvcc -arch=sm_90 properties.cu -lcuda; ./a.out > tests/validate/properties.csv
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>
#define SAY(field) printf("property " #field ",%lld\n", (long long)p.field);
int main()
{
    cudaDeviceProp p = {};
    cudaGetDeviceProperties(&p, 0);
    printf("question,answer\nname,%s\n", p.name);
    SAY(totalGlobalMem) SAY(sharedMemPerBlock) SAY(regsPerBlock) SAY(warpSize) SAY(memPitch)
    SAY(maxThreadsPerBlock) SAY(maxThreadsDim[0]) SAY(maxThreadsDim[1]) SAY(maxThreadsDim[2])
    SAY(maxGridSize[0]) SAY(maxGridSize[1]) SAY(maxGridSize[2]) SAY(totalConstMem) SAY(major)
    SAY(minor) SAY(textureAlignment) SAY(texturePitchAlignment) SAY(multiProcessorCount)
    SAY(integrated) SAY(canMapHostMemory) SAY(maxTexture1D) SAY(maxTexture1DMipmap)
    SAY(maxTexture2D[0]) SAY(maxTexture2D[1]) SAY(maxTexture2DMipmap[0])
    SAY(maxTexture2DMipmap[1]) SAY(maxTexture2DLinear[0]) SAY(maxTexture2DLinear[1])
    SAY(maxTexture2DLinear[2]) SAY(maxTexture2DGather[0]) SAY(maxTexture2DGather[1])
    SAY(maxTexture3D[0]) SAY(maxTexture3D[1]) SAY(maxTexture3D[2]) SAY(maxTexture3DAlt[0])
    SAY(maxTexture3DAlt[1]) SAY(maxTexture3DAlt[2]) SAY(maxTextureCubemap)
    SAY(maxTexture1DLayered[0]) SAY(maxTexture1DLayered[1]) SAY(maxTexture2DLayered[0])
    SAY(maxTexture2DLayered[1]) SAY(maxTexture2DLayered[2]) SAY(maxTextureCubemapLayered[0])
    SAY(maxTextureCubemapLayered[1]) SAY(maxSurface1D) SAY(maxSurface2D[0]) SAY(maxSurface2D[1])
    SAY(maxSurface3D[0]) SAY(maxSurface3D[1]) SAY(maxSurface3D[2]) SAY(maxSurface1DLayered[0])
    SAY(maxSurface1DLayered[1]) SAY(maxSurface2DLayered[0]) SAY(maxSurface2DLayered[1])
    SAY(maxSurface2DLayered[2]) SAY(maxSurfaceCubemap) SAY(maxSurfaceCubemapLayered[0])
    SAY(maxSurfaceCubemapLayered[1]) SAY(surfaceAlignment) SAY(concurrentKernels) SAY(ECCEnabled)
    SAY(pciBusID) SAY(pciDeviceID) SAY(pciDomainID) SAY(tccDriver) SAY(asyncEngineCount)
    SAY(unifiedAddressing) SAY(memoryBusWidth) SAY(l2CacheSize) SAY(persistingL2CacheMaxSize)
    SAY(maxThreadsPerMultiProcessor) SAY(streamPrioritiesSupported) SAY(globalL1CacheSupported)
    SAY(localL1CacheSupported) SAY(sharedMemPerMultiprocessor) SAY(regsPerMultiprocessor)
    SAY(managedMemory) SAY(isMultiGpuBoard) SAY(multiGpuBoardGroupID)
    SAY(hostNativeAtomicSupported) SAY(pageableMemoryAccess) SAY(concurrentManagedAccess)
    SAY(computePreemptionSupported) SAY(canUseHostPointerForRegisteredMem) SAY(cooperativeLaunch)
    SAY(sharedMemPerBlockOptin) SAY(pageableMemoryAccessUsesHostPageTables)
    SAY(directManagedMemAccessFromHost) SAY(maxBlocksPerMultiProcessor)
    SAY(accessPolicyMaxWindowSize) SAY(reservedSharedMemPerBlock) SAY(hostRegisterSupported)
    SAY(sparseCudaArraySupported) SAY(hostRegisterReadOnlySupported)
    SAY(timelineSemaphoreInteropSupported) SAY(memoryPoolsSupported) SAY(gpuDirectRDMASupported)
    SAY(gpuDirectRDMAFlushWritesOptions) SAY(gpuDirectRDMAWritesOrdering)
    SAY(memoryPoolSupportedHandleTypes) SAY(deferredMappingCudaArraySupported)
    SAY(ipcEventSupported) SAY(clusterLaunch) SAY(unifiedFunctionPointers) SAY(deviceNumaConfig)
    SAY(deviceNumaId) SAY(mpsEnabled) SAY(hostNumaId) SAY(gpuPciDeviceID) SAY(gpuPciSubsystemID)
    SAY(hostNumaMultinodeIpcSupported)
    for (int i = 0; i <= 160; i++) { // the status and the value, of the runtime and of the driver
        int a = -777, b = -777;
        int s = cudaDeviceGetAttribute(&a, (cudaDeviceAttr)i, 0);
        int t = cuDeviceGetAttribute(&b, (CUdevice_attribute)i, 0);
        printf("attribute %d,%d %d; %d %d\n", i, s, a, t, b);
    }
    for (int i = 0; i < 12; i++) {
        size_t n = 7;
        int s = cudaDeviceGetLimit(&n, (cudaLimit)i);
        printf("limit %d,%d %zu\n", i, s, n);
    }
    cudaMemPool_t pool;
    cudaDeviceGetDefaultMemPool(&pool, 0);
    for (int i = 1; i < 14; i++) {
        unsigned long long v = 0;
        int s = cudaMemPoolGetAttribute(pool, (cudaMemPoolAttr)i, &v);
        printf("pool attribute %d,%d %llu\n", i, s, v);
    }
}
