"""Textures and surfaces of a program: objects over arrays and over linear memory."""

from pathlib import Path

from program_run import record

SOURCE = """
__global__ void sample(cudaTextureObject_t t, float *out) { out[0] = tex2D<float>(t, 1.0f, 0.5f); }
__global__ void fetch(cudaTextureObject_t t, int *out) { out[0] = tex1Dfetch<int>(t, 5); }
__global__ void flip(cudaSurfaceObject_t s)
{
    surf2Dwrite((float)(10 * threadIdx.y + threadIdx.x), s, threadIdx.x * 4, threadIdx.y);
}
__global__ void levels(cudaTextureObject_t t, float *out)
{
    const float detail[] = {0, 0.5f, 1.25f, 9}, side[] = {0, 1 / 4.0f, 3 / 8.0f, 1 / 16.0f};
    int i = threadIdx.x;
    out[i] = tex2DLod<float>(t, 0.3f, 0.6f, detail[i]);
    out[i + 4] = tex2DGrad<float>(t, 0.3f, 0.6f, make_float2(0, side[i]), make_float2(0.01f, 0));
}
static cudaTextureObject_t over_levels(cudaMipmappedArray_t array, cudaTextureFilterMode filter,
                                       float bias, float most, unsigned first)
{
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeMipmappedArray;
    resource.res.mipmap.mipmap = array;
    cudaTextureDesc modes = {};
    modes.normalizedCoords = 1;
    modes.mipmapFilterMode = filter;
    modes.mipmapLevelBias = bias;
    modes.maxMipmapLevelClamp = most;
    cudaResourceViewDesc view = {};
    view.format = cudaResViewFormatFloat1;
    view.width = view.height = 8;
    view.firstMipmapLevel = first;
    view.lastMipmapLevel = 3;
    cudaTextureObject_t made;
    CHECK(cudaCreateTextureObject(&made, &resource, &modes, &view));
    return made;
}
static void sample_levels(float *out)
{
    float texels[64], result[8];
    cudaChannelFormatDesc texel = cudaCreateChannelDesc<float>();
    cudaMipmappedArray_t array, deep;
    CHECK(cudaMallocMipmappedArray(&array, &texel, make_cudaExtent(8, 8, 0), 9));
    for (unsigned level = 0; level < 4; level++) {
        for (float &each : texels) each = 10 * level;
        cudaArray_t one;
        CHECK(cudaGetMipmappedArrayLevel(&one, array, level));
        unsigned side = 8 >> level;
        CHECK(cudaMemcpy2DToArray(one, 0, 0, texels, 4 * side, 4 * side, side,
                                  cudaMemcpyHostToDevice));
    }
    cudaTextureObject_t made[] = {over_levels(array, cudaFilterModeLinear, 0, 3, 0),
                                  over_levels(array, cudaFilterModePoint, 0, 3, 0),
                                  over_levels(array, cudaFilterModeLinear, 0.5f, 1, 0),
                                  over_levels(array, cudaFilterModePoint, 0, 3, 1)};
    for (cudaTextureObject_t each : made) {
        levels<<<1, 4>>>(each, out);
        CHECK(cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost));
        for (float each : result) printf(" %g", each);
        printf("\\n");
    }
    cudaArray_t last;
    cudaExtent extent;
    CHECK(cudaMallocMipmappedArray(&deep, &texel, make_cudaExtent(4, 8, 16), 3));
    CHECK(cudaGetMipmappedArrayLevel(&last, deep, 2));
    CHECK(cudaArrayGetInfo(NULL, &extent, NULL, last));
    printf("%d x %d x %d, ", (int)extent.width, (int)extent.height, (int)extent.depth);
    printf("%s\\n", cudaGetErrorName(cudaGetMipmappedArrayLevel(&last, array, 4)));
}

int main()
{
    float texels[2][4] = {{0, 1, 2, 3}, {4, 5, 6, 7}}, *out, result;
    cudaArray_t array;
    cudaChannelFormatDesc texel = cudaCreateChannelDesc<float>();
    CHECK(cudaMallocArray(&array, &texel, 4, 2, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, texels, 16, 16, 2, cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc modes = {};
    modes.addressMode[0] = modes.addressMode[1] = cudaAddressModeClamp;
    modes.filterMode = cudaFilterModeLinear;
    cudaTextureObject_t texture;
    CHECK(cudaCreateTextureObject(&texture, &resource, &modes, NULL));
    CHECK(cudaMalloc(&out, 64));
    sample<<<1, 1>>>(texture, out);
    CHECK(cudaMemcpy(&result, out, 4, cudaMemcpyDeviceToHost));
    printf("halfway %g\\n", result);

    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &resource));
    flip<<<1, dim3(4, 2)>>>(surface);
    CHECK(cudaMemcpy2DFromArray(texels, 16, array, 0, 0, 16, 2, cudaMemcpyDeviceToHost));
    printf("written %g %g\\n", texels[0][3], texels[1][2]);

    int numbers[8] = {0, 1, 4, 9, 16, 25, 36, 49}, *linear, number;
    CHECK(cudaMalloc(&linear, sizeof numbers));
    CHECK(cudaMemcpy(linear, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    cudaResourceDesc over = {};
    over.resType = cudaResourceTypeLinear;
    over.res.linear.devPtr = linear;
    over.res.linear.desc = cudaCreateChannelDesc<int>();
    over.res.linear.sizeInBytes = sizeof numbers;
    cudaTextureDesc plain = {};
    cudaTextureObject_t fetched;
    CHECK(cudaCreateTextureObject(&fetched, &over, &plain, NULL));
    fetch<<<1, 1>>>(fetched, (int *)out);
    CHECK(cudaMemcpy(&number, out, 4, cudaMemcpyDeviceToHost));
    printf("fetched %d\\n", number);
    sample_levels(out);
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaFreeArray(array));
}
"""


# Level n of 8 x 8 texels is 10 n. Gradients of 1/4, 3/8 and 1/16 in y are 2, 3 and 0.5 texels, that
# of 0.01 in x is 0.08: levels of detail 1, log2(3) = 1.585, cut to 405/256, and less than 0. The
# bias of 0.5 stops at the clamp of 1. From level 1 on there are three levels, of which the first
# has 4 x 4 texels: gradients of 1, 1.5 and 0.25 texels are levels of detail 0, 0.585, less than 0.
LEVELS = """ 0 5 12.5 30 0 10 15.8203 0
 0 10 10 30 0 10 20 0
 5 10 10 10 0 10 10 0
 10 20 20 30 10 10 20 10
1 x 2 x 4, cudaErrorInvalidValue
"""


def test_textures_and_surfaces_are_the_program_s_arrays(tmp_path: Path) -> None:
    done = record(tmp_path, SOURCE)
    # between texels 0 and 1 of row 0: (0 + 1) / 2; 10 * y + x at (3, 0) and (2, 1); 5 * 5
    assert done.out == "halfway 0.5\nwritten 3 12\nfetched 25\n" + LEVELS, done.err
    assert done.status == 0
    assert [texture.format for texture in done.trace.launches[2].launch.textures] == ["f32", "i32"]
