// Sorting: bitonic over shared and global memory, a merge sort whose threads find their diagonal of
// the merge path, and ranks by counting.

__device__ void order(unsigned &a, unsigned &b, bool up)
{
    if ((a > b) == up) {
        unsigned swap = a;
        a = b;
        b = swap;
    }
}

#define SPAN 256

__global__ void bitonic_shared(unsigned *data)
{
    __shared__ unsigned line[SPAN];
    unsigned *own = data + blockIdx.x * SPAN;
    int t = threadIdx.x;
    line[t] = own[t];
    line[t + SPAN / 2] = own[t + SPAN / 2];
    for (int size = 2; size <= SPAN; size *= 2) {
        bool up = size < SPAN ? (t & (size / 2)) == 0 : (blockIdx.x & 1) == 0;
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            int at = 2 * t - (t & (stride - 1));
            order(line[at], line[at + stride], up);
        }
    }
    __syncthreads();
    own[t] = line[t];
    own[t + SPAN / 2] = line[t + SPAN / 2];
}

__global__ void bitonic_global(unsigned *data, int size, int stride)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int at = 2 * t - (t & (stride - 1));
    unsigned a = data[at], b = data[at + stride];
    order(a, b, (t & (size / 2)) == 0);
    data[at] = a;
    data[at + stride] = b;
}

__device__ int merge_path(const int *a, int na, const int *b, int nb, int diagonal)
{
    int low = max(0, diagonal - nb), high = min(diagonal, na);
    while (low < high) {
        int middle = (low + high) / 2;
        if (a[middle] <= b[diagonal - 1 - middle])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

__global__ void merge_runs(int *out, const int *in, int n, int run, int each)
{
    int start = (blockIdx.x * blockDim.x + threadIdx.x) * each;
    if (start >= n)
        return;
    int pair = start / (2 * run) * (2 * run);
    const int *a = in + pair, *b = in + min(pair + run, n);
    int na = min(run, n - pair), nb = max(0, min(run, n - pair - run));
    int i = merge_path(a, na, b, nb, start - pair), j = start - pair - i;
    for (int k = 0; k < each && start + k < n; ++k) {
        bool left = j >= nb || (i < na && a[i] <= b[j]);
        out[start + k] = left ? a[i++] : b[j++];
    }
}

__global__ void rank_sort(short *out, const short *in, int n)
{
    extern __shared__ short copy[];
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        copy[i] = in[i];
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        int rank = 0;
        for (int k = 0; k < n; ++k)
            rank += copy[k] < copy[i] || (copy[k] == copy[i] && k < i);
        out[rank] = copy[i];
    }
}
