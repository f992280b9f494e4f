// One level of a breadth-first search, a thread a node: the nodes of a level look at their edges.

__global__ void search(int *levels, const int *start, const int *edges, int nodes, int level)
{
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < nodes && levels[node] == level)
        for (int k = start[node]; k < start[node + 1]; ++k)
            if (levels[edges[k]] < 0)
                levels[edges[k]] = level + 1;
}
