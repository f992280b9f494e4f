#pragma OPENCL FP_CONTRACT OFF

kernel void mandelbrot(global int *counts, int size, int limit)
{
    int x = get_global_id(0), y = get_global_id(1);
    float cr = x * 0.005859375f - 2.0f, ci = y * 0.005859375f - 1.5f;
    float zr = 0.0f, zi = 0.0f;
    int count = 0;

    while (count < limit && zr * zr + zi * zi < 4.0f) {
        float next = zr * zr - zi * zi + cr;
        zi = 2.0f * zr * zi + ci;
        zr = next;
        count++;
    }
    counts[y * size + x] = count;
}
