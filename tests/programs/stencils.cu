// Stencils over grids: heat on a chip (hotspot), the cheapest path down a grid several rows a
// launch (path finder), Jacobi in three dimensions, speckle reduction (SRAD), and Sobel's edges.

#define TILE 16

__global__ void hotspot(float *out, const float *heat, const float *power, int rows, int columns,
                        float cap, float across, float down, float up, float ambient)
{
    __shared__ float tile[TILE + 2][TILE + 2];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    int cx = min(x, columns - 1), cy = min(y, rows - 1);
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    tile[ty][tx] = heat[cy * columns + cx];
    if (threadIdx.x == 0)
        tile[ty][0] = heat[cy * columns + max(cx - 1, 0)];
    if (threadIdx.x == TILE - 1 || x == columns - 1)
        tile[ty][tx + 1] = heat[cy * columns + min(cx + 1, columns - 1)];
    if (threadIdx.y == 0)
        tile[0][tx] = heat[max(cy - 1, 0) * columns + cx];
    if (threadIdx.y == TILE - 1 || y == rows - 1)
        tile[ty + 1][tx] = heat[min(cy + 1, rows - 1) * columns + cx];
    __syncthreads();
    if (x >= columns || y >= rows)
        return;
    float here = tile[ty][tx];
    float change = power[y * columns + x]
        + __fmul_rn(__fadd_rn(__fadd_rn(tile[ty + 1][tx], tile[ty - 1][tx]), -2.0f * here), down)
        + __fmul_rn(__fadd_rn(__fadd_rn(tile[ty][tx + 1], tile[ty][tx - 1]), -2.0f * here), across)
        + (ambient - here) * up;
    out[y * columns + x] = here + cap * change;
}

__global__ void path_finder(int *out, const int *costs, const int *best, int columns, int rows)
{
    __shared__ int before[256], after[256];
    int t = threadIdx.x;
    int useful = blockDim.x - 2 * rows;
    int x = (int)blockIdx.x * useful - rows + t;
    bool inside = x >= 0 && x < columns;
    before[t] = inside ? best[x] : 0x3fffffff;
    __syncthreads();
    for (int row = 0; row < rows; ++row) {
        if (inside && t > row && t < (int)blockDim.x - 1 - row) {
            int least = min(before[t - 1], min(before[t], before[t + 1]));
            after[t] = least + costs[row * columns + x];
        } else {
            after[t] = 0x3fffffff;
        }
        __syncthreads();
        before[t] = after[t];
        __syncthreads();
    }
    if (inside && t >= rows && t < (int)blockDim.x - rows)
        out[x] = before[t];
}

__global__ void jacobi_3d(double *out, const double *in, int nx, int ny, int nz)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1)
        return;
    int plane = nx * ny, at = plane + y * nx + x;
    double below = in[at - plane], here = in[at];
    for (int z = 1; z < nz - 1; ++z, at += plane) {
        double above = in[at + plane];
        double sum = below + above + in[at - 1] + in[at + 1] + in[at - nx] + in[at + nx];
        out[at] = 0.75 * here + sum * 0.03125;
        below = here;
        here = above;
    }
}

__global__ void srad_coefficients(float *c, float *north, float *south, float *west, float *east,
                                  const float *image, float q0, int rows, int columns)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows)
        return;
    int at = y * columns + x;
    float j = image[at];
    float n = image[max(y - 1, 0) * columns + x] - j;
    float s = image[min(y + 1, rows - 1) * columns + x] - j;
    float w = image[y * columns + max(x - 1, 0)] - j;
    float e = image[y * columns + min(x + 1, columns - 1)] - j;
    float gradient = (n * n + s * s + w * w + e * e) / (j * j);
    float laplacian = (n + s + w + e) / j;
    float deviation = 1.0f + 0.25f * laplacian;
    float q = (0.5f * gradient - laplacian * laplacian / 16.0f) / (deviation * deviation);
    float value = 1.0f / (1.0f + (q - q0) / (q0 * (1.0f + q0)));
    c[at] = value < 0.0f ? 0.0f : value > 1.0f ? 1.0f : value;
    north[at] = n;
    south[at] = s;
    west[at] = w;
    east[at] = e;
}

__global__ void srad_update(float *image, const float *c, const float *north, const float *south,
                            const float *west, const float *east, float rate, int rows, int columns)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= columns || y >= rows)
        return;
    int at = y * columns + x;
    float c_south = c[min(y + 1, rows - 1) * columns + x];
    float c_east = c[y * columns + min(x + 1, columns - 1)];
    float flow = c[at] * north[at] + c_south * south[at] + c[at] * west[at] + c_east * east[at];
    image[at] += 0.25f * rate * flow;
}

__global__ void sobel(unsigned char *out, const unsigned char *in, int width, int height)
{
    __shared__ unsigned char tile[TILE + 2][TILE + 2];
    int left = blockIdx.x * TILE - 1, top = blockIdx.y * TILE - 1;
    for (int i = threadIdx.y * TILE + threadIdx.x; i < (TILE + 2) * (TILE + 2); i += TILE * TILE) {
        int x = min(max(left + i % (TILE + 2), 0), width - 1);
        int y = min(max(top + i / (TILE + 2), 0), height - 1);
        tile[i / (TILE + 2)][i % (TILE + 2)] = in[y * width + x];
    }
    __syncthreads();
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    if (x >= width || y >= height)
        return;
    const unsigned char(*t)[TILE + 2] = &tile[threadIdx.y];
    int c = threadIdx.x;
    int across = t[0][c + 2] + 2 * t[1][c + 2] + t[2][c + 2] - t[0][c] - 2 * t[1][c] - t[2][c];
    int down = t[2][c] + 2 * t[2][c + 1] + t[2][c + 2] - t[0][c] - 2 * t[0][c + 1] - t[0][c + 2];
    out[y * width + x] = min(abs(across) + abs(down), 255);
}
