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
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaDestroySurfaceObject(surface));
    CHECK(cudaFreeArray(array));
}
"""


def test_textures_and_surfaces_are_the_program_s_arrays(tmp_path: Path) -> None:
    done = record(tmp_path, SOURCE)
    # between texels 0 and 1 of row 0: (0 + 1) / 2; 10 * y + x at (3, 0) and (2, 1); 5 * 5
    assert done.out == "halfway 0.5\nwritten 3 12\nfetched 25\n", done.err
    assert done.status == 0
    assert [texture.format for texture in done.trace.launches[2].launch.textures] == ["f32", "i32"]
