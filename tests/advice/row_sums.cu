// Sum a matrix along one of its sides. Bad: a thread goes along a row, so that lanes are a row
// apart. Good: a thread goes down a column, and lanes are neighbours.
// expect: uncoalesced on 8800gtx gtx580 h200
// cutrace: badSums<<<2, 64>>>(sums:f32[128], in:f32[128,128]=arange, 128)
// cutrace: goodSums<<<2, 64>>>(sums, in, 128)

__global__ void badSums(float *sums, const float *in, int n)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int column = 0; column < n; column++)
        sum += in[row * n + column];
    sums[row] = sum;
}

__global__ void goodSums(float *sums, const float *in, int n)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int row = 0; row < n; row++)
        sum += in[row * n + column];
    sums[column] = sum;
}
