// The OpenCL twin of traces/gallery/bitonic_sort/bitonic_sort.cu, for Oclgrind.

kernel void bitonicSort(global int *keys)
{
    local int shared[256];
    unsigned t = get_local_id(0);
    unsigned first = get_group_id(0) * get_local_size(0);
    shared[t] = keys[first + t];
    barrier(CLK_LOCAL_MEM_FENCE);

    for (unsigned run = 2; run <= get_local_size(0); run *= 2) {
        for (unsigned distance = run / 2; distance > 0; distance /= 2) {
            unsigned partner = t ^ distance;
            if (t < partner) {
                int mine = shared[t];
                int theirs = shared[partner];
                bool ascending = (t & run) == 0;
                if ((mine > theirs) == ascending) {
                    shared[t] = theirs;
                    shared[partner] = mine;
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
    keys[first + t] = shared[t];
}
