// Evaluate polynomials with constant coefficients. Bad: the data choose which. Good: all lanes use
// the same coefficient at once.
// expect: divergent_constant on 8800gtx gtx580 h200
// cutrace: badPolynomial<<<4, 64>>>(out:f32[256], kind:i32[256]=random:2, 3)
// cutrace: goodPolynomial<<<4, 64>>>(out, kind, 3)

__constant__ float coefficients[64];

__global__ void badPolynomial(float *out, const int *kind, int degree)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = i * 0.001f, y = 0;
    for (int k = 0; k <= degree; k++)
        y = y * x + coefficients[(kind[i] & 15) * 4 + k];
    out[i] = y;
}

__global__ void goodPolynomial(float *out, const int *kind, int degree)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = (kind[i] & 15) * 0.001f, y = 0;
    for (int k = 0; k <= degree; k++)
        y = y * x + coefficients[k];
    out[i] = y;
}
