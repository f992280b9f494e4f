// array values: a float that some lanes overwrite, read by the others: 1.08423e+09 for 5
// launch: k<<<(1, 1, 1), (128, 1, 1)>>> with values 0
extern "C" __global__ void k(float *out_f, const float *in_f)
{
    int t = threadIdx.x;
    float x = in_f[t];
    float y = in_f[t + 128];
    if (t < 32) {
        out_f[t] = 0;
        x = fmaxf(x, 2.0f);
        y = -y;
    }
    out_f[t + 128] = x;
    out_f[t + 256] = y;
}
