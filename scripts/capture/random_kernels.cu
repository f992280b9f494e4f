// Launch one kernel of a list and print a digest of each array it wrote: launch LIST INPUTS NAME
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>
#define CHECK(call) { cudaError_t e = (call); if (e) { printf("%s error %s\n", name.c_str(), cudaGetErrorName(e)); exit(0); } }

static uint64_t digest(const std::vector<char> &data, char kind, int size)
{
    uint64_t h = 14695981039346656037ull;
    for (size_t k = 0; k < data.size(); k += size) {
        uint64_t word = 0;
        memcpy(&word, &data[k], size);
        if (kind == 'f' && size == 4 && (word & 0x7FFFFFFF) > 0x7F800000) word = 0x7FC00000;
        if (kind == 'f' && size == 8 && (word & ~(1ull << 63)) > 0x7FF0000000000000ull) word = 0x7FF8000000000000ull;
        h = (h ^ word) * 1099511628211ull;
        h ^= h >> 29;
    }
    return h;
}

int main(int, char **argv)
{
    std::string list = argv[1], inputs = argv[2], name = argv[3], line;
    std::ifstream file(list);
    std::ifstream data(inputs, std::ios::binary);
    std::vector<char> pool((std::istreambuf_iterator<char>(data)), std::istreambuf_iterator<char>());
    while (std::getline(file, line)) {
        std::istringstream words(line);
        std::string word, cubin;
        int many;
        dim3 grid, block;
        words >> word >> cubin >> grid.x >> grid.y >> grid.z >> block.x >> block.y >> block.z >> many;
        if (word != name) continue;
        cudaLibrary_t library;
        cudaKernel_t kernel;
        CHECK(cudaLibraryLoadFromFile(&library, cubin.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
        CHECK(cudaLibraryGetKernel(&kernel, library, name.c_str()));
        struct Out { std::string name; char kind; int size; size_t bytes; void *p; };
        std::vector<Out> outs;
        std::vector<uint64_t> cells(many);
        std::vector<void *> arguments(many);
        for (int k = 0; k < many; k++) {
            std::getline(file, line);
            std::istringstream w(line);
            std::string what, its;
            w >> what >> its;
            arguments[k] = &cells[k];
            if (what == "array") { // name kind size bytes offset is_output
                char kind; int size, is_output; size_t bytes, offset; void *p;
                w >> kind >> size >> bytes >> offset >> is_output;
                CHECK(cudaMalloc(&p, bytes));
                CHECK(cudaMemcpy(p, &pool[offset], bytes, cudaMemcpyHostToDevice));
                cells[k] = (uint64_t)p;
                if (is_output) outs.push_back({its, kind, size, bytes, p});
            } else if (what == "word") {
                w >> cells[k];
            } else { // image name kind size offset dims w h d linear_filter normalized mode x y z is_linear is_surface
                char kind; int size, dims, filter, normalized, mode[3], is_linear, is_surface;
                size_t offset, e[3];
                w >> kind >> size >> offset >> dims >> e[0] >> e[1] >> e[2] >> filter >> normalized >> mode[0] >> mode[1] >> mode[2] >> is_linear >> is_surface;
                cudaChannelFormatDesc form = cudaCreateChannelDesc(8 * size, 0, 0, 0,
                    kind == 'f' ? cudaChannelFormatKindFloat : kind == 'i' ? cudaChannelFormatKindSigned : cudaChannelFormatKindUnsigned);
                cudaResourceDesc resource = {};
                size_t bytes = size * e[0] * (e[1] ? e[1] : 1) * (e[2] ? e[2] : 1);
                if (is_linear) {
                    void *p;
                    CHECK(cudaMalloc(&p, bytes));
                    CHECK(cudaMemcpy(p, &pool[offset], bytes, cudaMemcpyHostToDevice));
                    resource.resType = cudaResourceTypeLinear;
                    resource.res.linear.devPtr = p, resource.res.linear.desc = form, resource.res.linear.sizeInBytes = bytes;
                } else {
                    cudaArray_t array;
                    cudaExtent extent = make_cudaExtent(e[0], e[1], e[2]);
                    unsigned flags = is_surface ? cudaArraySurfaceLoadStore : dims == 2 && kind == 'f' ? cudaArrayTextureGather : 0;
                    CHECK(cudaMalloc3DArray(&array, &form, extent, flags));
                    cudaMemcpy3DParms copy = {};
                    copy.srcPtr = make_cudaPitchedPtr(&pool[offset], size * e[0], e[0], e[1] ? e[1] : 1);
                    copy.dstArray = array;
                    copy.extent = make_cudaExtent(e[0], e[1] ? e[1] : 1, e[2] ? e[2] : 1);
                    copy.kind = cudaMemcpyHostToDevice;
                    CHECK(cudaMemcpy3D(&copy));
                    resource.resType = cudaResourceTypeArray;
                    resource.res.array.array = array;
                }
                if (is_surface) {
                    cudaSurfaceObject_t s;
                    CHECK(cudaCreateSurfaceObject(&s, &resource));
                    cells[k] = s;
                } else {
                    cudaTextureDesc modes = {};
                    for (int d = 0; d < 3; d++) modes.addressMode[d] = (cudaTextureAddressMode)mode[d];
                    modes.filterMode = filter ? cudaFilterModeLinear : cudaFilterModePoint;
                    modes.readMode = cudaReadModeElementType, modes.normalizedCoords = normalized;
                    cudaTextureObject_t t;
                    CHECK(cudaCreateTextureObject(&t, &resource, &modes, nullptr));
                    cells[k] = t;
                }
            }
        }
        CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 16384));
        CHECK(cudaLaunchKernel((const void *)kernel, grid, block, arguments.data(), 0, 0));
        CHECK(cudaDeviceSynchronize());
        std::string said = name;
        for (Out &out : outs) {
            std::vector<char> back(out.bytes);
            CHECK(cudaMemcpy(back.data(), out.p, out.bytes, cudaMemcpyDeviceToHost));
            char text[64];
            snprintf(text, sizeof text, " %s=%016llx", out.name.c_str(), (unsigned long long)digest(back, out.kind, out.size));
            said += text;
        }
        puts(said.c_str());
        return 0;
    }
    printf("%s error unknown\n", name.c_str());
}
