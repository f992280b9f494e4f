// Double every element of an image whose rows start `pitch` words apart.
// The host script pitched_rows.py launches it twice: rows without and with padding.

__global__ void rowScale(float *image, int pitch, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < width)
        image[blockIdx.y * pitch + x] *= 2.0f;
}
