// Where seven allocators put memory in sequences of allocations: a line each, with the address and
// the largest power of two that divides it. nvcc -arch=sm_90 allocations.cu -lcuda; ./a.out HOW.
// tests/validate/allocations.csv has of every size the smallest such power of each HOW.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <vector>
#include <string>
#include <cuda.h>
#include <cuda_runtime.h>
typedef unsigned long long U;
static const char *how = "malloc";
static cudaStream_t stream;
static cudaMemPool_t pool;
static void *get(size_t bytes)
{
    void *p = NULL;
    int s = 0;
    if (!strcmp(how, "malloc")) s = cudaMalloc(&p, bytes);
    else if (!strcmp(how, "managed")) s = cudaMallocManaged(&p, bytes);
    else if (!strcmp(how, "async")) s = cudaMallocAsync(&p, bytes, stream);
    else if (!strcmp(how, "pool")) s = cudaMallocFromPoolAsync(&p, bytes, pool, stream);
    else if (!strcmp(how, "driver")) s = cuMemAlloc((CUdeviceptr *)&p, bytes);
    else if (!strcmp(how, "host")) s = cudaMallocHost(&p, bytes);
    else if (!strcmp(how, "hostalloc")) s = cudaHostAlloc(&p, bytes, cudaHostAllocMapped);
    if (s) printf("error %d\n", s);
    return p;
}
static void give(void *p)
{
    if (!strcmp(how, "async") || !strcmp(how, "pool")) cudaFreeAsync(p, stream);
    else if (!strncmp(how, "host", 4)) cudaFreeHost(p);
    else cudaFree(p);
}
static void say(const char *title, size_t bytes, void *p)
{
    U a = (U)p;
    printf("%s %s %zu %llx %llu\n", how, title, bytes, a, a & -a);
}
static void sequence(const char *title, std::vector<size_t> sizes, int is_kept = 0)
{
    std::vector<void *> all;
    size_t f0, t0, f1;
    cudaMemGetInfo(&f0, &t0);
    for (size_t s : sizes) {
        if (!strncmp(how, "host", 4) && s > (64ul << 20)) continue;
        void *p = get(s);
        say(title, s, p);
        all.push_back(p);
    }
    cudaDeviceSynchronize();
    cudaMemGetInfo(&f1, &t0);
    printf("%s %s used %lld\n", how, title, (long long)(f0 - f1));
    if (!is_kept)
        for (void *p : all) give(p);
    cudaDeviceSynchronize();
}
static std::vector<size_t> range(size_t from, size_t to, size_t step)
{
    std::vector<size_t> all;
    for (size_t s = from; s <= to; s += step) all.push_back(s);
    return all;
}
int main(int argc, char **argv)
{
    const size_t K = 1 << 10, M = 1 << 20, G = 1 << 30;
    cudaFree(0);
    cudaStreamCreate(&stream);
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    cudaMemPoolCreate(&pool, &props);
    how = argv[1];
    sequence("first", {1, 1, 8, 256, 257, 511, 512, 513, 1000, 4096, 4097});
    sequence("powers", {256, 512, K, 2 * K, 4 * K, 8 * K, 16 * K, 32 * K, 64 * K, 128 * K, 256 * K, 512 * K, M, 2 * M, 4 * M, 8 * M, 16 * M, 32 * M, 64 * M, 128 * M, 256 * M, 512 * M, G});
    sequence("powers_down", {G, 512 * M, 256 * M, 128 * M, 64 * M, 32 * M, 16 * M, 8 * M, 4 * M, 2 * M, M, 512 * K, 256 * K, 128 * K, 64 * K, 32 * K, 16 * K, 8 * K, 4 * K, 2 * K, K, 512, 256});
    /* each size behind a small one, as in a program */
    std::vector<size_t> mixed;
    for (size_t s : {size_t(8), 100 * K, 256 * K, 500 * K, 512 * K, 513 * K, 600 * K, 768 * K, 1000 * K, M - 1, M, M + 1, M + 256 * K, M + 512 * K, 2 * M - 1, 2 * M, 2 * M + 1, 3 * M, 4 * M, 5 * M, 8 * M, 10 * M, 15 * M, 16 * M, 17 * M, 20 * M, 24 * M, 31 * M, 32 * M, 33 * M, 40 * M, 48 * M, 63 * M, 64 * M, 65 * M, 96 * M, 100 * M, 127 * M, 128 * M, 129 * M, 174104576ul, 192 * M, 256 * M, 300 * M, 512 * M, 700 * M, G, G + M}) {
        mixed.push_back(8);
        mixed.push_back(s);
    }
    sequence("mixed", mixed);
    sequence("steps_small", range(1, 40001, 400));
    sequence("steps_64k", range(64 * K, 2 * M, 64 * K));
    sequence("steps_1m", range(M, 40 * M, M));
    sequence("same_300k", std::vector<size_t>(12, 300 * K));
    sequence("same_700k", std::vector<size_t>(8, 700 * K));
    sequence("same_1m", std::vector<size_t>(8, M));
    sequence("same_1500k", std::vector<size_t>(8, 1500 * K));
    sequence("same_3m", std::vector<size_t>(6, 3 * M));
    sequence("same_20m", std::vector<size_t>(4, 20 * M));
    sequence("same_33m", std::vector<size_t>(4, 33 * M));
    sequence("same_66m", std::vector<size_t>(4, 66 * M));
    sequence("same_4k", std::vector<size_t>(520, 4 * K));
    /* free and take again */
    void *a = get(1000), *b = get(1000), *c = get(1000), *e = get(3 * M), *f = get(1000);
    say("a", 1000, a), say("b", 1000, b), say("c", 1000, c), say("e", 3 * M, e), say("f", 1000, f);
    give(b);
    cudaDeviceSynchronize();
    void *b2 = get(500);
    say("b2 of 500", 500, b2);
    void *b3 = get(400);
    say("b3 of 400", 400, b3);
    give(a), give(e);
    cudaDeviceSynchronize();
    void *a2 = get(1000), *e2 = get(3 * M);
    say("a2", 1000, a2), say("e2", 3 * M, e2);
    give(a2), give(b2), give(b3), give(c), give(f), give(e2);
    cudaDeviceSynchronize();
    sequence("again", {8, M, 8, 3 * M, 8, 174104576});
    /* a pseudo-random mixture of taking and giving */
    unsigned state = 12345;
    std::vector<std::pair<void *, size_t>> live;
    for (int i = 0; i < 300; i++) {
        state = state * 1103515245u + 12345u;
        unsigned r = state >> 8;
        if (live.size() > 8 && r % 3 == 0) {
            size_t at = (r / 3) % live.size();
            printf("%s random give %zu\n", how, at);
            give(live[at].first);
            live.erase(live.begin() + at);
        } else {
            size_t bits = 4 + (r / 3) % 23;
            size_t bytes = (size_t(1) << bits) + (r / 97) % (size_t(1) << bits);
            void *p = get(bytes);
            say("random", bytes, p);
            live.push_back({p, bytes});
        }
    }
    for (auto &each : live) give(each.first);
}
