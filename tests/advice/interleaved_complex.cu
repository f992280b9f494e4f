// Turn complex numbers in shared memory. Bad: real and imaginary parts side by side, read one by
// one. Good: in two halves.
// expect: bank_conflicts on 8800gtx gtx580 h200
// cutrace: badComplex<<<4, 128>>>(out:f32[512], in:f32[512]=arange)
// cutrace: goodComplex<<<4, 128>>>(out, in)

__global__ void badComplex(float *out, const float *in)
{
    __shared__ float parts[256];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    parts[2 * t] = in[i];
    parts[2 * t + 1] = -in[i];
    __syncthreads();
    volatile float *held = parts;
    out[i] = held[2 * (127 - t)] * held[2 * (127 - t) + 1];
}

__global__ void goodComplex(float *out, const float *in)
{
    __shared__ float parts[256];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    parts[t] = in[i];
    parts[128 + t] = -in[i];
    __syncthreads();
    volatile float *held = parts;
    out[i] = held[t] * held[128 + t];
}
