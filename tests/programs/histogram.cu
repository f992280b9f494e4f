// Histograms of bytes: global atomics, one table a block, one a warp with words of four bytes, and
// by sorting out equal values within a warp first.

__global__ void histogram_global(unsigned *bins, const unsigned char *data, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[data[i]], 1u);
}

__global__ void histogram_shared(unsigned *bins, const unsigned char *data, int n)
{
    __shared__ unsigned own[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        own[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[data[i]], 1u);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (own[b])
            atomicAdd(&bins[b], own[b]);
}

#define WARPS 4

__global__ void histogram_warps(unsigned *bins, const uchar4 *data, int quads)
{
    __shared__ unsigned tables[WARPS][256];
    unsigned *table = tables[threadIdx.x / 32];
    for (int b = threadIdx.x; b < WARPS * 256; b += blockDim.x)
        tables[0][b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += gridDim.x * blockDim.x) {
        uchar4 four = data[i];
        atomicInc(&table[four.x], 0xffffffffu);
        atomicInc(&table[four.y], 0xffffffffu);
        atomicInc(&table[four.z], 0xffffffffu);
        atomicInc(&table[four.w], 0xffffffffu);
    }
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x) {
        unsigned sum = 0;
        #pragma unroll
        for (int w = 0; w < WARPS; ++w)
            sum += tables[w][b];
        atomicAdd(&bins[b], sum);
    }
}

__global__ void histogram_peers(unsigned *bins, const unsigned char *data, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned here = __ballot_sync(0xffffffff, i < n);
    if (i >= n)
        return;
    unsigned peers = __match_any_sync(here, (unsigned)data[i]);
    if ((threadIdx.x & 31) == __ffs(peers) - 1)
        atomicAdd(&bins[data[i]], __popc(peers));
}
