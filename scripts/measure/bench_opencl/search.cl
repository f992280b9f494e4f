// The OpenCL twin of scripts/measure/bench_cuda/search.cu, for Oclgrind.

kernel void search(global int *levels, global const int *start, global const int *edges, int nodes,
                   int level)
{
    int node = get_global_id(0);
    if (node < nodes && levels[node] == level)
        for (int k = start[node]; k < start[node + 1]; ++k)
            if (levels[edges[k]] < 0)
                levels[edges[k]] = level + 1;
}
