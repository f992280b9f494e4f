// Radix sort, four bits a pass: count digits by block, scan the counts, scatter stably.

#define BLOCK 128
#define DIGITS 16

__global__ void count_digits(unsigned *counts, const unsigned *keys, int shift, int n)
{
    __shared__ unsigned bins[DIGITS];
    if (threadIdx.x < DIGITS)
        bins[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        atomicAdd(&bins[keys[i] >> shift & (DIGITS - 1)], 1u);
    __syncthreads();
    if (threadIdx.x < DIGITS)
        counts[threadIdx.x * gridDim.x + blockIdx.x] = bins[threadIdx.x];
}

__global__ void scan_counts(unsigned *counts, int n)
{
    __shared__ unsigned total;
    __shared__ unsigned line[BLOCK];
    if (threadIdx.x == 0)
        total = 0;
    __syncthreads();
    for (int start = 0; start < n; start += BLOCK) {
        int i = start + threadIdx.x;
        unsigned own = i < n ? counts[i] : 0;
        line[threadIdx.x] = own;
        for (int reach = 1; reach < BLOCK; reach *= 2) {
            __syncthreads();
            unsigned left = threadIdx.x >= reach ? line[threadIdx.x - reach] : 0;
            __syncthreads();
            line[threadIdx.x] += left;
        }
        __syncthreads();
        if (i < n)
            counts[i] = total + line[threadIdx.x] - own;
        __syncthreads();
        if (threadIdx.x == BLOCK - 1)
            total += line[threadIdx.x];
        __syncthreads();
    }
}

__global__ void scatter(unsigned *to, unsigned *to_values, const unsigned *keys,
                        const unsigned *values, const unsigned *counts, int shift, int n)
{
    __shared__ unsigned warp_counts[BLOCK / 32][DIGITS];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned key = i < n ? keys[i] : 0xffffffff;
    unsigned digit = key >> shift & (DIGITS - 1);
    unsigned peers = __match_any_sync(0xffffffff, digit);
    unsigned rank = __popc(peers & ((1u << lane) - 1));
    for (int d = threadIdx.x; d < BLOCK / 32 * DIGITS; d += BLOCK)
        warp_counts[0][d] = 0;
    __syncthreads();
    if (rank == 0)
        warp_counts[warp][digit] = __popc(peers);
    __syncthreads();
    for (int w = 0; w < warp; ++w)
        rank += warp_counts[w][digit];
    if (i < n) {
        unsigned place = counts[digit * gridDim.x + blockIdx.x] + rank;
        to[place] = key;
        to_values[place] = values[i];
    }
}
