// Fetch scattered but near words through a texture. The host script is gather.py.

__global__ void gatherTexture(float *out, cudaTextureObject_t in, const int *index)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex1Dfetch<float>(in, index[i]);
}
