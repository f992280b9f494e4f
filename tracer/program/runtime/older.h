/* What programs for CUDA 12 and older take for granted and CUDA 13 does not have: texture
   references, votes and shuffles without a mask, members of cudaDeviceProp, devices as numbers,
   edges of graphs without data, launches of three calls. It is included when a program does not
   compile without; what is a function of the host is in older_host.h.
   Sources: CUDA C Programming Guide 11.8, B.8.1 "Texture Reference API"; CUDA Runtime API 12.9,
   "cudaDeviceProp"; CUDA Programming Guide 9.0, B.15 and B.13, which name the successors; CUDA
   Runtime API 9.2, "Execution Control [DEPRECATED]". */

#if defined(__cplusplus) && !defined(CUTRACE_OLDER)
#define CUTRACE_OLDER

#include <cuda.h>
#include <cuda_runtime.h>

#include "older_host.h"

#ifndef CUTRACE_PROPERTIES /* the toolkit's own driver_types.h has these members */
struct cutrace_device_properties : cudaDeviceProp {
    int clockRate, memoryClockRate, deviceOverlap, computeMode, kernelExecTimeoutEnabled;
    int singleToDoublePrecisionPerfRatio, cooperativeMultiDeviceLaunch, maxTexture1DLinear;
};

static inline cudaError_t cudaGetDeviceProperties(cutrace_device_properties *p, int device)
{
    cudaError_t status = cudaGetDeviceProperties(static_cast<cudaDeviceProp *>(p), device);
    if (status)
        return status;
    cudaDeviceGetAttribute(&p->clockRate, cudaDevAttrClockRate, device);
    cudaDeviceGetAttribute(&p->memoryClockRate, cudaDevAttrMemoryClockRate, device);
    cudaDeviceGetAttribute(&p->maxTexture1DLinear, cudaDevAttrMaxTexture1DLinearWidth, device);
    p->deviceOverlap = p->asyncEngineCount > 0;
    p->computeMode = cudaComputeModeDefault;
    p->kernelExecTimeoutEnabled = p->cooperativeMultiDeviceLaunch = 0;
    return cudaDeviceGetAttribute(&p->singleToDoublePrecisionPerfRatio,
                                  cudaDevAttrSingleToDoublePrecisionPerfRatio, device);
}
#define cudaDeviceProp cutrace_device_properties
#endif

static inline CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
    return cuCtxCreate(context, NULL, flags, device);
}

#ifdef __CUDACC__

/* Headers that mean something of their own by these names. */
#include <cuda_fp16.h>
#if __has_include(<cuda/std/__functional/invoke.h>)
#include <cuda/std/__functional/invoke.h>
#endif

#define __any(...) __any_sync(__activemask(), __VA_ARGS__)
#define __all(...) __all_sync(__activemask(), __VA_ARGS__)
#define __ballot(...) __ballot_sync(__activemask(), __VA_ARGS__)
#define __shfl(...) __shfl_sync(__activemask(), __VA_ARGS__)
#define __shfl_up(...) __shfl_up_sync(__activemask(), __VA_ARGS__)
#define __shfl_down(...) __shfl_down_sync(__activemask(), __VA_ARGS__)
#define __shfl_xor(...) __shfl_xor_sync(__activemask(), __VA_ARGS__)

/* A texture reference is a texture object that the program's constants hold, and how it is to be
   made, which the host sets in its own copy. */
#ifndef cudaTextureType1D
#define cudaTextureType1D 0x01
#define cudaTextureType2D 0x02
#define cudaTextureType3D 0x03
#define cudaTextureTypeCubemap 0x0C
#define cudaTextureType1DLayered 0xF1
#define cudaTextureType2DLayered 0xF2
#endif

struct textureReference {
    cudaTextureObject_t object;
    int normalized;
    cudaTextureFilterMode filterMode;
    cudaTextureAddressMode addressMode[3];
    cudaChannelFormatDesc channelDesc;
    int sRGB;
    unsigned maxAnisotropy;
    cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization;
};

/* A texel of T: the bits of one of its numbers, how many these are, and of which kind. */
template <class T> struct cutrace_texel { enum { bits, count, kind }; };
#define CUTRACE_TEXEL(T, bits_, count_, kind_)                                                   \
    template <> struct cutrace_texel<T> {                                                        \
        enum { bits = bits_, count = count_, kind = cudaChannelFormatKind##kind_ };              \
    };
#define CUTRACE_TEXELS(name, one, bits, kind)                                                    \
    CUTRACE_TEXEL(one, bits, 1, kind)                                                            \
    CUTRACE_TEXEL(name##1, bits, 1, kind)                                                        \
    CUTRACE_TEXEL(name##2, bits, 2, kind)                                                        \
    CUTRACE_TEXEL(name##4, bits, 4, kind)
CUTRACE_TEXEL(char, 8, 1, Signed)
CUTRACE_TEXELS(char, signed char, 8, Signed)
CUTRACE_TEXELS(uchar, unsigned char, 8, Unsigned)
CUTRACE_TEXELS(short, short, 16, Signed)
CUTRACE_TEXELS(ushort, unsigned short, 16, Unsigned)
CUTRACE_TEXELS(int, int, 32, Signed)
CUTRACE_TEXELS(uint, unsigned, 32, Unsigned)
CUTRACE_TEXELS(float, float, 32, Float)
#undef CUTRACE_TEXELS
#undef CUTRACE_TEXEL

template <class T, int type = cudaTextureType1D,
          cudaTextureReadMode mode = cudaReadModeElementType>
struct cutrace_texture : textureReference {
    typedef cutrace_texel<T> texel;
    __host__ __device__ constexpr cutrace_texture(
        int normalized = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
        cudaTextureAddressMode address = cudaAddressModeClamp)
        : textureReference{
              0, normalized, filter, {address, address, address},
              {texel::bits, texel::count > 1 ? texel::bits : 0, texel::count > 2 ? texel::bits : 0,
               texel::count > 2 ? texel::bits : 0, cudaChannelFormatKind(texel::kind)},
              0, 0, cudaFilterModePoint, 0, 0, 0, 0}
    {
    }
};

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cutrace_bind(cutrace_texture<T, type, mode> &reference, const cudaResourceDesc &from)
{
    cudaTextureDesc how = {};
    for (int i = 0; i < 3; ++i)
        how.addressMode[i] = reference.normalized ? reference.addressMode[i] : cudaAddressModeClamp;
    how.filterMode = reference.filterMode;
    how.readMode = mode;
    how.normalizedCoords = reference.normalized;
    how.sRGB = reference.sRGB;
    how.maxAnisotropy = reference.maxAnisotropy;
    how.mipmapFilterMode = reference.mipmapFilterMode;
    how.mipmapLevelBias = reference.mipmapLevelBias;
    how.minMipmapLevelClamp = reference.minMipmapLevelClamp;
    how.maxMipmapLevelClamp = reference.maxMipmapLevelClamp;
    how.disableTrilinearOptimization = reference.disableTrilinearOptimization;
    cudaTextureObject_t object;
    cudaError_t status = cudaCreateTextureObject(&object, &from, &how, 0);
    return status ? status : cudaMemcpyToSymbol(reference, &object, sizeof object);
}

/* Textures begin at multiples of 512 bytes: kernels add the offset to their coordinates. */
static inline cudaError_t cutrace_align(const void **memory, size_t *offset)
{
    size_t over = (size_t)*memory % 512;
    if (over && !offset)
        return cudaErrorInvalidValue;
    if (offset)
        *offset = over;
    *memory = (const char *)*memory - over;
    return cudaSuccess;
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaBindTexture(size_t *offset, cutrace_texture<T, type, mode> &reference,
                            const void *memory, const cudaChannelFormatDesc &texel,
                            size_t bytes = 0xffffffff)
{
    cudaResourceDesc from = {};
    cudaError_t status = cutrace_align(&memory, offset);
    if (status)
        return status;
    from.resType = cudaResourceTypeLinear;
    from.res.linear.devPtr = const_cast<void *>(memory);
    from.res.linear.desc = texel;
    from.res.linear.sizeInBytes = bytes;
    return cutrace_bind(reference, from);
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaBindTexture(size_t *offset, cutrace_texture<T, type, mode> &reference,
                            const void *memory, size_t bytes = 0xffffffff)
{
    return cudaBindTexture(offset, reference, memory, cudaCreateChannelDesc<T>(), bytes);
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaBindTexture2D(size_t *offset, cutrace_texture<T, type, mode> &reference,
                              const void *memory, const cudaChannelFormatDesc &texel, size_t width,
                              size_t height, size_t pitch)
{
    cudaResourceDesc from = {};
    cudaError_t status = cutrace_align(&memory, offset);
    if (status)
        return status;
    from.resType = cudaResourceTypePitch2D;
    from.res.pitch2D.devPtr = const_cast<void *>(memory);
    from.res.pitch2D.desc = texel;
    from.res.pitch2D.width = width;
    from.res.pitch2D.height = height;
    from.res.pitch2D.pitchInBytes = pitch;
    return cutrace_bind(reference, from);
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaBindTexture2D(size_t *offset, cutrace_texture<T, type, mode> &reference,
                              const void *memory, size_t width, size_t height, size_t pitch)
{
    return cudaBindTexture2D(offset, reference, memory, cudaCreateChannelDesc<T>(), width, height,
                             pitch);
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaBindTextureToArray(cutrace_texture<T, type, mode> &reference,
                                   cudaArray_const_t array)
{
    cudaResourceDesc from = {};
    from.resType = cudaResourceTypeArray;
    from.res.array.array = const_cast<cudaArray_t>(array);
    return cutrace_bind(reference, from);
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaBindTextureToArray(cutrace_texture<T, type, mode> &reference,
                                   cudaArray_const_t array, const cudaChannelFormatDesc &)
{
    return cudaBindTextureToArray(reference, array);
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaBindTextureToMipmappedArray(cutrace_texture<T, type, mode> &reference,
                                            cudaMipmappedArray_const_t array)
{
    cudaResourceDesc from = {};
    from.resType = cudaResourceTypeMipmappedArray;
    from.res.mipmap.mipmap = const_cast<cudaMipmappedArray_t>(array);
    return cutrace_bind(reference, from);
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaBindTextureToMipmappedArray(cutrace_texture<T, type, mode> &reference,
                                            cudaMipmappedArray_const_t array,
                                            const cudaChannelFormatDesc &)
{
    return cudaBindTextureToMipmappedArray(reference, array);
}

/* As C has them, by pointers. */
template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaBindTexture(size_t *offset, cutrace_texture<T, type, mode> *reference,
                            const void *memory, const cudaChannelFormatDesc *texel,
                            size_t bytes = 0xffffffff)
{
    return cudaBindTexture(offset, *reference, memory, *texel, bytes);
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaBindTexture2D(size_t *offset, cutrace_texture<T, type, mode> *reference,
                              const void *memory, const cudaChannelFormatDesc *texel, size_t width,
                              size_t height, size_t pitch)
{
    return cudaBindTexture2D(offset, *reference, memory, *texel, width, height, pitch);
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaBindTextureToArray(cutrace_texture<T, type, mode> *reference,
                                   cudaArray_const_t array, const cudaChannelFormatDesc *)
{
    return cudaBindTextureToArray(*reference, array);
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaUnbindTexture(cutrace_texture<T, type, mode> *)
{
    return cudaSuccess;
}

template <class T, int type, cudaTextureReadMode mode>
cudaError_t cudaUnbindTexture(cutrace_texture<T, type, mode> &)
{
    return cudaSuccess;
}

/* What a fetch gives: the texel, or floats for its integers. */
template <class T, cudaTextureReadMode mode> struct cutrace_fetched { typedef T type; };
#define CUTRACE_AS(from, to)                                                                     \
    template <> struct cutrace_fetched<from, cudaReadModeNormalizedFloat> { typedef to type; };
#define CUTRACE_AS_FLOATS(name, one)                                                             \
    CUTRACE_AS(one, float)                                                                       \
    CUTRACE_AS(name##1, float1)                                                                  \
    CUTRACE_AS(name##2, float2)                                                                  \
    CUTRACE_AS(name##4, float4)
CUTRACE_AS(char, float)
CUTRACE_AS_FLOATS(char, signed char)
CUTRACE_AS_FLOATS(uchar, unsigned char)
CUTRACE_AS_FLOATS(short, short)
CUTRACE_AS_FLOATS(ushort, unsigned short)
#undef CUTRACE_AS
#undef CUTRACE_AS_FLOATS

#define CUTRACE_FETCH(name, given, passed)                                                       \
    template <class T, int type, cudaTextureReadMode mode>                                       \
    static __device__ __forceinline__ typename cutrace_fetched<T, mode>::type name given         \
    {                                                                                            \
        return name<typename cutrace_fetched<T, mode>::type> passed;                             \
    }
#define CUTRACE_REFERENCE const cutrace_texture<T, type, mode> &t
CUTRACE_FETCH(tex1Dfetch, (CUTRACE_REFERENCE, int x), (t.object, x))
CUTRACE_FETCH(tex1D, (CUTRACE_REFERENCE, float x), (t.object, x))
CUTRACE_FETCH(tex2D, (CUTRACE_REFERENCE, float x, float y), (t.object, x, y))
CUTRACE_FETCH(tex3D, (CUTRACE_REFERENCE, float x, float y, float z), (t.object, x, y, z))
CUTRACE_FETCH(tex1DLayered, (CUTRACE_REFERENCE, float x, int layer), (t.object, x, layer))
CUTRACE_FETCH(tex2DLayered, (CUTRACE_REFERENCE, float x, float y, int layer),
              (t.object, x, y, layer))
CUTRACE_FETCH(texCubemap, (CUTRACE_REFERENCE, float x, float y, float z), (t.object, x, y, z))
#undef CUTRACE_FETCH
#undef CUTRACE_REFERENCE

#pragma nv_diag_suppress 20091, 20092 /* the host's own copy is what is meant */
#define texture __constant__ cutrace_texture
#endif
#endif
