// Atomics: 64-bit sums, extremes and exchanges, a float maximum and a double product by
// compare-and-swap, a hash table with open addressing, and components of a graph by union-find.

__global__ void wide(unsigned long long *sum, long long *least, unsigned long long *bits,
                     unsigned long long *most, const long long *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    atomicAdd(sum, (unsigned long long)in[i]);
    atomicMin(least, in[i]);
    atomicMax(most, (unsigned long long)in[i]);
    atomicXor(bits, (unsigned long long)in[i]);
}

__global__ void shared_wide(unsigned long long *out, const long long *in)
{
    __shared__ unsigned long long total, last;
    if (threadIdx.x == 0)
        total = last = 0;
    __syncthreads();
    atomicAdd(&total, (unsigned long long)in[threadIdx.x]);
    unsigned long long old = atomicExch(&last, (unsigned long long)threadIdx.x + 1);
    atomicAdd(&total, old);
    __syncthreads();
    if (threadIdx.x == 0)
        *out = total + last;
}

__device__ float max_float(float *address, float value)
{
    int *word = (int *)address, old = *word, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= value)
            break;
        old = atomicCAS(word, assumed, __float_as_int(value));
    } while (old != assumed);
    return __int_as_float(old);
}

__device__ void multiply_double(double *address, double factor)
{
    unsigned long long *word = (unsigned long long *)address, old = *word, assumed;
    do {
        assumed = old;
        double product = __longlong_as_double(assumed) * factor;
        old = atomicCAS(word, assumed, __double_as_longlong(product));
    } while (old != assumed);
}

__global__ void by_compare_and_swap(float *most, double *product, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    max_float(most, in[i]);
    if (i % 16 == 0)
        multiply_double(product, i % 32 ? 2.0 : 0.5);
    if (i % 64 == 0)
        multiply_double(product, 3.0);
}

#define EMPTY 0xffffffffu

__device__ unsigned mix(unsigned key)
{
    key ^= key >> 16;
    key *= 0x85ebca6bu;
    key ^= key >> 13;
    key *= 0xc2b2ae35u;
    return key ^ key >> 16;
}

__global__ void insert(unsigned *keys, unsigned *counts, unsigned mask, const unsigned *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned place = mix(in[i]) & mask;
    while (true) {
        unsigned found = atomicCAS(&keys[place], EMPTY, in[i]);
        if (found == EMPTY || found == in[i])
            break;
        place = (place + 1) & mask;
    }
    atomicAdd(&counts[place], 1);
}

__global__ void look_up(unsigned *out, const unsigned *keys, const unsigned *counts, unsigned mask,
                        const unsigned *wanted, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned result = 0;
    for (unsigned place = mix(wanted[i]) & mask; keys[place] != EMPTY; place = (place + 1) & mask)
        if (keys[place] == wanted[i]) {
            result = counts[place];
            break;
        }
    out[i] = result;
}

__device__ int find_root(volatile int *parent, int node)
{
    while (parent[node] != node)
        node = parent[node];
    return node;
}

__global__ void join(int *parent, const int2 *edges, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int a = edges[i].x, b = edges[i].y;
    while (true) {
        a = find_root(parent, a);
        b = find_root(parent, b);
        if (a == b)
            return;
        int high = max(a, b), low = min(a, b);
        if (atomicCAS(&parent[high], high, low) == high)
            return;
    }
}

__global__ void flatten(int *labels, int *parent, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        labels[i] = find_root(parent, i);
}
