// The OpenCL twin of traces/gallery/histogram/histogram_static.cu, for Oclgrind.

kernel void histogramStatic(global unsigned *bins, global const int *in, int n)
{
    local unsigned own[256];
    own[get_local_id(0)] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int i = get_global_id(0); i < n; i += get_global_size(0))
        atomic_add(&own[in[i] % 256], 1);
    barrier(CLK_LOCAL_MEM_FENCE);

    atomic_add(&bins[get_local_id(0)], own[get_local_id(0)]);
}
