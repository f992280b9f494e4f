// Sum squares by long blocks. Bad: of blocks that fill the device once, one more begins a second
// round. Good: they fill it once.
// expect: small_grid on gtx580
// cutrace: badRounds<<<97, 256>>>(out:i32[256], in:i32[24832]=arange, 400)
// cutrace: goodRounds<<<96, 256>>>(out, in, 404)

__device__ void addSquares(int *out, const int *in, int times)
{
    int value = in[blockIdx.x * blockDim.x + threadIdx.x], sum = 0;
    for (int i = 0; i < times; i++)
        sum = sum * sum + value;
    if (sum == 7)
        out[threadIdx.x] = sum;
}

__global__ void badRounds(int *out, const int *in, int times) { addSquares(out, in, times); }

__global__ void goodRounds(int *out, const int *in, int times) { addSquares(out, in, times); }
