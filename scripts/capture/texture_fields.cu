/* Samples of textures with each field of their descriptors, on a GPU: a line of text a case
   (name, error, its name, samples) and 16 bytes a sample.

   `nvcc -arch=sm_90 texture_fields.cu` and `./a.out FOLDER` write both; texture_fields.py
   keeps them in tests/validate/texture_fields.npz. */
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <cstdlib>
#include <cmath>
#include <cstdarg>
#include <vector>
#include <string>
enum Fetch { T1, T2, T3, LOD2, GRAD2, LAY2, CUBE, CUBELAY, FETCH1, GATHER2, LOD1, LOD3, LODCUBE, CUBELOD };
#define N 256
__device__ uint4 bits(float4 f) { return make_uint4(__float_as_uint(f.x), __float_as_uint(f.y), __float_as_uint(f.z), __float_as_uint(f.w)); }
__global__ void sample(int fetch, cudaTextureObject_t t, const float *c, uint4 *out)
{
    int i = threadIdx.x;
    float x = c[i], y = c[N + i], z = c[2 * N + i], w = c[3 * N + i];
    float a = c[4 * N + i], b = c[5 * N + i];
    float4 r = {};
    switch (fetch) {
    case T1: r = tex1D<float4>(t, x); break;
    case T2: r = tex2D<float4>(t, x, y); break;
    case T3: r = tex3D<float4>(t, x, y, z); break;
    case LOD1: r = tex1DLod<float4>(t, x, w); break;
    case LOD2: r = tex2DLod<float4>(t, x, y, w); break;
    case LOD3: r = tex3DLod<float4>(t, x, y, z, w); break;
    case GRAD2: r = tex2DGrad<float4>(t, x, y, make_float2(z, w), make_float2(a, b)); break;
    case LAY2: r = tex2DLayered<float4>(t, x, y, int(z)); break;
    case CUBE: r = texCubemap<float4>(t, x, y, z); break;
    case CUBELOD: r = texCubemapLod<float4>(t, x, y, z, w); break;
    case CUBELAY: r = texCubemapLayered<float4>(t, x, y, z, int(w)); break;
    case FETCH1: r = tex1Dfetch<float4>(t, int(x)); break;
    case GATHER2: r = tex2Dgather<float4>(t, x, y, 1); break;
    }
    out[i] = bits(r);
}
__global__ void isample(int fetch, cudaTextureObject_t t, const float *c, uint4 *out)
{
    int i = threadIdx.x;
    float x = c[i], y = c[N + i], z = c[2 * N + i], w = c[3 * N + i];
    uint4 r = {};
    switch (fetch) {
    case T1: r = tex1D<uint4>(t, x); break;
    case T2: r = tex2D<uint4>(t, x, y); break;
    case T3: r = tex3D<uint4>(t, x, y, z); break;
    case LOD2: r = tex2DLod<uint4>(t, x, y, w); break;
    case LAY2: r = tex2DLayered<uint4>(t, x, y, int(z)); break;
    case CUBE: r = texCubemap<uint4>(t, x, y, z); break;
    case FETCH1: r = tex1Dfetch<uint4>(t, int(x)); break;
    }
    out[i] = r;
}
static FILE *text, *data;
static float *coords;
static uint4 *out;
static uint64_t state;
static uint32_t rnd() { state = state * 6364136223846793005ull + 1442695040888963407ull; return uint32_t(state >> 33); }
static float unit() { return float(rnd() & 0xffffff) / 16777216.f; }
static void seed(uint64_t s) { state = s; rnd(); rnd(); }
// coordinates: from lo to hi for x, y, z; w from wlo to whi
static void random_coords(float lo, float hi, float wlo = 0, float whi = 0)
{
    seed(77);
    for (int k = 0; k < 3; k++) for (int i = 0; i < N; i++) coords[k * N + i] = lo + (hi - lo) * unit();
    for (int i = 0; i < N; i++) coords[3 * N + i] = wlo + (whi - wlo) * unit();
    for (int k = 4; k < 6; k++) for (int i = 0; i < N; i++) coords[k * N + i] = wlo + (whi - wlo) * unit();
}
struct Texel { const char *name; cudaChannelFormatDesc d; int bytes; bool isfloat; };
static cudaChannelFormatDesc desc(int bits, int channels, cudaChannelFormatKind k)
{ return cudaCreateChannelDesc(bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, k); }
static Texel texel(const char *name)
{ // f4x4 u1x4 ...
    int size = name[1] - '0', channels = name[3] - '0';
    auto k = name[0] == 'f' ? cudaChannelFormatKindFloat : name[0] == 'u' ? cudaChannelFormatKindUnsigned : cudaChannelFormatKindSigned;
    return {name, desc(8 * size, channels, k), size * channels, name[0] == 'f'};
}
// texels of a format: bytes at random; floats k / 64 - 2 from the random numbers
static std::vector<unsigned char> make(const char *name, size_t count, uint64_t s)
{
    Texel t = texel(name);
    seed(s);
    size_t size = name[1] - '0', values = count * (name[3] - '0');
    std::vector<unsigned char> d(values * size);
    for (size_t i = 0; i < values; i++) {
        uint32_t v = rnd() >> 3;
        if (t.isfloat) {
            float f = float(v & 255) / 64.f - 2.f;
            if (size == 4) memcpy(&d[4 * i], &f, 4);
            else { // exact halves
                uint32_t b; memcpy(&b, &f, 4);
                uint16_t h = f == 0 ? 0 : uint16_t((b >> 16 & 0x8000) | (((b >> 23 & 255) - 112) << 10) | (b >> 13 & 1023));
                memcpy(&d[2 * i], &h, 2);
            }
        } else memcpy(&d[size * i], &v, size);
    }
    return d;
}
struct Arr { cudaArray_t a = 0; cudaMipmappedArray_t m = 0; cudaError_t e; };
static Arr array(const char *name, int w, int h, int d, unsigned flags, uint64_t s, int levels = 0, cudaChannelFormatDesc *own = 0)
{
    Texel t = texel(name);
    Arr r;
    cudaChannelFormatDesc f = own ? *own : t.d;
    cudaExtent e = make_cudaExtent(w, h, d);
    if (!levels) r.e = cudaMalloc3DArray(&r.a, &f, e, flags);
    else r.e = cudaMallocMipmappedArray(&r.m, &f, e, levels, flags);
    if (r.e) { cudaGetLastError(); return r; }
    for (int l = 0; l < (levels ? levels : 1); l++) {
        cudaArray_t a = r.a;
        int W = w, H = h, D = d;
        if (levels) {
            cudaGetMipmappedArrayLevel(&a, r.m, l);
            W = w >> l ? w >> l : 1;
            H = !h ? 0 : h >> l ? h >> l : 1;
            D = (flags & (cudaArrayLayered | cudaArrayCubemap)) || !d ? d : d >> l ? d >> l : 1;
        }
        int hh = H ? H : 1, dd = D ? D : 1;
        auto v = make(name, size_t(W) * hh * dd, s + l);
        cudaMemcpy3DParms p = {};
        p.srcPtr = make_cudaPitchedPtr(v.data(), size_t(W) * t.bytes, W, hh);
        p.dstArray = a;
        p.extent = make_cudaExtent(W, hh, dd);
        p.kind = cudaMemcpyHostToDevice;
        cudaError_t c = cudaMemcpy3D(&p);
        if (c) { r.e = c; cudaGetLastError(); }
    }
    return r;
}
static void write_case(const char *name, cudaError_t e, bool ok, int lanes)
{
    cudaGetLastError();
    fprintf(text, "%s|%d|%s|%d\n", name, int(e), cudaGetErrorName(e), ok ? lanes : 0);
    if (ok) fwrite(out, 16, lanes, data);
}
static void run(const std::string &name, cudaResourceDesc r, cudaTextureDesc t, const cudaResourceViewDesc *v, int fetch, bool integer = false, int lanes = 64)
{
    cudaTextureObject_t o = 0;
    cudaError_t e = cudaCreateTextureObject(&o, &r, &t, v);
    bool ok = e == cudaSuccess;
    if (ok && lanes) {
        memset(out, 0xee, N * 16);
        if (integer) isample<<<1, N>>>(fetch, o, coords, out);
        else sample<<<1, N>>>(fetch, o, coords, out);
        e = cudaDeviceSynchronize();
        cudaDestroyTextureObject(o);
    }
    write_case(name.c_str(), e, ok && !e, lanes);
}
static cudaResourceDesc over(Arr a)
{
    cudaResourceDesc r = {};
    if (a.a) { r.resType = cudaResourceTypeArray; r.res.array.array = a.a; }
    else { r.resType = cudaResourceTypeMipmappedArray; r.res.mipmap.mipmap = a.m; }
    return r;
}
static cudaTextureDesc how(int mode, int filter, int read, int normalized)
{
    cudaTextureDesc t = {};
    for (int i = 0; i < 3; i++) t.addressMode[i] = cudaTextureAddressMode(mode);
    t.filterMode = cudaTextureFilterMode(filter);
    t.readMode = cudaTextureReadMode(read);
    t.normalizedCoords = normalized;
    return t;
}
static std::string str(const char *f, ...) { char b[256]; va_list a; va_start(a, f); vsnprintf(b, 256, f, a); va_end(a); return b; }
static void border_of(cudaTextureDesc &t, float a, float b, float c, float d) { t.borderColor[0] = a; t.borderColor[1] = b; t.borderColor[2] = c; t.borderColor[3] = d; }

static void srgb()
{
    // the table: 256 values in all channels
    cudaChannelFormatDesc d = desc(8, 4, cudaChannelFormatKindUnsigned);
    Arr a; cudaMallocArray(&a.a, &d, 256, 1);
    std::vector<uint32_t> v(256);
    for (int i = 0; i < 256; i++) v[i] = i * 0x01010101u;
    cudaMemcpy2DToArray(a.a, 0, 0, v.data(), 1024, 1024, 1, cudaMemcpyHostToDevice);
    for (int i = 0; i < N; i++) coords[i] = i + 0.5f, coords[N + i] = 0.5f;
    auto t = how(1, 0, 1, 0);
    t.sRGB = 1;
    run("srgb-table", over(a), t, 0, T2, false, 256);
    const char *formats[] = {"u1x4", "u1x2", "u1x1", "i1x4", "u2x4", "u2x1", "i2x4", "f4x4", "f2x4", "f4x1", "u4x4"};
    for (auto f : formats) for (int filter = 0; filter < 2; filter++) for (int read = 0; read < 2; read++) for (int s = 0; s < 2; s++) {
        Arr b = array(f, 8, 8, 0, 0, 5);
        random_coords(-1, 9);
        auto t = how(1, filter, read, 0);
        t.sRGB = s;
        bool integer = !read && !texel(f).isfloat;
        run(str("srgb2d-%s-filter%d-read%d-srgb%d", f, filter, read, s), over(b), t, 0, T2, integer);
        cudaFreeArray(b.a);
    }
    for (int s : {1, 2, -1, 256}) { // any value that is not 0?
        Arr b = array("u1x4", 8, 8, 0, 0, 5);
        random_coords(-1, 9);
        auto t = how(1, 1, 1, 0);
        t.sRGB = s;
        run(str("srgbvalue-%d", s), over(b), t, 0, T2);
    }
    { auto b = array("u1x4", 16, 0, 0, 0, 6); random_coords(-1, 17); auto t = how(1, 1, 1, 0); t.sRGB = 1; run("srgb1d", over(b), t, 0, T1, false, 256); }
    { auto b = array("u1x4", 8, 8, 0, 0, 5); random_coords(-1, 9); auto t = how(1, 1, 1, 0); t.sRGB = 1; run("srgb2d", over(b), t, 0, T2, false, 256); }
    { auto b = array("u1x4", 8, 8, 8, 0, 6); random_coords(-1, 9); auto t = how(1, 1, 1, 0); t.sRGB = 1; run("srgb3d", over(b), t, 0, T3, false, 256); }
    { auto b = array("u1x4", 8, 8, 4, cudaArrayLayered, 6); random_coords(-1, 9); auto t = how(1, 1, 1, 0); t.sRGB = 1; run("srgblayered", over(b), t, 0, LAY2); }
    { auto b = array("u1x4", 8, 8, 0, cudaArrayTextureGather, 6); random_coords(-1, 9); for (int s = 0; s < 2; s++) { auto t = how(1, 1, 1, 0); t.sRGB = s; run(str("srgbgather-%d", s), over(b), t, 0, GATHER2); } }
    { auto b = array("u1x4", 16, 16, 0, 0, 6, 4); random_coords(0, 1, 0, 3); auto t = how(1, 1, 1, 1); t.sRGB = 1; t.mipmapFilterMode = cudaFilterModeLinear; t.maxMipmapLevelClamp = 9; run("srgbmip", over(b), t, 0, LOD2, false, 256); }
    // linear and pitched memory
    for (auto f : {"u1x4", "u1x1", "f4x4"}) {
        auto v = make(f, 64 * 8, 9);
        void *p; cudaMalloc(&p, v.size()); cudaMemcpy(p, v.data(), v.size(), cudaMemcpyHostToDevice);
        for (int s = 0; s < 2; s++) for (int mode : {0, 1, 3}) for (int norm = 0; norm < 2; norm++) for (int filter = 0; filter < 2; filter++) {
            cudaResourceDesc r = {};
            r.resType = cudaResourceTypePitch2D;
            r.res.pitch2D.devPtr = p; r.res.pitch2D.desc = texel(f).d; r.res.pitch2D.width = 64; r.res.pitch2D.height = 8; r.res.pitch2D.pitchInBytes = 64 * texel(f).bytes;
            auto t = how(mode, filter, texel(f).isfloat ? 0 : 1, norm);
            t.sRGB = s; border_of(t, 0.3f, 0.6f, 0.8f, 0.2f);
            if (norm) random_coords(-0.25, 1.25); else random_coords(-2, 10);
            run(str("pitch-%s-srgb%d-mode%d-norm%d-filter%d", f, s, mode, norm, filter), r, t, 0, T2, false, 32);
            cudaResourceDesc l = {};
            l.resType = cudaResourceTypeLinear;
            l.res.linear.devPtr = p; l.res.linear.desc = texel(f).d; l.res.linear.sizeInBytes = v.size();
            random_coords(-20, 530);
            run(str("linear-%s-srgb%d-mode%d-norm%d-filter%d", f, s, mode, norm, filter), l, t, 0, FETCH1, false, 32);
        }
    }
}
static void border()
{
    const char *formats[] = {"f4x4", "f4x2", "f4x1", "f2x4", "f2x1", "u1x4", "u1x2", "u1x1", "i1x4", "u2x4", "i2x4", "i2x1", "u4x4", "i4x4", "i4x1", "u1x4s"};
    float special[] = {0, 1, 0.5f, -1, -0.5f, 2, 1e6f, -1e6f, 1e-6f, 1.f / 255, 0.3f, NAN, INFINITY, -INFINITY, 3e9f, 65504.f, 65520.f, 1e-8f, 6e-8f, 1e-40f, 127.5f, 128.5f, 254.5f, 300.f};
    const int S = sizeof special / 4;
    for (auto g : formats) {
        std::string f = std::string(g).substr(0, 4);
        bool s = strlen(g) > 4;
        Arr b = array(f.c_str(), 8, 8, 0, 0, 5);
        for (int read = 0; read < 2; read++) {
            bool small = f[0] != 'f' && f[1] != '4';
            if (read && !small) continue;
            bool integer = !read && f[0] != 'f';
            // colors: one sample each
            seed(31);
            int count = 160;
            memset(out, 0, N * 16);
            std::vector<uint4> all(count);
            cudaError_t first = cudaSuccess;
            for (int k = 0; k < count; k++) {
                auto t = how(3, 0, read, 0);
                t.sRGB = s;
                for (int c = 0; c < 4; c++) {
                    float x = k < S ? special[(k + 5 * c) % S] : (float)(unit() * 1.25 - 0.125);
                    if (integer && k >= S) { if (k & 1) { uint32_t u = rnd(); memcpy(&x, &u, 4); } else x = (float)(rnd() % 70000) - 35000.f; }
                    t.borderColor[c] = x;
                }
                for (int i = 0; i < N; i++) coords[i] = -3, coords[N + i] = -3;
                cudaTextureObject_t o = 0;
                auto r = over(b);
                cudaError_t e = cudaCreateTextureObject(&o, &r, &t, 0);
                if (e) { first = e; continue; }
                if (integer) isample<<<1, 1>>>(T2, o, coords, out); else sample<<<1, 1>>>(T2, o, coords, out);
                e = cudaDeviceSynchronize();
                if (e) first = e;
                all[k] = out[0];
                cudaDestroyTextureObject(o);
            }
            memcpy(out, all.data(), count * 16);
            write_case(str("bordercolors-%s-read%d", g, read).c_str(), first, true, count);
            for (int filter = 0; filter < 2; filter++) {
                if (filter && integer) continue;
                auto t = how(3, filter, read, 0);
                t.sRGB = s;
                border_of(t, 0.3f, 0.6f, 0.8f, 0.2f);
                random_coords(-1, 9);
                for (int i = 0; i < N; i++) coords[i] = i % 2 ? -0.5f + unit() : 7.5f + unit();
                run(str("bordermix-%s-read%d-filter%d", g, read, filter), over(b), t, 0, T2, integer, 128);
            }
        }
        cudaFreeArray(b.a);
    }
    for (auto f : {"u1x4", "f4x4"}) for (int filter = 0; filter < 2; filter++) {
        int read = f[0] == 'u';
        auto t = how(3, filter, read, 0);
        border_of(t, 0.3f, 0.6f, 0.8f, 0.2f);
        random_coords(-1, 9);
        auto one = array(f, 8, 0, 0, 0, 5), three = array(f, 8, 8, 8, 0, 5), lay = array(f, 8, 8, 3, cudaArrayLayered, 5);
        auto gath = array(f, 8, 8, 0, cudaArrayTextureGather, 5), cube = array(f, 8, 8, 6, cudaArrayCubemap, 5);
        run(str("border1d-%s-filter%d", f, filter), over(one), t, 0, T1);
        run(str("border3d-%s-filter%d", f, filter), over(three), t, 0, T3);
        run(str("bordergather-%s-filter%d", f, filter), over(gath), t, 0, GATHER2);
        run(str("borderlayered-%s-filter%d", f, filter), over(lay), t, 0, LAY2);
        auto x = t; x.addressMode[1] = cudaAddressModeClamp; x.addressMode[2] = cudaAddressModeWrap;
        run(str("borderaxes-%s-filter%d", f, filter), over(three), x, 0, T3);
        auto n = t; n.normalizedCoords = 1;
        random_coords(-0.25, 1.25);
        run(str("bordernorm-%s-filter%d", f, filter), over(three), n, 0, T3);
        random_coords(-1, 1);
        run(str("bordercube-%s-filter%d", f, filter), over(cube), n, 0, CUBE);
        auto mip = array(f, 16, 16, 0, 0, 6, 4);
        n.mipmapFilterMode = cudaTextureFilterMode(filter); n.maxMipmapLevelClamp = 9;
        random_coords(-0.25, 1.25, 0, 3);
        run(str("bordermip-%s-filter%d", f, filter), over(mip), n, 0, LOD2);
    }
}
static void mipmaps()
{
    Arr m = array("f4x1", 64, 64, 0, 0, 6, 7), n = array("u1x4", 64, 64, 0, 0, 6, 7);
    auto base = how(1, 1, 0, 1);
    base.maxMipmapLevelClamp = 20;
    auto sweep = [&](const std::string &name, Arr a, cudaTextureDesc t, const cudaResourceViewDesc *v = 0) {
        if (a.m == n.m) t.readMode = cudaReadModeNormalizedFloat;
        random_coords(0, 1);
        for (int i = 0; i < N; i++) coords[3 * N + i] = -1 + 8.f * i / N;
        run(name + "-lod", over(a), t, v, LOD2, false, 256);
        random_coords(0, 1, -0.15, 0.15);
        for (int i = 0; i < N; i++) coords[2 * N + i] = 0.3f * (unit() - .5f);
        run(name + "-grad", over(a), t, v, GRAD2, false, 128);
        run(name + "-plain", over(a), t, v, T2, false, 16);
    };
    for (int f = 0; f < 2; f++) for (int dis : {0, 1}) for (int mf = 0; mf < 2; mf++) {
        auto t = base; t.mipmapFilterMode = cudaTextureFilterMode(mf); t.disableTrilinearOptimization = dis; t.filterMode = cudaTextureFilterMode(f);
        sweep(str("mip-f4x1-filter%d-mip%d-disable%d", f, mf, dis), m, t);
        sweep(str("mip-u1x4-filter%d-mip%d-disable%d", f, mf, dis), n, t);
    }
    for (float b : {0.3f, -0.7f, 1.f, 15.f, 16.f, 20.f, -16.f, -20.f, 1e9f, NAN, INFINITY, 0.001f, -0.002f, 1.00390625f}) {
        auto t = base; t.mipmapFilterMode = cudaFilterModeLinear; t.mipmapLevelBias = b;
        sweep(str("bias%g", b), m, t);
    }
    float clamps[][2] = {{0, 0}, {0.4f, 0.4f}, {1.3f, 2.7f}, {3, 1}, {-1, 2}, {-5, -2}, {5.5f, 100}, {0, 0.001f}, {0.002f, 9}, {NAN, 3}, {0, NAN}, {15.99f, 16}, {2.f, 2.f}, {0, INFINITY}};
    for (auto &c : clamps) for (int mf = 0; mf < 2; mf++) {
        auto t = base; t.mipmapFilterMode = cudaTextureFilterMode(mf); t.minMipmapLevelClamp = c[0]; t.maxMipmapLevelClamp = c[1];
        sweep(str("clamp%g_%g-mip%d", c[0], c[1], mf), m, t);
    }
    for (unsigned an : {0u, 1u, 2u, 3u, 4u, 8u, 15u, 16u, 17u, 100u, 0xffffffffu}) for (int mf = 0; mf < 2; mf++) {
        auto t = base; t.mipmapFilterMode = cudaTextureFilterMode(mf); t.maxAnisotropy = an;
        sweep(str("aniso%u-mip%d", an, mf), m, t);
        if (mf) { auto p = t; p.filterMode = cudaFilterModePoint; sweep(str("aniso%u-point", an), m, p); }
        // without levels
        auto flat = array("f4x1", 64, 64, 0, 0, 6);
        random_coords(0, 1, -0.15, 0.15);
        run(str("anisoflat%u-mip%d-grad", an, mf), over(flat), t, 0, GRAD2);
        run(str("anisoflat%u-mip%d-plain", an, mf), over(flat), t, 0, T2, false, 32);
        cudaFreeArray(flat.a);
    }
    // levels of the view
    unsigned views[][2] = {{0, 0}, {0, 6}, {1, 3}, {2, 2}, {3, 2}, {0, 7}, {5, 9}};
    for (auto &w : views) {
        cudaResourceViewDesc v = {};
        v.format = cudaResViewFormatFloat1; v.width = 64; v.height = 64;
        v.firstMipmapLevel = w[0]; v.lastMipmapLevel = w[1];
        auto t = base; t.mipmapFilterMode = cudaFilterModeLinear;
        sweep(str("viewlevels%u_%u", w[0], w[1]), m, t, &v);
    }
    // without normalised coordinates, with fields of levels on plain arrays
    { auto t = base; t.normalizedCoords = 0; sweep("mipnotnormalized", m, t); }
    { auto flat = array("f4x1", 16, 16, 0, 0, 6); auto t = base; t.mipmapFilterMode = cudaFilterModeLinear; t.mipmapLevelBias = 2; t.minMipmapLevelClamp = 3; random_coords(0, 1, 0, 3); run("flat-levels-lod", over(flat), t, 0, LOD2); run("flat-levels-plain", over(flat), t, 0, T2); }
    { auto c = array("f4x1", 16, 16, 6, cudaArrayCubemap, 6, 5); auto t = base; t.mipmapFilterMode = cudaFilterModeLinear; random_coords(-1, 1, 0, 4); for (int s = 0; s < 2; s++) { t.seamlessCubemap = s; run(str("cubemip-seamless%d", s), over(c), t, 0, CUBELOD, false, 256); } }
    { auto c = array("f4x1", 16, 16, 16, 0, 6, 5); auto t = base; t.mipmapFilterMode = cudaFilterModeLinear; random_coords(0, 1, 0, 4); for (int s = 0; s < 2; s++) { t.disableTrilinearOptimization = s; run(str("mip3d-disable%d", s), over(c), t, 0, LOD3, false, 128); } }
}
static void cubes()
{
    auto edges = [] {
        seed(12);
        for (int i = 0; i < N; i++) {
            float v[3];
            for (auto &x : v) x = 2 * unit() - 1;
            int major = rnd() % 3, other = (major + 1 + rnd() % 2) % 3;
            v[major] = rnd() & 1 ? 1.f : -1.f;
            float near_ = 1 - unit() * 0.3f;
            if (i % 4) v[other] = rnd() & 1 ? near_ : -near_;
            if (i % 4 == 3) { int third = 3 - major - other; float n = 1 - unit() * 0.3f; v[third] = rnd() & 1 ? n : -n; }
            for (int k = 0; k < 3; k++) coords[k * N + i] = v[k];
            coords[3 * N + i] = i % 2;
        }
    };
    for (auto f : {"f4x1", "u1x4", "f2x4", "i2x1", "f4x4"}) for (int size : {4, 1, 2, 8}) {
        auto c = array(f, size, size, 6, cudaArrayCubemap, 5), l = array(f, size, size, 12, cudaArrayCubemap | cudaArrayLayered, 5);
        for (int filter = 0; filter < 2; filter++) for (int s : {0, 1, 2}) for (int mode = 0; mode < 4; mode++) {
            if (s == 2 && mode != 1) continue;
            if (mode != 1 && size != 4) continue;
            auto t = how(mode, filter, f[0] != 'f', 1);
            t.seamlessCubemap = s;
            border_of(t, 0.3f, 0.6f, 0.8f, 0.2f);
            edges();
            run(str("cube-%s-%d-filter%d-seamless%d-mode%d", f, size, filter, s, mode), over(c), t, 0, CUBE, false, f[1] == '4' && f[3] == '1' ? 256 : 96);
            if (mode == 1 && size == 4) run(str("cubelayered-%s-%d-filter%d-seamless%d-mode%d", f, size, filter, s, mode), over(l), t, 0, CUBELAY, false, 64);
        }
        cudaFreeArray(c.a); cudaFreeArray(l.a);
    }
    auto flat = array("f4x1", 8, 8, 0, 0, 5);
    auto t = how(0, 1, 0, 1); t.seamlessCubemap = 1;
    random_coords(-0.25, 1.25);
    run("seamless-flat", over(flat), t, 0, T2);
    auto c = array("f4x1", 8, 8, 6, cudaArrayCubemap, 5);
    for (int norm = 0; norm < 2; norm++) { auto t = how(1, 1, 0, norm); edges(); run(str("cube-norm%d", norm), over(c), t, 0, CUBE); }
}
static void views()
{
    struct { const char *name; int format; } formats[] = {{"f4x4", cudaResViewFormatFloat4}, {"u1x4", cudaResViewFormatUnsignedChar4}, {"u4x1", cudaResViewFormatUnsignedInt1}, {"i1x4", cudaResViewFormatSignedChar4},
        {"u2x2", cudaResViewFormatUnsignedShort2}, {"f2x2", cudaResViewFormatHalf2}, {"none", cudaResViewFormatNone}, {"f4x1", cudaResViewFormatFloat1}, {"i4x1", cudaResViewFormatSignedInt1}, {"u1x1", cudaResViewFormatUnsignedChar1}, {"bc1", cudaResViewFormatUnsignedBlockCompressed1}};
    for (auto f : {"u1x4", "u4x1", "f4x1", "u4x2", "u4x4"}) for (auto &w : formats) for (int wide : {8, 32, 4}) for (int read = 0; read < 2; read++) {
        auto a = array(f, 8, 8, 0, 0, 5);
        cudaResourceViewDesc v = {};
        v.format = cudaResourceViewFormat(w.format); v.width = wide; v.height = wide;
        auto t = how(1, 0, read, 0);
        random_coords(0, 8);
        run(str("view-%s-as-%s-%d-read%d", f, w.name, wide, read), over(a), t, &v, T2, w.name[0] != 'f' && !read && w.name[0] != 'b', 32);
        cudaFreeArray(a.a);
    }
    auto l = array("f4x1", 8, 8, 6, cudaArrayLayered, 5);
    unsigned layers[][2] = {{0, 0}, {0, 5}, {1, 3}, {4, 4}, {3, 1}, {0, 6}, {5, 9}};
    for (auto &w : layers) {
        cudaResourceViewDesc v = {};
        v.format = cudaResViewFormatFloat1; v.width = 8; v.height = 8; v.depth = 6; v.firstLayer = w[0]; v.lastLayer = w[1];
        random_coords(-1, 8);
        for (int d : {6, 0, int(w[1] - w[0] + 1)}) { v.depth = d; run(str("viewlayers%u_%u-depth%d", w[0], w[1], d), over(l), how(1, 0, 0, 0), &v, LAY2, false, 64); }
    }
    auto a = array("f4x1", 8, 8, 0, 0, 5);
    int sizes[][3] = {{8, 8, 0}, {0, 0, 0}, {4, 4, 0}, {16, 8, 0}, {8, 4, 0}, {8, 8, 1}, {8, 8, 5}};
    for (auto &s : sizes) {
        cudaResourceViewDesc v = {};
        v.format = cudaResViewFormatFloat1; v.width = s[0]; v.height = s[1]; v.depth = s[2];
        random_coords(-1, 10);
        run(str("viewsize%d_%d_%d", s[0], s[1], s[2]), over(a), how(1, 0, 0, 0), &v, T2, false, 32);
        v.format = cudaResViewFormatNone;
        run(str("viewsizenone%d_%d_%d", s[0], s[1], s[2]), over(a), how(1, 0, 0, 0), &v, T2, false, 32);
    }
    { cudaResourceViewDesc v = {}; v.format = cudaResViewFormatFloat1; v.width = v.height = 8; v.firstMipmapLevel = 1; run("viewflatlevel1", over(a), how(1, 0, 0, 0), &v, T2, false, 32); }
    { cudaResourceViewDesc v = {}; v.format = cudaResViewFormatFloat1; v.width = v.height = 8; v.lastMipmapLevel = 1; run("viewflatlast1", over(a), how(1, 0, 0, 0), &v, T2, false, 32); }
    { cudaResourceViewDesc v = {}; v.format = cudaResViewFormatFloat1; v.width = v.height = 8; v.lastLayer = 1; run("viewflatlayer1", over(a), how(1, 0, 0, 0), &v, T2, false, 32); }
    void *p; cudaMalloc(&p, 1 << 16); cudaMemset(p, 0x3f, 1 << 16);
    cudaResourceDesc r = {}; r.resType = cudaResourceTypeLinear; r.res.linear.devPtr = p; r.res.linear.desc = texel("f4x1").d; r.res.linear.sizeInBytes = 1024;
    cudaResourceViewDesc v = {}; v.format = cudaResViewFormatFloat1; v.width = 64;
    random_coords(0, 100);
    run("viewlinear", r, how(1, 0, 0, 0), &v, FETCH1, false, 32);
    // resource fields
    for (size_t bytes : {size_t(0), size_t(1), size_t(5), size_t(1024), size_t(1) << 40}) { auto q = r; q.res.linear.sizeInBytes = bytes; run(str("linearbytes%zu", bytes), q, how(1, 0, 0, 0), 0, FETCH1, false, 8); }
    for (int off : {1, 4, 16, 32, 64, 128, 256, 512}) { auto q = r; q.res.linear.devPtr = (char *)p + off; run(str("linearoffset%d", off), q, how(1, 0, 0, 0), 0, FETCH1, false, 0); }
    { auto q = r; q.res.linear.devPtr = 0; run("linearnull", q, how(1, 0, 0, 0), 0, FETCH1, false, 0); }
    cudaResourceDesc d = {}; d.resType = cudaResourceTypePitch2D; d.res.pitch2D.devPtr = p; d.res.pitch2D.desc = texel("f4x1").d; d.res.pitch2D.width = 16; d.res.pitch2D.height = 8; d.res.pitch2D.pitchInBytes = 512;
    for (size_t pitch : {0, 16, 32, 48, 64, 96, 500, 512}) { auto q = d; q.res.pitch2D.pitchInBytes = pitch; run(str("pitchbytes%zu", pitch), q, how(1, 0, 0, 0), 0, T2, false, 0); }
    for (int off : {4, 16, 32, 64, 128, 256, 512}) { auto q = d; q.res.pitch2D.devPtr = (char *)p + off; run(str("pitchoffset%d", off), q, how(1, 0, 0, 0), 0, T2, false, 0); }
    for (size_t w : {size_t(0), size_t(1), size_t(131072), size_t(131073)}) { auto q = d; q.res.pitch2D.width = w; run(str("pitchwidth%zu", w), q, how(1, 0, 0, 0), 0, T2, false, 0); }
    for (size_t w : {size_t(0), size_t(1), size_t(65000), size_t(65001), size_t(65536)}) { auto q = d; q.res.pitch2D.height = w; run(str("pitchheight%zu", w), q, how(1, 0, 0, 0), 0, T2, false, 0); }
    // descriptions of channels over memory
    int bits[][5] = {{32, 0, 0, 0, 2}, {8, 8, 8, 0, 1}, {32, 32, 32, 0, 2}, {16, 0, 0, 0, 2}, {8, 0, 0, 0, 2}, {8, 16, 0, 0, 1}, {0, 8, 0, 0, 1}, {64, 0, 0, 0, 1}, {32, 0, 0, 0, 3}, {12, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, {8, 8, 0, 8, 1}, {4, 4, 0, 0, 1}, {8, 8, 8, 8, 4}, {32, 0, 0, 0, 77}, {8, 8, 8, 8, 7}, {8, 0, 0, 0, 5}, {16, 0, 0, 0, 8}, {8, 8, 8, 8, 17}};
    for (auto &b : bits) {
        auto q = r;
        q.res.linear.desc = {b[0], b[1], b[2], b[3], cudaChannelFormatKind(b[4])};
        run(str("channels-linear-%d_%d_%d_%d-%d", b[0], b[1], b[2], b[3], b[4]), q, how(1, 0, 0, 0), 0, FETCH1, false, 0);
        cudaArray_t x;
        cudaError_t e = cudaMallocArray(&x, &q.res.linear.desc, 8, 8);
        write_case(str("channels-array-%d_%d_%d_%d-%d", b[0], b[1], b[2], b[3], b[4]).c_str(), e, false, 0);
    }
    // formats of normalised integers
    struct { int kind; const char *texels; } kinds[] = {{5, "u1x1"}, {6, "u1x2"}, {7, "u1x4"}, {8, "u2x1"}, {9, "u2x2"}, {10, "u2x4"}, {11, "i1x1"}, {12, "i1x2"}, {13, "i1x4"}, {14, "i2x1"}, {15, "i2x2"}, {16, "i2x4"}, {31, "u4x1"}};
    for (auto &k : kinds) for (int read = 0; read < 2; read++) for (int filter = 0; filter < 2; filter++) for (int s = 0; s < 2; s++) {
        auto own = k.kind == 31 ? cudaChannelFormatDesc{10, 10, 10, 2, cudaChannelFormatKind(31)} : cudaChannelFormatDesc{texel(k.texels).d.x, texel(k.texels).d.y, texel(k.texels).d.z, texel(k.texels).d.w, cudaChannelFormatKind(k.kind)};
        auto x = array(k.texels, 8, 8, 0, 0, 5, 0, &own);
        if (x.e) { write_case(str("kind%d-array", k.kind).c_str(), x.e, false, 0); continue; }
        auto t = how(3, filter, read, 0); t.sRGB = s;
        border_of(t, 0.3f, 0.6f, 0.8f, 0.2f);
        random_coords(-1, 9);
        run(str("kind%d-read%d-filter%d-srgb%d", k.kind, read, filter, s), over(x), t, 0, T2, false, 64);
        cudaFreeArray(x.a);
    }
    for (int kind = 17; kind <= 45; kind++) {
        cudaChannelFormatDesc own = {8, kind == 23 || kind == 24 ? 0 : 8, kind >= 23 && kind <= 26 ? 0 : 8, kind >= 23 && kind <= 28 ? 0 : 8, cudaChannelFormatKind(kind)};
        if (kind == 27 || kind == 28) own = {16, 16, 16, 0, cudaChannelFormatKind(kind)};
        cudaArray_t x;
        cudaError_t e = cudaMallocArray(&x, &own, 16, 16);
        write_case(str("kind%d-array", kind).c_str(), e, false, 0);
    }
}
static void errors()
{
    auto flat = array("f4x1", 8, 8, 0, 0, 5), ints = array("u1x4", 8, 8, 0, 0, 5), words = array("i4x1", 8, 8, 0, 0, 5), cube = array("f4x1", 8, 8, 6, cudaArrayCubemap, 5);
    auto base = how(1, 0, 0, 0);
    random_coords(-4, 12);
    for (int m : {-1, 4, 7}) { auto t = base; t.addressMode[0] = cudaTextureAddressMode(m); run(str("bad-mode0_%d", m), over(flat), t, 0, T2, false, 16); t = base; t.addressMode[2] = cudaTextureAddressMode(m); run(str("bad-mode2_%d", m), over(flat), t, 0, T2, false, 16); }
    for (int m : {-1, 2, 7}) { auto t = base; t.filterMode = cudaTextureFilterMode(m); run(str("bad-filter_%d", m), over(flat), t, 0, T2, false, 16);
        t = base; t.readMode = cudaTextureReadMode(m); run(str("bad-read_%d", m), over(ints), t, 0, T2, false, 16); run(str("bad-readfloat_%d", m), over(flat), t, 0, T2, false, 16);
        t = base; t.mipmapFilterMode = cudaTextureFilterMode(m); run(str("bad-mipfilter_%d", m), over(flat), t, 0, T2, false, 16);
        t = base; t.normalizedCoords = m; run(str("bad-normalized_%d", m), over(flat), t, 0, T2, false, 16);
        t = base; t.disableTrilinearOptimization = m; run(str("bad-disable_%d", m), over(flat), t, 0, T2, false, 16);
        t = base; t.seamlessCubemap = m; run(str("bad-seamless_%d", m), over(flat), t, 0, T2, false, 16); }
    { auto t = base; t.filterMode = cudaFilterModeLinear; run("bad-linear-element", over(ints), t, 0, T2, false, 16); run("bad-linear-words", over(words), t, 0, T2, true, 16); t.readMode = cudaReadModeNormalizedFloat; run("bad-linear-words-normalized", over(words), t, 0, T2, false, 16); run("bad-linear-floats-normalized", over(flat), t, 0, T2, false, 16); }
    { auto t = base; t.readMode = cudaReadModeNormalizedFloat; run("bad-words-normalized", over(words), t, 0, T2, false, 16); run("bad-floats-normalized", over(flat), t, 0, T2, false, 16); }
    { cudaResourceDesc r = {}; run("bad-null-array", r, base, 0, T2, false, 0); r.resType = cudaResourceTypeMipmappedArray; run("bad-null-mipmap", r, base, 0, T2, false, 0); r.resType = cudaResourceType(9); run("bad-type", r, base, 0, T2, false, 0); }
    for (int m : {0, 2}) for (int f = 0; f < 2; f++) { auto t = how(m, f, 0, 0); run(str("unnormalized-mode%d-filter%d", m, f), over(flat), t, 0, T2, false, 64); }
    { auto t = base; t.normalizedCoords = 0; run("bad-cube-unnormalized", over(cube), t, 0, CUBE, false, 16); }
    // what a texture says of itself
    auto t = how(3, 1, 0, 1); t.sRGB = 1; border_of(t, .1f, .2f, .3f, .4f); t.maxAnisotropy = 5; t.mipmapFilterMode = cudaFilterModeLinear; t.mipmapLevelBias = .5f; t.minMipmapLevelClamp = .25f; t.maxMipmapLevelClamp = 3; t.disableTrilinearOptimization = 1; t.seamlessCubemap = 1;
    auto r = over(flat);
    for (int v = 0; v < 2; v++) {
        cudaResourceViewDesc view = {}; view.format = cudaResViewFormatFloat1; view.width = view.height = 8;
        cudaTextureObject_t o;
        cudaError_t e = cudaCreateTextureObject(&o, &r, &t, v ? &view : 0);
        cudaTextureDesc back = {}; cudaResourceViewDesc vb = {};
        cudaError_t e1 = cudaGetTextureObjectTextureDesc(&back, o), e2 = cudaGetTextureObjectResourceViewDesc(&vb, o);
        memset(out, 0, 4096); memcpy(out, &back, sizeof back); memcpy(out + 16, &vb, sizeof vb);
        write_case(str("getdesc%d-%d-%d", v, int(e1), int(e2)).c_str(), e, true, 32);
    }
}
int main(int argc, char **argv)
{
    std::string base = argc > 1 ? argv[1] : ".";
    cudaMallocManaged(&coords, 6 * N * 4);
    cudaMallocManaged(&out, N * 16);
    struct { const char *name; void (*part)(); } parts[] = {{"srgb", srgb}, {"border", border}, {"mip", mipmaps}, {"cube", cubes}, {"view", views}, {"errors", errors}};
    for (auto &p : parts) {
        if (argc > 2 && strcmp(argv[2], p.name)) continue;
        text = fopen((base + "/textures." + p.name + ".txt").c_str(), "w");
        data = fopen((base + "/textures." + p.name + ".bin").c_str(), "wb");
        p.part();
        fclose(text), fclose(data);
    }
}
