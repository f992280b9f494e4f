// Scale the rows of a matrix that is 161 words wide. Bad: rows one after another, so that most begin
// beside a boundary. Good: rows 192 words apart.
// expect: misaligned on 8800gtx gtx280 gtx580 h200
// cutrace: badRows<<<(5, 32), 32>>>(packed:f32[32,161]=arange, 161)
// cutrace: goodRows<<<(5, 32), 32>>>(spaced:f32[32,192]=arange, 192)

__global__ void badRows(float *image, int pitch)
{
    image[blockIdx.y * pitch + blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}

__global__ void goodRows(float *image, int pitch)
{
    image[blockIdx.y * pitch + blockIdx.x * blockDim.x + threadIdx.x] *= 2;
}
