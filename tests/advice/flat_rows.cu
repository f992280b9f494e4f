// Scale a matrix in an array of one dimension. Bad: rows of 100 words. Good: of 128.
// expect: misaligned on 8800gtx gtx280 gtx580 h200
// cutrace: badFlat<<<(3, 64), 32>>>(odd:f32[6400]=arange, 100)
// cutrace: goodFlat<<<(3, 64), 32>>>(even:f32[8192]=arange, 128)

__global__ void badFlat(float *image, int width)
{
    image[blockIdx.y * width + blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}

__global__ void goodFlat(float *image, int width)
{
    image[blockIdx.y * width + blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}
