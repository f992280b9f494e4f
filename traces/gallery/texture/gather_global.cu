// Fetch scattered but near words straight from global memory. The host script is gather.py.

__global__ void gatherGlobal(float *out, const float *in, const int *index)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[index[i]];
}
