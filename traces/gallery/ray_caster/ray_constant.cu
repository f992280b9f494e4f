// Cast one ray a pixel at spheres in constant memory: a half-warp reads one of them at a time.
// The host script ray_caster.py launches this and the version with global memory.

__constant__ float4 spheres[32];

__global__ void rayConstant(float *image, int count, int width)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    float shade = 0.0f;
    float nearest = -1.0f;
    for (int i = 0; i < count; i++) {
        float4 sphere = spheres[i];
        float dx = column - sphere.x;
        float dy = row - sphere.y;
        float inside = sphere.w * sphere.w - dx * dx - dy * dy;
        float depth = sphere.z + sqrtf(fmaxf(inside, 0.0f));
        if (inside > 0.0f && depth > nearest) {
            nearest = depth;
            shade = sqrtf(inside) / sphere.w;
        }
    }
    image[row * width + column] = shade;
}
