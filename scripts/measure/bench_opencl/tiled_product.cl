// The OpenCL twin of traces/gallery/matrix_product/product_tiled.cu, for Oclgrind.

#define TILE 16

kernel void productTiled(global float *c, global const float *a, global const float *b, int n)
{
    local float tileA[TILE][TILE];
    local float tileB[TILE][TILE];
    int x = get_local_id(0);
    int y = get_local_id(1);
    int row = get_group_id(1) * TILE + y;
    int column = get_group_id(0) * TILE + x;
    float sum = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        tileA[y][x] = a[row * n + start + x];
        tileB[y][x] = b[(start + y) * n + column];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TILE; k++)
            sum += tileA[y][k] * tileB[k][x];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    c[row * n + column] = sum;
}
