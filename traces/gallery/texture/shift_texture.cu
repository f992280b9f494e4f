// Copy with a shift, through a texture over linear memory.
// The host script shift_texture.py makes the texture.

__global__ void shiftTexture(float *out, cudaTextureObject_t in, int shift)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = tex1Dfetch<float>(in, i + shift);
}
