// The OpenCL twin of traces/gallery/reverse_array/reverse_global.cu, for Oclgrind.

kernel void reverseGlobal(global int *out, global const int *in)
{
    int from = get_global_id(0);
    int to = get_global_size(0) - 1 - from;
    out[to] = in[from];
}
