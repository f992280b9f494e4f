/* Surface references, which CUDA 12 no longer has: surface objects that the program's constants
   hold. It is included when a program does not compile without.
   Source: CUDA C Programming Guide 11.8, B.9.2 "Surface Reference API". */

#if defined(__CUDACC__) && !defined(CUTRACE_SURFACE_REFERENCE)
#define CUTRACE_SURFACE_REFERENCE

#include <cuda_runtime.h>

#ifndef cudaSurfaceType1D
#define cudaSurfaceType1D 0x01
#define cudaSurfaceType2D 0x02
#define cudaSurfaceType3D 0x03
#define cudaSurfaceTypeCubemap 0x0C
#define cudaSurfaceType1DLayered 0xF1
#define cudaSurfaceType2DLayered 0xF2
#define cudaSurfaceTypeCubemapLayered 0xFC
#endif

struct surfaceReference {
    cudaSurfaceObject_t object;
    cudaChannelFormatDesc channelDesc;
};

template <class T, int type = cudaSurfaceType1D> struct cutrace_surface : surfaceReference {
    __host__ __device__ constexpr cutrace_surface()
        : surfaceReference{0, {0, 0, 0, 0, cudaChannelFormatKindNone}}
    {
    }
};

/* The host's own copy of a reference is its symbol. */
static inline cudaError_t cudaBindSurfaceToArray(const surfaceReference *reference,
                                                 cudaArray_const_t array,
                                                 const cudaChannelFormatDesc *)
{
    cudaResourceDesc from = {};
    from.resType = cudaResourceTypeArray;
    from.res.array.array = const_cast<cudaArray_t>(array);
    cudaSurfaceObject_t object;
    cudaError_t status = cudaCreateSurfaceObject(&object, &from);
    const void *symbol = reference;
    return status ? status : cudaMemcpyToSymbol(symbol, &object, sizeof object);
}

template <class T, int type>
cudaError_t cudaBindSurfaceToArray(const cutrace_surface<T, type> &reference,
                                   cudaArray_const_t array, const cudaChannelFormatDesc &texel)
{
    return cudaBindSurfaceToArray(&reference, array, &texel);
}

template <class T, int type>
cudaError_t cudaBindSurfaceToArray(const cutrace_surface<T, type> &reference,
                                   cudaArray_const_t array)
{
    return cudaBindSurfaceToArray(&reference, array, nullptr);
}

static inline cudaError_t cudaGetSurfaceReference(const surfaceReference **reference,
                                                  const void *symbol)
{
    *reference = static_cast<const surfaceReference *>(symbol);
    return cudaSuccess;
}

/* A read gives the value or puts it where it is told; all may say how many bytes it has. */
#define CUTRACE_SURFACE const cutrace_surface<void, type> &s
#define CUTRACE_MODE cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap
#define CUTRACE_ACCESS(name, given, passed)                                                        \
    template <class T, int type>                                                                   \
    static __device__ __forceinline__ void name##read(T *to, CUTRACE_SURFACE, given, CUTRACE_MODE) \
    {                                                                                              \
        name##read(to, s.object, passed, mode);                                                    \
    }                                                                                              \
    template <class T, int type>                                                                   \
    static __device__ __forceinline__ void name##read(T *to, CUTRACE_SURFACE, given, int,          \
                                                      CUTRACE_MODE)                                \
    {                                                                                              \
        name##read(to, s.object, passed, mode);                                                    \
    }                                                                                              \
    template <class T, int type>                                                                   \
    static __device__ __forceinline__ T name##read(CUTRACE_SURFACE, given, CUTRACE_MODE)           \
    {                                                                                              \
        return name##read<T>(s.object, passed, mode);                                              \
    }                                                                                              \
    template <class T, int type>                                                                   \
    static __device__ __forceinline__ void name##write(T value, CUTRACE_SURFACE, given,            \
                                                       CUTRACE_MODE)                               \
    {                                                                                              \
        name##write(value, s.object, passed, mode);                                                \
    }                                                                                              \
    template <class T, int type>                                                                   \
    static __device__ __forceinline__ void name##write(T value, CUTRACE_SURFACE, given, int,       \
                                                       CUTRACE_MODE)                               \
    {                                                                                              \
        name##write(value, s.object, passed, mode);                                                \
    }
#define CUTRACE_PAIR(...) __VA_ARGS__
CUTRACE_ACCESS(surf1D, int x, x)
CUTRACE_ACCESS(surf2D, CUTRACE_PAIR(int x, int y), CUTRACE_PAIR(x, y))
CUTRACE_ACCESS(surf3D, CUTRACE_PAIR(int x, int y, int z), CUTRACE_PAIR(x, y, z))
CUTRACE_ACCESS(surf1DLayered, CUTRACE_PAIR(int x, int layer), CUTRACE_PAIR(x, layer))
CUTRACE_ACCESS(surf2DLayered, CUTRACE_PAIR(int x, int y, int layer), CUTRACE_PAIR(x, y, layer))
CUTRACE_ACCESS(surfCubemap, CUTRACE_PAIR(int x, int y, int face), CUTRACE_PAIR(x, y, face))
CUTRACE_ACCESS(surfCubemapLayered, CUTRACE_PAIR(int x, int y, int face),
               CUTRACE_PAIR(x, y, face))
#undef CUTRACE_PAIR
#undef CUTRACE_ACCESS
#undef CUTRACE_MODE
#undef CUTRACE_SURFACE

#pragma nv_diag_suppress 20091, 20092 /* the host's own copy is what is meant */
#define surface __constant__ cutrace_surface
#endif
