// The largest number of an image, four to one a launch: blocks cannot wait for one another.
// cutrace: pyramidMax<<<(2, 2), (16, 16)>>>(level1:i32[32,32], level0:i32[64,64]=random:3, 32)
// cutrace: pyramidMax<<<(1, 1), (16, 16)>>>(level2:i32[16,16], level1, 16)
// cutrace: pyramidMax<<<(1, 1), (16, 16)>>>(level3:i32[8,8], level2, 8)
// cutrace: pyramidMax<<<(1, 1), (16, 16)>>>(level4:i32[4,4], level3, 4)
// cutrace: pyramidMax<<<(1, 1), (16, 16)>>>(level5:i32[2,2], level4, 2)
// cutrace: pyramidMax<<<(1, 1), (16, 16)>>>(level6:i32[1,1], level5, 1)

__global__ void pyramidMax(int *above, const int *below, int width)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= width)
        return;
    const int *corner = below + 2 * y * 2 * width + 2 * x;
    int upper = max(corner[0], corner[1]);
    int lower = max(corner[2 * width], corner[2 * width + 1]);
    above[y * width + x] = max(upper, lower);
}
