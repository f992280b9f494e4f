// One step of heat transfer: every cell moves towards the mean of its neighbours. Cells at the
// edge read themselves beyond it: the texture clamps. The host script is heat_step.py.

__global__ void heatStep(float *next, cudaTextureObject_t now, int width, float speed)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    float here = tex2D<float>(now, x + 0.5f, y + 0.5f);
    float around = tex2D<float>(now, x - 0.5f, y + 0.5f) + tex2D<float>(now, x + 1.5f, y + 0.5f)
                 + tex2D<float>(now, x + 0.5f, y - 0.5f) + tex2D<float>(now, x + 0.5f, y + 1.5f);
    next[y * width + x] = here + speed * (around - 4.0f * here);
}
