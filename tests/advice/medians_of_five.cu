// Medians of five. Bad: insertion into an array, indexed at run time. Good: a network of
// comparisons.
// expect: local_array on gtx580 gtx980
// cutrace: insertion<<<8, 128>>>(out:f32[1024], in:f32[1028]=random:1)
// cutrace: network<<<8, 128>>>(out, in)

__global__ void insertion(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a[5];
    for (int j = 0; j < 5; ++j) {
        float v = in[i + j];
        int k = j;
        while (k > 0 && a[k - 1] > v) {
            a[k] = a[k - 1];
            --k;
        }
        a[k] = v;
    }
    out[i] = a[2];
}

__device__ void order(float &a, float &b)
{
    float l = fminf(a, b), h = fmaxf(a, b);
    a = l;
    b = h;
}

__global__ void network(float *out, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a = in[i], b = in[i + 1], c = in[i + 2], d = in[i + 3], e = in[i + 4];
    order(a, b);
    order(d, e);
    order(c, e);
    order(c, d);
    order(b, e);
    order(a, d);
    order(a, c);
    order(b, d);
    order(b, c);
    out[i] = c;
}
