// k-means: each thread finds the centre nearest to its point, whose features lie apart in memory;
// blocks add up the points of each centre in shared memory, then in the totals.

#define FEATURES 4
#define CENTRES 5
#define WIDTH (FEATURES + 1)

__constant__ int centres[CENTRES * FEATURES];

__global__ void assign(int *membership, int *changed, const int *points, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int nearest = 0, least = 0x7fffffff;
    for (int c = 0; c < CENTRES; ++c) {
        int distance = 0;
        for (int f = 0; f < FEATURES; ++f) {
            int apart = points[f * n + i] - centres[c * FEATURES + f];
            distance += apart * apart;
        }
        if (distance < least) {
            least = distance;
            nearest = c;
        }
    }
    if (membership[i] != nearest) {
        membership[i] = nearest;
        atomicAdd(changed, 1);
    }
}

__global__ void gather(int *totals, const int *points, const int *membership, int n)
{
    __shared__ int own[CENTRES * WIDTH];
    for (int k = threadIdx.x; k < CENTRES * WIDTH; k += blockDim.x)
        own[k] = 0;
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int *mine = own + membership[i] * WIDTH;
        for (int f = 0; f < FEATURES; ++f)
            atomicAdd(mine + f, points[f * n + i]);
        atomicAdd(mine + FEATURES, 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < CENTRES * WIDTH; k += blockDim.x)
        if (own[k])
            atomicAdd(totals + k, own[k]);
}
