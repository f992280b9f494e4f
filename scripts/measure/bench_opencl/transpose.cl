// The OpenCL twin of traces/gallery/transpose/transpose_shared.cu, for Oclgrind.

#define EDGE 16

kernel void transposeShared(global float *out, global const float *in, int width, int height)
{
    local float tile[EDGE][EDGE];
    int column = get_local_id(0), row = get_local_id(1);
    int x = get_group_id(0) * EDGE + column;
    int y = get_group_id(1) * EDGE + row;
    if (x < width && y < height)
        tile[row][column] = in[y * width + x];
    barrier(CLK_LOCAL_MEM_FENCE);

    x = get_group_id(1) * EDGE + column;
    y = get_group_id(0) * EDGE + row;
    if (x < height && y < width)
        out[y * height + x] = tile[column][row];
}
