// Prefix sums: Hillis and Steele's in log steps, Blelloch's work-efficient one, with warp shuffles,
// and in one pass over the array with a decoupled look-back.

#define BLOCK 256

__global__ void scan_hillis_steele(int *out, const int *in)
{
    __shared__ int buffer[2][BLOCK];
    int t = threadIdx.x, from = 0;
    buffer[0][t] = in[t];
    __syncthreads();
    for (int reach = 1; reach < BLOCK; reach *= 2) {
        int sum = buffer[from][t];
        if (t >= reach)
            sum += buffer[from][t - reach];
        buffer[1 - from][t] = sum;
        from = 1 - from;
        __syncthreads();
    }
    out[t] = buffer[from][t];
}

#define PADDED(i) ((i) + ((i) >> 5))

__global__ void scan_blelloch(int *out, const int *in, int n)
{
    extern __shared__ int tree[];
    int t = threadIdx.x, offset = 1;
    tree[PADDED(2 * t)] = in[2 * t];
    tree[PADDED(2 * t + 1)] = in[2 * t + 1];
    for (int nodes = n / 2; nodes > 0; nodes /= 2) {
        __syncthreads();
        if (t < nodes) {
            int left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1;
            tree[PADDED(right)] += tree[PADDED(left)];
        }
        offset *= 2;
    }
    if (t == 0)
        tree[PADDED(n - 1)] = 0;
    for (int nodes = 1; nodes < n; nodes *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < nodes) {
            int left = offset * (2 * t + 1) - 1, right = offset * (2 * t + 2) - 1;
            int below = tree[PADDED(left)];
            tree[PADDED(left)] = tree[PADDED(right)];
            tree[PADDED(right)] += below;
        }
    }
    __syncthreads();
    out[2 * t] = tree[PADDED(2 * t)];
    out[2 * t + 1] = tree[PADDED(2 * t + 1)];
}

__device__ int scan_warp(int value)
{
    for (int reach = 1; reach < 32; reach *= 2) {
        int left = __shfl_up_sync(0xffffffff, value, reach);
        if ((threadIdx.x & 31) >= reach)
            value += left;
    }
    return value;
}

__device__ int scan_block(int value)
{
    __shared__ int totals[32];
    int warp = threadIdx.x / 32;
    value = scan_warp(value);
    if ((threadIdx.x & 31) == 31)
        totals[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int inside = threadIdx.x < blockDim.x / 32 ? totals[threadIdx.x] : 0;
        totals[threadIdx.x] = scan_warp(inside);
    }
    __syncthreads();
    return warp ? value + totals[warp - 1] : value;
}

__global__ void scan_shuffle(int *out, int *sums, const int *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = scan_block(i < n ? in[i] : 0);
    if (i < n)
        out[i] = sum;
    if (sums && threadIdx.x == blockDim.x - 1)
        sums[blockIdx.x] = sum;
}

__global__ void add_sums(int *out, const int *sums, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (blockIdx.x && i < n)
        out[i] += sums[blockIdx.x - 1];
}

enum { NOTHING, OWN, ALL };

__device__ unsigned int next_tile;

__global__ void scan_look_back(int *out, unsigned long long *states, const int *in, int n)
{
    __shared__ unsigned int tile;
    __shared__ int before;
    volatile unsigned long long *seen = states;
    if (threadIdx.x == 0)
        tile = atomicAdd(&next_tile, 1);
    __syncthreads();
    int i = tile * blockDim.x + threadIdx.x;
    int sum = scan_block(i < n ? in[i] : 0);
    if (threadIdx.x == blockDim.x - 1) {
        unsigned long long word = (unsigned)sum;
        seen[tile] = word | (unsigned long long)(tile ? OWN : ALL) << 32;
        int left = 0;
        for (int t = (int)tile - 1; t >= 0;) {
            unsigned long long state = seen[t];
            int kind = (int)(state >> 32);
            if (kind == NOTHING)
                continue;
            left += (int)(unsigned)state;
            if (kind == ALL)
                break;
            --t;
        }
        if (tile)
            seen[tile] = (unsigned long long)(unsigned)(left + sum) | (unsigned long long)ALL << 32;
        before = left;
    }
    __syncthreads();
    if (i < n)
        out[i] = before + sum;
}
