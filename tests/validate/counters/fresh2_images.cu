// A program as people write them that samples textures: images, volumes, layers, tables.
// Written before it was run on a chip. It prints a hash of what every kernel left in memory.

#include <cstdio>
#include <cstring>
#include <vector>

typedef unsigned char u8;

__global__ void zoom(float *out, cudaTextureObject_t t, int w, int h, float scale)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    out[y * w + x] = tex2D<float>(t, (x + 0.5f) * scale, (y + 0.5f) * scale);
}

__global__ void turn(float *out, cudaTextureObject_t t, int w, int h, float sine, float cosine)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float u = x - w / 2, v = y - h / 2;
    out[y * w + x] = tex2D<float>(t, cosine * u - sine * v + w / 2 + 0.5f, sine * u + cosine * v + h / 2 + 0.5f);
}

__global__ void box(float *out, cudaTextureObject_t t, int w, int r)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int j = -r; j <= r; j++)
        for (int i = -r; i <= r; i++) sum += tex2D<float>(t, x + i + 0.5f, y + j + 0.5f);
    out[y * w + x] = sum;
}

__global__ void tile_over(float *out, cudaTextureObject_t t, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    out[y * w + x] = tex2D<float>(t, 3.0f * x / w, 2.0f * y / h);
}

__global__ void tint(uchar4 *out, cudaTextureObject_t t, int w)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float4 c = tex2D<float4>(t, x + 0.5f, y + 0.5f);
    out[y * w + x] = make_uchar4(c.x * 255, c.y * 128, c.z * 64, c.w * 255);
}

__global__ void slice(float *out, cudaTextureObject_t t, int w, float depth)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    out[y * w + x] = tex3D<float>(t, x * 0.5f + 0.25f, y * 0.5f + 0.25f, depth + x * 0.03f);
}

__global__ void march(float *out, cudaTextureObject_t t, int w, int steps)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < steps; k++) {
        float v = tex3D<float>(t, x + 0.1f * k, y + 0.2f * k, k + 0.5f);
        if (v > 0.97f) break;
        sum += v;
    }
    out[y * w + x] = sum;
}

__global__ void table(float *out, cudaTextureObject_t values, const int *at, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1Dfetch<float>(values, at[i]) * tex1Dfetch<float>(values, i);
}

__global__ void curve(float *out, cudaTextureObject_t t, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = tex1D<float>(t, (i - 20.0f) / (n - 40.0f));
}

__global__ void layers(float *out, cudaTextureObject_t t, int w, int count)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < count; k++) sum += tex2DLayered<float>(t, x + 0.5f, y + 0.5f, k) * (k + 1);
    out[y * w + x] = sum;
}

__global__ void corners(float4 *out, cudaTextureObject_t t, int w)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    out[y * w + x] = tex2Dgather<float4>(t, x + 1.0f, y + 1.0f, 0);
}

__global__ void darken(cudaSurfaceObject_t s, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float v = surf2Dread<float>(s, x * 4, y);
    surf2Dwrite(v * 0.5f, s, x * 4, y);
}

static void check(cudaError_t e, int line)
{
    if (e) {
        printf("line %d: %s\n", line, cudaGetErrorString(e));
        exit(1);
    }
}
#define CHECK(call) check(call, __LINE__)

static unsigned seed = 2463534242u;
static unsigned random_bits()
{
    seed ^= seed << 13;
    seed ^= seed >> 17;
    return seed ^= seed << 5;
}

static void told(const char *name, const void *device, size_t bytes)
{
    std::vector<u8> host(bytes);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost));
    unsigned long long h = 14695981039346656037ull;
    for (u8 b : host) h = (h ^ b) * 1099511628211ull;
    printf("%s %016llx\n", name, h);
}

static cudaTextureObject_t texture(const cudaResourceDesc &res, cudaTextureAddressMode mode,
                                   cudaTextureFilterMode filter, bool normalized = false,
                                   cudaTextureReadMode read = cudaReadModeElementType)
{
    cudaTextureDesc how;
    memset(&how, 0, sizeof how);
    for (int i = 0; i < 3; i++) how.addressMode[i] = mode;
    how.filterMode = filter;
    how.readMode = read;
    how.normalizedCoords = normalized;
    cudaTextureObject_t t;
    CHECK(cudaCreateTextureObject(&t, &res, &how, nullptr));
    return t;
}

static cudaResourceDesc of_array(cudaArray_t a)
{
    cudaResourceDesc res;
    memset(&res, 0, sizeof res);
    res.resType = cudaResourceTypeArray;
    res.res.array.array = a;
    return res;
}

int main()
{
    const int W = 128, H = 96;
    std::vector<float> image(W * H), volume(32 * 32 * 32), row(256);
    for (auto *v : {&image, &volume, &row})
        for (float &f : *v) f = (random_bits() >> 24) / 256.0f;
    float *out;
    CHECK(cudaMalloc(&out, 1 << 18));
    CHECK(cudaMemset(out, 0, 1 << 18));

    auto one = cudaCreateChannelDesc<float>();
    cudaArray_t array;
    CHECK(cudaMallocArray(&array, &one, W, H, cudaArraySurfaceLoadStore | cudaArrayTextureGather));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    auto res = of_array(array);
    auto clamped = texture(res, cudaAddressModeClamp, cudaFilterModeLinear);
    auto bordered = texture(res, cudaAddressModeBorder, cudaFilterModeLinear);
    auto points = texture(res, cudaAddressModeBorder, cudaFilterModePoint);
    auto wrapped = texture(res, cudaAddressModeWrap, cudaFilterModeLinear, true);
    auto mirrored = texture(res, cudaAddressModeMirror, cudaFilterModePoint, true);
    dim3 block(16, 8), grid(W / 16, H / 8);
    zoom<<<grid, block>>>(out, clamped, W, H, 0.37f);
    told("zoom", out, W * H * 4);
    zoom<<<grid, block>>>(out, clamped, W, H, 1.7f);
    told("zoom", out, W * H * 4);
    zoom<<<grid, block>>>(out, bordered, W, H, 1.7f);
    told("zoom", out, W * H * 4);
    turn<<<grid, block>>>(out, bordered, W, H, 0.5f, 0.8660254f);
    told("turn", out, W * H * 4);
    turn<<<grid, block>>>(out, points, W, H, 0.5f, 0.8660254f);
    told("turn", out, W * H * 4);
    box<<<dim3(W / 32, H / 4), dim3(32, 4)>>>(out, points, W, 2);
    told("box", out, W * H * 4);
    box<<<grid, block>>>(out, clamped, W, 1);
    told("box", out, W * H * 4);
    tile_over<<<grid, block>>>(out, wrapped, W, H);
    told("tile_over", out, W * H * 4);
    tile_over<<<grid, block>>>(out, mirrored, W, H);
    told("tile_over", out, W * H * 4);
    corners<<<dim3(4, 8), dim3(16, 8)>>>((float4 *)out, clamped, 64);
    told("corners", out, 64 * 64 * 16);

    std::vector<uchar4> pixels(W * H);
    for (auto &p : pixels) p = make_uchar4(random_bits(), random_bits() >> 8, random_bits() >> 16, 255);
    uchar4 *pitched;
    size_t pitch;
    CHECK(cudaMallocPitch(&pitched, &pitch, W * 4, H));
    CHECK(cudaMemcpy2D(pitched, pitch, pixels.data(), W * 4, W * 4, H, cudaMemcpyHostToDevice));
    cudaResourceDesc flat;
    memset(&flat, 0, sizeof flat);
    flat.resType = cudaResourceTypePitch2D;
    flat.res.pitch2D.devPtr = pitched;
    flat.res.pitch2D.desc = cudaCreateChannelDesc<uchar4>();
    flat.res.pitch2D.width = W;
    flat.res.pitch2D.height = H;
    flat.res.pitch2D.pitchInBytes = pitch;
    auto colours = texture(flat, cudaAddressModeClamp, cudaFilterModePoint, false, cudaReadModeNormalizedFloat);
    tint<<<grid, block>>>((uchar4 *)out, colours, W);
    told("tint", out, W * H * 4);

    cudaArray_t cube;
    CHECK(cudaMalloc3DArray(&cube, &one, make_cudaExtent(32, 32, 32), 0));
    cudaMemcpy3DParms copy;
    memset(&copy, 0, sizeof copy);
    copy.srcPtr = make_cudaPitchedPtr(volume.data(), 32 * 4, 32, 32);
    copy.dstArray = cube;
    copy.extent = make_cudaExtent(32, 32, 32);
    copy.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&copy));
    auto solid = texture(of_array(cube), cudaAddressModeClamp, cudaFilterModeLinear);
    auto voxels = texture(of_array(cube), cudaAddressModeBorder, cudaFilterModePoint);
    slice<<<dim3(4, 8), dim3(16, 8)>>>(out, solid, 64, 7.3f);
    told("slice", out, 64 * 64 * 4);
    march<<<dim3(2, 4), dim3(16, 8)>>>(out, voxels, 32, 24);
    told("march", out, 32 * 32 * 4);

    float *line;
    int *places;
    CHECK(cudaMalloc(&line, 4096 * 4));
    CHECK(cudaMalloc(&places, 4096 * 4));
    std::vector<float> numbers(4096);
    std::vector<int> where(4096);
    for (float &f : numbers) f = (random_bits() >> 24) / 256.0f;
    for (int &i : where) i = random_bits() % 4096;
    CHECK(cudaMemcpy(line, numbers.data(), 4096 * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(places, where.data(), 4096 * 4, cudaMemcpyHostToDevice));
    cudaResourceDesc linear;
    memset(&linear, 0, sizeof linear);
    linear.resType = cudaResourceTypeLinear;
    linear.res.linear.devPtr = line;
    linear.res.linear.desc = one;
    linear.res.linear.sizeInBytes = 4096 * 4;
    auto fetched = texture(linear, cudaAddressModeClamp, cudaFilterModePoint);
    table<<<16, 256>>>(out, fetched, places, 4000);
    told("table", out, 4000 * 4);

    cudaArray_t short_row;
    CHECK(cudaMallocArray(&short_row, &one, 256, 0));
    CHECK(cudaMemcpy2DToArray(short_row, 0, 0, row.data(), 1024, 1024, 1, cudaMemcpyHostToDevice));
    auto bent = texture(of_array(short_row), cudaAddressModeClamp, cudaFilterModeLinear, true);
    auto ends = texture(of_array(short_row), cudaAddressModeBorder, cudaFilterModeLinear, true);
    curve<<<8, 128>>>(out, bent, 1000);
    told("curve", out, 4000);
    curve<<<8, 128>>>(out, ends, 1000);
    told("curve", out, 4000);

    cudaArray_t pile;
    CHECK(cudaMalloc3DArray(&pile, &one, make_cudaExtent(32, 32, 8), cudaArrayLayered));
    copy.dstArray = pile;
    copy.extent = make_cudaExtent(32, 32, 8);
    CHECK(cudaMemcpy3D(&copy));
    auto sheets = texture(of_array(pile), cudaAddressModeClamp, cudaFilterModePoint);
    layers<<<dim3(2, 4), dim3(16, 8)>>>(out, sheets, 32, 8);
    told("layers", out, 32 * 32 * 4);

    cudaSurfaceObject_t surface;
    CHECK(cudaCreateSurfaceObject(&surface, &res));
    darken<<<grid, block>>>(surface, W - 5, H - 5);
    box<<<grid, block>>>(out, points, W, 1);
    told("darken, box", out, W * H * 4);
    return 0;
}
