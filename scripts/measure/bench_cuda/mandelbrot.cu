// Iterations until a point of the plane escapes: lanes of a warp leave the loop at their own time.
// cutrace: mandelbrot<<<(32, 32), (16, 16)>>>(counts:i32[512,512], 512, 256)

__global__ void mandelbrot(int *counts, int size, int limit)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float cr = x * 0.005859375f - 2.0f, ci = y * 0.005859375f - 1.5f;
    float zr = 0.0f, zi = 0.0f;
    int count = 0;

    while (count < limit && __fadd_rn(__fmul_rn(zr, zr), __fmul_rn(zi, zi)) < 4.0f) {
        float next = __fadd_rn(__fsub_rn(__fmul_rn(zr, zr), __fmul_rn(zi, zi)), cr);
        zi = __fadd_rn(__fmul_rn(2.0f * zr, zi), ci);
        zr = next;
        count++;
    }
    counts[y * size + x] = count;
}
