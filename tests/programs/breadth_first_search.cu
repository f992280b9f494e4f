// Breadth-first search over a graph in CSR form: each level's frontier is a queue that the blocks
// fill, first in shared memory, then with one global reservation a block.

#define ROOM 512

__global__ void expand(int *levels, int *next, int *next_size, const int *frontier,
                       int frontier_size, const int *first, const int *edges, int level)
{
    __shared__ int queue[ROOM];
    __shared__ int filled, start;
    if (threadIdx.x == 0)
        filled = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < frontier_size;
         i += gridDim.x * blockDim.x) {
        int node = frontier[i];
        for (int e = first[node]; e < first[node + 1]; ++e) {
            int neighbour = edges[e];
            if (atomicCAS(&levels[neighbour], -1, level) != -1)
                continue;
            int place = atomicAdd(&filled, 1);
            if (place < ROOM)
                queue[place] = neighbour;
            else
                next[atomicAdd(next_size, 1)] = neighbour;
        }
    }
    __syncthreads();
    int kept = min(filled, ROOM);
    if (threadIdx.x == 0)
        start = atomicAdd(next_size, kept);
    __syncthreads();
    for (int i = threadIdx.x; i < kept; i += blockDim.x)
        next[start + i] = queue[i];
}
