/* Checks of CUDA's calls and the choice of a device, as CUDA's samples call them. It is taken where a
   program's own folders have none. */

#ifndef COMMON_HELPER_CUDA_H_
#define COMMON_HELPER_CUDA_H_

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include "helper_string.h"

#ifndef MAX
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#endif

inline const char *_cudaGetErrorEnum(cudaError_t status)
{
    return cudaGetErrorName(status);
}

/* Statuses of the driver and of libraries have numbers. */
template <class T> inline const char *_cudaGetErrorEnum(T)
{
    return "<unknown>";
}

template <class T> inline void check(T status, const char *call, const char *file, int line)
{
    if (!status)
        return;
    fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\" \n", file, line, (int)status,
            _cudaGetErrorEnum(status), call);
    exit(EXIT_FAILURE);
}
#define checkCudaErrors(call) check((call), #call, __FILE__, __LINE__)

inline void __getLastCudaError(const char *message, const char *file, int line, bool ends = true)
{
    cudaError_t status = cudaGetLastError();
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "%s(%i) : getLastCudaError() CUDA error : %s : (%d) %s.\n", file, line, message,
            (int)status, cudaGetErrorString(status));
    if (ends)
        exit(EXIT_FAILURE);
}
#define getLastCudaError(message) __getLastCudaError(message, __FILE__, __LINE__)
#define printLastCudaError(message) __getLastCudaError(message, __FILE__, __LINE__, false)

/* Lanes of single precision in an SM: CUDA C Programming Guide, "Arithmetic Instructions". */
inline int _ConvertSMVer2Cores(int major, int minor)
{
    switch (major * 10 + minor) {
    case 30: case 32: case 35: case 37: return 192;
    case 60: case 70: case 72: case 75: case 80: return 64;
    default: return 128;
    }
}

inline const char *_ConvertSMVer2ArchName(int major, int minor)
{
    (void)minor;
    const char *const names[] = {"", "Tesla", "Fermi", "Kepler", "", "Maxwell", "Pascal", "Volta",
                                 "Ampere", "Hopper", "Blackwell", "Blackwell", "Blackwell"};
    return major == 7 && minor == 5 ? "Turing" : major == 8 && minor == 9 ? "Ada"
           : major < 13 ? names[major] : "";
}

inline int gpuDeviceInit(int number)
{
    checkCudaErrors(cudaSetDevice(number < 0 ? 0 : number));
    return number < 0 ? 0 : number;
}

inline int gpuGetMaxGflopsDeviceId() { return 0; }

inline int findCudaDevice(int argc, const char **argv)
{
    cudaDeviceProp properties;
    int number = gpuDeviceInit(getCmdLineArgumentInt(argc, argv, "device"));
    checkCudaErrors(cudaGetDeviceProperties(&properties, number));
    printf("GPU Device %d: \"%s\" with compute capability %d.%d\n\n", number, properties.name,
           properties.major, properties.minor);
    return number;
}

inline bool checkCudaCapabilities(int major, int minor)
{
    cudaDeviceProp properties;
    checkCudaErrors(cudaGetDeviceProperties(&properties, 0));
    return properties.major > major || (properties.major == major && properties.minor >= minor);
}

#endif
