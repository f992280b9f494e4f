// Sum squares of many words. Bad: one block does all of it, and the other SMs have none. Good: as
// many blocks as keep all SMs at work.
// expect: small_grid on gtx580 h200
// cutrace: badSums<<<1, 256>>>(out:i32[256], in:i32[262144]=arange, 1024)
// cutrace: goodSums<<<1024, 256>>>(out, in, 1)

__device__ void addSquares(int *out, const int *in, int times)
{
    int sum = 0;
    for (int i = 0; i < times; i++) {
        int value = in[(blockIdx.x * times + i) * blockDim.x + threadIdx.x];
        sum += value * value;
    }
    if (sum == 7)
        out[threadIdx.x] = sum;
}

__global__ void badSums(int *out, const int *in, int times) { addSquares(out, in, times); }

__global__ void goodSums(int *out, const int *in, int times) { addSquares(out, in, times); }
