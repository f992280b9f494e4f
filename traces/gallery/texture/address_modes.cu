// Sample an image, also outside it: what comes back is the texture's address mode.
// The host script address_modes.py makes textures that clamp and that repeat.

__global__ void sampleImage(float *out, const float *x, const float *y,
                            cudaTextureObject_t image, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = tex2D<float>(image, x[i], y[i]);
}
