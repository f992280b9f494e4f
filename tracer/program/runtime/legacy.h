/* Names that CUDA 13 no longer has, for programs written for older ones.
   Source: CUDA Runtime API 12.9, "Thread Management [DEPRECATED]", which names their successors. */
#define cudaThreadExit cudaDeviceReset
#define cudaThreadGetCacheConfig cudaDeviceGetCacheConfig
#define cudaThreadGetLimit cudaDeviceGetLimit
#define cudaThreadSetCacheConfig cudaDeviceSetCacheConfig
#define cudaThreadSetLimit cudaDeviceSetLimit
#define cudaThreadSynchronize cudaDeviceSynchronize
