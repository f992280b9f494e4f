// Read between the entries of a table: out[i] = table(x[i]), interpolated by the texture unit.
// The host script table_lookup.py makes the texture.

__global__ void tableLookup(float *out, const float *x, cudaTextureObject_t table, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex1D<float>(table, x[i]);
}
