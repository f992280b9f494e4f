/* Arrays, textures and surfaces: the runtime's, by formats in place of channel descriptions. */

#include "driver.h"

static struct cudaChannelFormatDesc texel_of(CUarray_format format, unsigned channels)
{
    static const struct {
        CUarray_format format;
        int bits;
        enum cudaChannelFormatKind kind;
    } known[] = {
        {CU_AD_FORMAT_UNSIGNED_INT8, 8, cudaChannelFormatKindUnsigned},
        {CU_AD_FORMAT_UNSIGNED_INT16, 16, cudaChannelFormatKindUnsigned},
        {CU_AD_FORMAT_UNSIGNED_INT32, 32, cudaChannelFormatKindUnsigned},
        {CU_AD_FORMAT_SIGNED_INT8, 8, cudaChannelFormatKindSigned},
        {CU_AD_FORMAT_SIGNED_INT16, 16, cudaChannelFormatKindSigned},
        {CU_AD_FORMAT_SIGNED_INT32, 32, cudaChannelFormatKindSigned},
        {CU_AD_FORMAT_HALF, 16, cudaChannelFormatKindFloat},
        {CU_AD_FORMAT_FLOAT, 32, cudaChannelFormatKindFloat},
    };
    struct cudaChannelFormatDesc texel = {0, 0, 0, 0, cudaChannelFormatKindNone};
    for (unsigned i = 0; i < sizeof known / sizeof *known; i++) {
        int bits = known[i].bits;
        if (known[i].format != format)
            continue;
        texel.x = bits;
        texel.y = channels > 1 ? bits : 0;
        texel.z = channels > 2 ? bits : 0;
        texel.w = channels > 3 ? bits : 0;
        texel.f = known[i].kind;
    }
    return texel;
}

static CUarray_format format_of(struct cudaChannelFormatDesc texel)
{
    if (texel.f == cudaChannelFormatKindFloat)
        return texel.x == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
    int size = texel.x == 8 ? 0 : texel.x == 16 ? 1 : 2;
    return (CUarray_format)(size + (texel.f == cudaChannelFormatKindSigned
                                        ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8));
}

static unsigned channels_of(struct cudaChannelFormatDesc texel)
{
    return !!texel.x + !!texel.y + !!texel.z + !!texel.w;
}

API CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *asked)
{
    struct cudaChannelFormatDesc texel = texel_of(asked->Format, asked->NumChannels);
    struct cudaExtent extent = {asked->Width, asked->Height, asked->Depth};
    if (!asked->Format || !asked->NumChannels)
        return CUDA_ERROR_INVALID_VALUE;
    if (!texel.x)
        return refuse_driver("this format of cuArray3DCreate");
    return result(cudaMalloc3DArray((cudaArray_t *)array, &texel, extent, asked->Flags));
}

API CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *asked)
{
    CUDA_ARRAY3D_DESCRIPTOR whole = {
        .Width = asked->Width, .Height = asked->Height, .Format = asked->Format,
        .NumChannels = asked->NumChannels,
    };
    return cuArray3DCreate_v2(array, &whole);
}

API CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *told, CUarray array)
{
    struct cudaChannelFormatDesc texel;
    struct cudaExtent extent;
    unsigned flags;
    CUresult status = result(cudaArrayGetInfo(&texel, &extent, &flags, (cudaArray_t)array));
    if (status)
        return status;
    told->Width = extent.width;
    told->Height = extent.height;
    told->Depth = extent.depth;
    told->Format = format_of(texel);
    told->NumChannels = channels_of(texel);
    told->Flags = flags;
    return CUDA_SUCCESS;
}

API CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *told, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR whole;
    CUresult status = cuArray3DGetDescriptor_v2(&whole, array);
    if (status)
        return status;
    told->Width = whole.Width;
    told->Height = whole.Height;
    told->Format = whole.Format;
    told->NumChannels = whole.NumChannels;
    return CUDA_SUCCESS;
}

API CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *asked,
                                    unsigned levels)
{
    struct cudaChannelFormatDesc texel = texel_of(asked->Format, asked->NumChannels);
    struct cudaExtent extent = {asked->Width, asked->Height, asked->Depth};
    if (!texel.x)
        return refuse_driver("this format of cuMipmappedArrayCreate");
    return result(cudaMallocMipmappedArray((cudaMipmappedArray_t *)array, &texel, extent, levels,
                                           asked->Flags));
}

/* The driver's kinds of resources have the runtime's numbers. */
static CUresult read_resource(const CUDA_RESOURCE_DESC *given, struct cudaResourceDesc *own,
                              struct cudaChannelFormatDesc *texel)
{
    own->resType = (enum cudaResourceType)given->resType;
    switch (given->resType) {
    case CU_RESOURCE_TYPE_ARRAY:
        own->res.array.array = (cudaArray_t)given->res.array.hArray;
        return result(cudaGetChannelDesc(texel, own->res.array.array));
    case CU_RESOURCE_TYPE_LINEAR:
        *texel = texel_of(given->res.linear.format, given->res.linear.numChannels);
        own->res.linear.devPtr = pointer(given->res.linear.devPtr);
        own->res.linear.desc = *texel;
        own->res.linear.sizeInBytes = given->res.linear.sizeInBytes;
        return CUDA_SUCCESS;
    case CU_RESOURCE_TYPE_PITCH2D:
        *texel = texel_of(given->res.pitch2D.format, given->res.pitch2D.numChannels);
        own->res.pitch2D.devPtr = pointer(given->res.pitch2D.devPtr);
        own->res.pitch2D.desc = *texel;
        own->res.pitch2D.width = given->res.pitch2D.width;
        own->res.pitch2D.height = given->res.pitch2D.height;
        own->res.pitch2D.pitchInBytes = given->res.pitch2D.pitchInBytes;
        return CUDA_SUCCESS;
    default:
        own->res.mipmap.mipmap = (cudaMipmappedArray_t)given->res.mipmap.hMipmappedArray;
        return result(cudaGetChannelDesc(texel, own->res.mipmap.mipmap->level[0]));
    }
}

/* Small integers are read as fractions of their range unless it is said otherwise. */
static enum cudaTextureReadMode read_mode(struct cudaChannelFormatDesc texel, unsigned flags)
{
    int is_element = texel.f == cudaChannelFormatKindFloat || texel.x == 32 ||
                     flags & CU_TRSF_READ_AS_INTEGER;
    return is_element ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
}

API CUresult cuTexObjectCreate(CUtexObject *made, const CUDA_RESOURCE_DESC *given,
                               const CUDA_TEXTURE_DESC *modes, const CUDA_RESOURCE_VIEW_DESC *view)
{
    struct cudaResourceDesc resource = {0};
    struct cudaResourceViewDesc own_view = {0};
    struct cudaTextureDesc texture = {0};
    struct cudaChannelFormatDesc texel;
    CUresult status = read_resource(given, &resource, &texel);
    if (status)
        return status;
    for (int i = 0; i < 3; i++)
        texture.addressMode[i] = (enum cudaTextureAddressMode)modes->addressMode[i];
    texture.filterMode = (enum cudaTextureFilterMode)modes->filterMode;
    texture.readMode = read_mode(texel, modes->flags);
    texture.normalizedCoords = !!(modes->flags & CU_TRSF_NORMALIZED_COORDINATES);
    texture.sRGB = !!(modes->flags & CU_TRSF_SRGB);
    texture.disableTrilinearOptimization = !!(modes->flags &
                                              CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
    texture.seamlessCubemap = !!(modes->flags & CU_TRSF_SEAMLESS_CUBEMAP);
    memcpy(texture.borderColor, modes->borderColor, sizeof texture.borderColor);
    texture.maxAnisotropy = modes->maxAnisotropy;
    texture.mipmapFilterMode = (enum cudaTextureFilterMode)modes->mipmapFilterMode;
    texture.mipmapLevelBias = modes->mipmapLevelBias;
    texture.minMipmapLevelClamp = modes->minMipmapLevelClamp;
    texture.maxMipmapLevelClamp = modes->maxMipmapLevelClamp;
    if (view) { /* formats have the runtime's numbers, too */
        own_view.format = (enum cudaResourceViewFormat)view->format;
        own_view.width = view->width;
        own_view.height = view->height;
        own_view.depth = view->depth;
        own_view.firstMipmapLevel = view->firstMipmapLevel;
        own_view.lastMipmapLevel = view->lastMipmapLevel;
        own_view.firstLayer = view->firstLayer;
        own_view.lastLayer = view->lastLayer;
    }
    cudaTextureObject_t handle;
    status = result(cudaCreateTextureObject(&handle, &resource, &texture,
                                            view ? &own_view : NULL));
    if (!status)
        *made = handle;
    return status;
}

API CUresult cuSurfObjectCreate(CUsurfObject *made, const CUDA_RESOURCE_DESC *given)
{
    struct cudaResourceDesc resource = {0};
    struct cudaChannelFormatDesc texel;
    CUresult status = read_resource(given, &resource, &texel);
    cudaSurfaceObject_t handle;
    if (!status)
        status = result(cudaCreateSurfaceObject(&handle, &resource));
    if (!status)
        *made = handle;
    return status;
}
