// Monte Carlo with generators of our own: xorshift counts darts in a circle, a 64-bit linear
// congruential generator with jumps ahead walks at random, and Sobol's numbers in Gray code order.

__device__ unsigned xorshift(unsigned &state)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

__global__ void throw_darts(unsigned long long *hits, int each)
{
    unsigned state = (blockIdx.x * blockDim.x + threadIdx.x + 1) * 2654435761u;
    unsigned inside = 0;
    for (int k = 0; k < each; ++k) {
        unsigned long long x = xorshift(state) >> 16, y = xorshift(state) >> 16;
        inside += x * x + y * y < 1ull << 32;
    }
    for (int reach = 16; reach > 0; reach /= 2)
        inside += __shfl_xor_sync(0xffffffff, inside, reach);
    if (threadIdx.x % 32 == 0)
        atomicAdd(hits, (unsigned long long)inside);
}

#define MULTIPLIER 6364136223846793005ull
#define INCREMENT 1442695040888963407ull

__global__ void walk(long long *places, unsigned long long seed, unsigned steps)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long jump = (unsigned long long)i * steps, state = seed;
    unsigned long long a = MULTIPLIER, c = INCREMENT;
    for (; jump; jump >>= 1) {
        if (jump & 1)
            state = a * state + c;
        c *= a + 1;
        a *= a;
    }
    long long place = 0;
    for (unsigned k = 0; k < steps; ++k) {
        state = MULTIPLIER * state + INCREMENT;
        place += (long long)(state >> 33) - (1ll << 30);
    }
    places[i] = place;
}

__global__ void sobol(float *out, const unsigned *directions, int n)
{
    __shared__ unsigned v[32];
    if (threadIdx.x < 32)
        v[threadIdx.x] = directions[blockIdx.y * 32 + threadIdx.x];
    __syncthreads();
    int stride = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned gray = i ^ (i >> 1), x = 0;
    for (int bit = 0; bit < __ffs(stride) - 1; ++bit, gray >>= 1)
        x ^= v[bit] & -(gray & 1);
    unsigned leap = v[__ffs(stride) - 2];
    for (; i < n; i += stride) {
        if (i >= stride)
            x ^= leap ^ v[__ffs(~((i - stride) | (stride - 1))) - 1];
        out[blockIdx.y * n + i] = x * 2.3283064365386962890625e-10f;
    }
}
