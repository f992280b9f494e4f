// Texture and surface references as classes (reference_class.py).
template <class T> struct __cutrace_texel { typedef T type; enum { whole = 0 }; };
template <class F> struct __cutrace_texel_of { typedef F type; enum { whole = 1 }; };
#define CUTRACE_TEXELS(T, V)                                                          \
    template <> struct __cutrace_texel<T> : __cutrace_texel_of<float> {};             \
    template <> struct __cutrace_texel<V##1> : __cutrace_texel_of<float1> {};         \
    template <> struct __cutrace_texel<V##2> : __cutrace_texel_of<float2> {};         \
    template <> struct __cutrace_texel<V##4> : __cutrace_texel_of<float4> {};
CUTRACE_TEXELS(signed char, char)
CUTRACE_TEXELS(unsigned char, uchar)
CUTRACE_TEXELS(short, short)
CUTRACE_TEXELS(unsigned short, ushort)
CUTRACE_TEXELS(int, int)
CUTRACE_TEXELS(unsigned int, uint)
CUTRACE_TEXELS(float, float)
#undef CUTRACE_TEXELS
template <> struct __cutrace_texel<char> : __cutrace_texel_of<float> {};

template <class T, int kind = cudaTextureType1D,
          cudaTextureReadMode mode = cudaReadModeElementType>
struct texture
{
    static_assert(__cutrace_texel<T>::whole,
                  "textures have texels of 1, 2 or 4 numbers of 8, 16 or 32 bits");
    cudaTextureObject_t handle;
};
template <class T, cudaTextureReadMode mode> struct __cutrace_sample { typedef T type; };
template <class T> struct __cutrace_sample<T, cudaReadModeNormalizedFloat>
{ typedef typename __cutrace_texel<T>::type type; };

#define CUTRACE_FETCH(FETCH, KIND, PARAMETERS, ...)                                         \
    template <class T, cudaTextureReadMode mode>                                            \
    __device__ __forceinline__ typename __cutrace_sample<T, mode>::type                     \
    FETCH(const texture<T, KIND, mode> &reference, PARAMETERS)                              \
    { return FETCH<typename __cutrace_sample<T, mode>::type>(reference.handle, __VA_ARGS__); }
#define CUTRACE_LIST(...) __VA_ARGS__
CUTRACE_FETCH(tex1Dfetch, 1, int x, x)
CUTRACE_FETCH(tex1D, 1, float x, x)
CUTRACE_FETCH(tex1DLod, 1, CUTRACE_LIST(float x, float level), x, level)
CUTRACE_FETCH(tex2D, 2, CUTRACE_LIST(float x, float y), x, y)
CUTRACE_FETCH(tex2DLod, 2, CUTRACE_LIST(float x, float y, float level), x, y, level)
CUTRACE_FETCH(tex3D, 3, CUTRACE_LIST(float x, float y, float z), x, y, z)
CUTRACE_FETCH(tex3DLod, 3, CUTRACE_LIST(float x, float y, float z, float level), x, y, z, level)
CUTRACE_FETCH(tex1DLayered, 0xF1, CUTRACE_LIST(float x, int layer), x, layer)
CUTRACE_FETCH(tex2DLayered, 0xF2, CUTRACE_LIST(float x, float y, int layer), x, y, layer)
CUTRACE_FETCH(texCubemap, 0xC, CUTRACE_LIST(float x, float y, float z), x, y, z)
#undef CUTRACE_FETCH

template <class T, int kind = 1> struct surface { cudaSurfaceObject_t handle; };
#define CUTRACE_SURFACE(NAME, KIND, PARAMETERS, ...)                                        \
    template <class T> __device__ __forceinline__ void                                      \
    NAME##read(T *result, const surface<void, KIND> &reference, PARAMETERS,                 \
               cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)                         \
    { NAME##read(result, reference.handle, __VA_ARGS__, mode); }                            \
    template <class T> __device__ __forceinline__ T                                         \
    NAME##read(const surface<void, KIND> &reference, PARAMETERS,                            \
               cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)                         \
    { return NAME##read<T>(reference.handle, __VA_ARGS__, mode); }                          \
    template <class T> __device__ __forceinline__ void                                      \
    NAME##write(T value, const surface<void, KIND> &reference, PARAMETERS,                  \
                cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)                        \
    { NAME##write(value, reference.handle, __VA_ARGS__, mode); }
CUTRACE_SURFACE(surf1D, 1, int x, x)
CUTRACE_SURFACE(surf2D, 2, CUTRACE_LIST(int x, int y), x, y)
CUTRACE_SURFACE(surf3D, 3, CUTRACE_LIST(int x, int y, int z), x, y, z)
CUTRACE_SURFACE(surf1DLayered, 0xF1, CUTRACE_LIST(int x, int layer), x, layer)
CUTRACE_SURFACE(surf2DLayered, 0xF2, CUTRACE_LIST(int x, int y, int layer), x, y, layer)
#undef CUTRACE_SURFACE
#undef CUTRACE_LIST
