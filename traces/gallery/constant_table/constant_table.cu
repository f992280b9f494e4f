// Read a table in constant memory: all lanes the same entry, then each its own.
// cutrace: constantTable<<<1, 32>>>(out:i32[32], 0)
// cutrace: constantTable<<<1, 32>>>(out, 1)

__constant__ int table[32] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3,
                              2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5};

__global__ void constantTable(int *out, int stride)
{
    out[threadIdx.x] = table[threadIdx.x * stride];
}
