// Reductions in one launch: the block that finishes last adds up what the others left; and a dot
// product whose blocks add their parts under a spin lock.

__device__ unsigned int done;

template <typename T, unsigned BLOCK>
__device__ T reduce_block(T value)
{
    __shared__ T parts[BLOCK / 32];
    #pragma unroll
    for (int reach = 16; reach > 0; reach /= 2)
        value += __shfl_xor_sync(0xffffffff, value, reach);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = value;
    __syncthreads();
    value = T(0);
    if (threadIdx.x == 0)
        for (unsigned w = 0; w < BLOCK / 32; ++w)
            value += parts[w];
    __syncthreads();
    return value;
}

template <typename T, unsigned BLOCK>
__global__ void reduce_last_block(T *out, volatile T *partial, const T *in, unsigned n)
{
    __shared__ bool is_last;
    T sum = 0;
    for (unsigned i = blockIdx.x * BLOCK + threadIdx.x; i < n; i += BLOCK * gridDim.x)
        sum += in[i];
    sum = reduce_block<T, BLOCK>(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        is_last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last)
        return;
    T all = 0;
    for (unsigned b = threadIdx.x; b < gridDim.x; b += BLOCK)
        all += partial[b];
    all = reduce_block<T, BLOCK>(all);
    if (threadIdx.x == 0)
        *out = all;
}

__device__ int lock;

__global__ void dot_with_lock(double *out, const double *a, const double *b, int n)
{
    double sum = 0.0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        sum += a[i] * b[i];
    sum = reduce_block<double, 64>(sum);
    if (threadIdx.x == 0) {
        while (atomicCAS(&lock, 0, 1) != 0)
            ;
        __threadfence();
        *(volatile double *)out += sum;
        __threadfence();
        atomicExch(&lock, 0);
    }
}

__global__ void least_and_greatest(int *least, unsigned *greatest, unsigned *every, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int low = __reduce_min_sync(0xffffffff, in[i]);
    unsigned high = __reduce_max_sync(0xffffffff, (unsigned)in[i]);
    unsigned all = __reduce_and_sync(0xffffffff, (unsigned)in[i] | 0x10u);
    if (threadIdx.x % 32 == 0) {
        atomicMin(least, low);
        atomicMax(greatest, high);
        atomicAnd(every, all);
    }
}
