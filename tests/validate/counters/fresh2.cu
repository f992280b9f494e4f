// Kernels as people write them in their first years of CUDA: grids, images, sums, matrices, graphs.
// Written before any of them was run on a chip.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

// cutrace: heat_march<<<(4, 8), (32, 8)>>>(out:f32[131072], in:f32[131072]=random:101, 128, 64, 16)
__global__ void heat_march(float *out, const float *in, int nx, int ny, int nz)
{
    __shared__ float plane[10][34];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    int slice = nx * ny, at = y * nx + x;
    int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    float behind = in[at], here = in[at + slice];
    for (int z = 1; z < nz - 1; z++) {
        float ahead = in[at + (z + 1) * slice];
        __syncthreads();
        plane[ty][tx] = here;
        if (threadIdx.x == 0) plane[ty][0] = x > 0 ? in[at + z * slice - 1] : 0.0f;
        if (threadIdx.x == 31) plane[ty][33] = x < nx - 1 ? in[at + z * slice + 1] : 0.0f;
        if (threadIdx.y == 0) plane[0][tx] = y > 0 ? in[at + z * slice - nx] : 0.0f;
        if (threadIdx.y == 7) plane[9][tx] = y < ny - 1 ? in[at + z * slice + nx] : 0.0f;
        __syncthreads();
        out[at + z * slice] = here + 0.1f * (plane[ty][tx - 1] + plane[ty][tx + 1]
            + plane[ty - 1][tx] + plane[ty + 1][tx] + behind + ahead - 6.0f * here);
        behind = here;
        here = ahead;
    }
}

// cutrace: life<<<(8, 16), (16, 8)>>>(next:u8[16384], cells:u8[16384]=random:102, 128, 128)
__global__ void life(u8 *next, const u8 *cells, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int alive = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy) alive += cells[(y + dy + h) % h * w + (x + dx + w) % w] & 1;
    u8 me = cells[y * w + x] & 1;
    next[y * w + x] = alive == 3 || (me && alive == 2);
}

// cutrace: red_black<<<(2, 32), (32, 4)>>>(out, 128, 128, 0)
// cutrace: red_black<<<(2, 32), (32, 4)>>>(out, 128, 128, 1)
__global__ void red_black(float *u, int w, int h, int colour)
{
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int x = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + ((y + colour) & 1);
    if (x == 0 || y == 0 || x >= w - 1 || y >= h - 1) return;
    float *p = u + y * w + x;
    *p = 0.25f * (p[-1] + p[1] + p[-w] + p[w]);
}

// cutrace: string_wave<<<40, 200>>>(out, in, behind:f32[8192]=random:103, 7900)
__global__ void string_wave(float *next, const float *now, const float *before, int n)
{
    __shared__ float s[202];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + 1;
    if (i < n) s[t] = now[i];
    if (threadIdx.x == 0) s[0] = i > 0 ? now[i - 1] : 0.0f;
    if (threadIdx.x == blockDim.x - 1 || i == n - 1) s[t + 1] = i < n - 1 ? now[i + 1] : 0.0f;
    __syncthreads();
    if (i < n) next[i] = 2.0f * s[t] - before[i] + 0.2f * (s[t - 1] - 2.0f * s[t] + s[t + 1]);
}

__constant__ int shift_x[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant__ int shift_y[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
// cutrace: stream_lattice<<<(3, 24), (32, 4)>>>(f_new:f32[82944], f_old:f32[82944]=random:104, 96, 96)
__global__ void stream_lattice(float *to, const float *from, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int cells = w * h;
    float rho = 0.0f;
    for (int q = 0; q < 9; q++) {
        int sx = (x - shift_x[q] + w) % w, sy = (y - shift_y[q] + h) % h;
        float f = from[q * cells + sy * w + sx];
        rho += f;
        to[q * cells + y * w + x] = f * 0.9f + 0.1f * rho;
    }
}

// cutrace: sobel<<<(4, 8), (32, 16)>>>(edges:u8[16384], image:u8[16384]=random:105, 128, 128)
__global__ void sobel(u8 *edges, const u8 *image, int w, int h)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    const u8 *p = image + y * w + x;
    int gx = p[1 - w] + 2 * p[1] + p[1 + w] - p[-1 - w] - 2 * p[-1] - p[-1 + w];
    int gy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-w - 1] - 2 * p[-w] - p[-w + 1];
    edges[y * w + x] = min(255, abs(gx) + abs(gy));
}

// cutrace: grey<<<16, 256>>>(edges, colours:u8[16384]=random:106, 4096)
__global__ void grey(u8 *out, const uchar4 *pixels, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        uchar4 c = pixels[i];
        out[i] = (77 * c.x + 150 * c.y + 29 * c.z) >> 8;
    }
}

// cutrace: blur_rows<<<2, 64>>>(out, in, 256, 128, 5)
__global__ void blur_rows(float *out, const float *in, int w, int h, int r)
{
    int y = blockIdx.x * blockDim.x + threadIdx.x;
    if (y >= h) return;
    float sum = 0.0f;
    for (int x = 0; x < r; x++) sum += in[y * w + x];
    for (int x = 0; x < w; x++) {
        if (x + r < w) sum += in[y * w + x + r];
        if (x - r - 1 >= 0) sum -= in[y * w + x - r - 1];
        out[y * w + x] = sum / (2 * r + 1);
    }
}

__constant__ float gauss[5] = {0.0625f, 0.25f, 0.375f, 0.25f, 0.0625f};
// cutrace: gaussian<<<(8, 8), (16, 16)>>>(out, in, 128, 120)
__global__ void gaussian(float *out, const float *in, int w, int h)
{
    __shared__ float tile[20][21];
    int bx = blockIdx.x * 16 - 2, by = blockIdx.y * 16 - 2;
    for (int i = threadIdx.y * 16 + threadIdx.x; i < 400; i += 256) {
        int x = min(max(bx + i % 20, 0), w - 1), y = min(max(by + i / 20, 0), h - 1);
        tile[i / 20][i % 20] = in[y * w + x];
    }
    __syncthreads();
    float sum = 0.0f;
    for (int j = 0; j < 5; j++)
        for (int i = 0; i < 5; i++)
            sum += gauss[i] * gauss[j] * tile[threadIdx.y + j][threadIdx.x + i];
    int x = bx + 2 + threadIdx.x, y = by + 2 + threadIdx.y;
    if (x < w && y < h) out[y * w + x] = sum;
}

// cutrace: dilate<<<(4, 16), (32, 8)>>>(edges, image, 128, 128)
__global__ void dilate(u8 *out, const u8 *in, int w, int h)
{
    __shared__ u8 s[10][36];
    int x0 = blockIdx.x * 32 - 1, y0 = blockIdx.y * 8 - 1;
    for (int j = threadIdx.y; j < 10; j += 8)
        for (int i = threadIdx.x; i < 34; i += 32) {
            int x = x0 + i, y = y0 + j;
            s[j][i] = x >= 0 && y >= 0 && x < w && y < h ? in[y * w + x] : 0;
        }
    __syncthreads();
    u8 most = 0;
#pragma unroll
    for (int j = 0; j < 3; j++)
#pragma unroll
        for (int i = 0; i < 3; i++) most = max(most, s[threadIdx.y + j][threadIdx.x + i]);
    out[(y0 + 1 + threadIdx.y) * w + x0 + 1 + threadIdx.x] = most;
}

// cutrace: histogram_copies<<<8, 128>>>(bins:u32[256], image, 16384)
__global__ void histogram_copies(u32 *bins, const u8 *data, int n)
{
    __shared__ u32 mine[4][256];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) (&mine[0][0])[i] = 0;
    __syncthreads();
    int warp = threadIdx.x / 32;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&mine[warp][data[i]], 1);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x)
        atomicAdd(&bins[i], mine[0][i] + mine[1][i] + mine[2][i] + mine[3][i]);
}

// cutrace: joint_histogram<<<32, 64>>>(pairs:u32[1024], image, colours, 4096)
__global__ void joint_histogram(u32 *bins, const u8 *a, const u8 *b, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(bins + (a[i] >> 3) * 32 + (b[i] >> 3), 1u);
}

// cutrace: transpose_double<<<(4, 4), (32, 8)>>>(dt:f64[16384], d:f64[16384]=random:107, 128)
__global__ void transpose_double(double *out, const double *in, int n)
{
    __shared__ double tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

// cutrace: transpose_bytes<<<(4, 4), (8, 32)>>>(edges, image, 128)
__global__ void transpose_bytes(u8 *out, const u8 *in, int n)
{
    __shared__ u8 tile[32][36];
    int y = blockIdx.y * 32 + threadIdx.y, x = blockIdx.x * 32 + threadIdx.x * 4;
    *(uchar4 *)&tile[threadIdx.y][threadIdx.x * 4] = *(const uchar4 *)(in + y * n + x);
    __syncthreads();
    int c = threadIdx.x * 4;
    uchar4 v = make_uchar4(tile[c][threadIdx.y], tile[c + 1][threadIdx.y],
                           tile[c + 2][threadIdx.y], tile[c + 3][threadIdx.y]);
    *(uchar4 *)(out + (blockIdx.x * 32 + threadIdx.y) * n + blockIdx.y * 32 + c) = v;
}

// cutrace: ellpack<<<16, 128>>>(y:f32[2048], cols:i32[16384]=random:108, in, x:f32[16384]=random:109,
//                               2000, 2048, 8)
__global__ void ellpack(float *y, const int *cols, const float *values, const float *x, int rows,
                        int pitch, int width)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = 0; k < width; k++) {
        int col = cols[k * pitch + row];
        if (col & 7) sum += values[k * pitch + row] * x[col];
    }
    y[row] = sum;
}

// cutrace: csr_by_warps<<<32, 128>>>(y, cols, in, x, 128)
__global__ void csr_by_warps(float *__restrict__ y, const int *__restrict__ cols,
                             const float *__restrict__ values, const float *__restrict__ x, int rows)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= rows) return;
    int begin = row * 40, end = begin + 20 + row % 60;
    float sum = 0.0f;
    for (int j = begin + lane; j < end; j += 32) sum += values[j] * __ldg(&x[cols[j]]);
    for (int offset = 16; offset; offset >>= 1) sum += __shfl_down_sync(~0u, sum, offset);
    if (lane == 0) y[row] = sum;
}

// cutrace: bitonic<<<8, 256>>>(sorted:u32[4096], keys:u32[4096]=random:110)
__global__ void bitonic(u32 *out, const u32 *in)
{
    __shared__ u32 s[512];
    int base = blockIdx.x * 512, t = threadIdx.x;
    s[t] = in[base + t];
    s[t + 256] = in[base + t + 256];
    for (int k = 2; k <= 512; k <<= 1)
        for (int j = k >> 1; j; j >>= 1) {
            __syncthreads();
            int i = 2 * t - (t & (j - 1));
            u32 a = s[i], b = s[i + j];
            if ((a > b) == ((i & k) == 0)) {
                s[i] = b;
                s[i + j] = a;
            }
        }
    __syncthreads();
    out[base + t] = s[t];
    out[base + t + 256] = s[t + 256];
}

// cutrace: bitonic_step<<<16, 128>>>(keys, 1024, 2048)
// cutrace: bitonic_step<<<16, 128>>>(keys, 16, 2048)
// cutrace: bitonic_step<<<16, 128>>>(keys, 1, 2048)
__global__ void bitonic_step(u32 *keys, int j, int k)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int i = 2 * t - (t & (j - 1));
    u32 a = keys[i], b = keys[i + j];
    if ((a > b) == ((i & k) == 0)) {
        keys[i] = b;
        keys[i + j] = a;
    }
}

// cutrace: split_by_bit<<<4, 256>>>(sorted, keys, 3)
__global__ void split_by_bit(u32 *out, const u32 *in, int bit)
{
    __shared__ int ones[8];
    int i = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 key = in[i];
    bool one = key >> bit & 1;
    u32 votes = __ballot_sync(0xffffffff, one);
    if (lane == 0) ones[warp] = __popc(votes);
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < 8; w++) {
        if (w < warp) before += ones[w];
        all += ones[w];
    }
    before += __popc(votes & ((1u << lane) - 1));
    int to = one ? 256 - all + before : threadIdx.x - before;
    out[blockIdx.x * 256 + to] = key;
}

// cutrace: merge_two<<<4, 64>>>(sorted, runs:u32[4096]=arange, 1024, 4)
__global__ void merge_two(u32 *out, const u32 *runs, int n, int items)
{
    const u32 *a = runs, *b = runs + n / 2;
    int diagonal = (blockIdx.x * blockDim.x + threadIdx.x) * items;
    int low = max(0, diagonal - n), high = min(diagonal, n);
    while (low < high) {
        int mid = (low + high) / 2;
        if (a[mid] <= b[diagonal - 1 - mid]) low = mid + 1;
        else high = mid;
    }
    int i = low, j = diagonal - low;
    for (int k = 0; k < items; k++) {
        bool first = j >= n || (i < n && a[i] <= b[j]);
        out[diagonal + k] = first ? a[i++] : b[j++];
    }
}

__device__ u32 scan_warp(u32 v, int lane)
{
    for (int d = 1; d < 32; d *= 2) {
        u32 up = __shfl_up_sync(0xffffffffu, v, d);
        if (lane >= d) v += up;
    }
    return v;
}

// cutrace: scan_block<<<4, 1024>>>(sorted, keys, ends:u32[16])
__global__ void scan_block(u32 *out, const u32 *in, u32 *ends)
{
    __shared__ u32 warps[32];
    int i = blockIdx.x * 1024 + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 v = scan_warp(in[i], lane);
    if (lane == 31) warps[warp] = v;
    __syncthreads();
    if (warp == 0) warps[lane] = scan_warp(warps[lane], lane);
    __syncthreads();
    if (warp) v += warps[warp - 1];
    out[i] = v;
    if (threadIdx.x == 1023) ends[blockIdx.x] = v;
}

// cutrace: scan_add<<<4, 1024>>>(sorted, ends)
__global__ void scan_add(u32 *out, const u32 *ends)
{
    __shared__ u32 before;
    if (threadIdx.x == 0) {
        u32 sum = 0;
        for (int b = 0; b < blockIdx.x; b++) sum += ends[b];
        before = sum;
    }
    __syncthreads();
    out[blockIdx.x * 1024 + threadIdx.x] += before;
}

// cutrace: segmented<<<8, 256>>>(out, in, image)
__global__ void segmented(float *out, const float *in, const u8 *heads)
{
    __shared__ float v[256];
    __shared__ int f[256];
    int t = threadIdx.x, i = blockIdx.x * 256 + t;
    v[t] = in[i];
    f[t] = heads[i] < 40 || t == 0;
    __syncthreads();
    for (int d = 1; d < 256; d <<= 1) {
        float add = 0.0f;
        int flag = f[t];
        if (t >= d && !flag) {
            add = v[t - d];
            flag = f[t - d];
        }
        __syncthreads();
        v[t] += add;
        f[t] = flag;
        __syncthreads();
    }
    out[i] = v[t];
}

// cutrace: largest<<<8, 128>>>(top:f32[8], where:i32[8], in, 20000)
__global__ void largest(float *top, int *where, const float *in, int n)
{
    __shared__ float best[128];
    __shared__ int index[128];
    int t = threadIdx.x, at = 0;
    float most = -1.0f;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += blockDim.x * gridDim.x)
        if (in[i] > most) {
            most = in[i];
            at = i;
        }
    best[t] = most;
    index[t] = at;
    for (int s = 64; s > 0; s >>= 1) {
        __syncthreads();
        if (t < s && (best[t + s] > best[t] || (best[t + s] == best[t] && index[t + s] < index[t]))) {
            best[t] = best[t + s];
            index[t] = index[t + s];
        }
    }
    if (t == 0) {
        top[blockIdx.x] = best[0];
        where[blockIdx.x] = index[0];
    }
}

// cutrace: moments<<<12, 96>>>(stats:f32[64], in, 30000)
__global__ void moments(float *stats, const float *in, int n)
{
    __shared__ float3 parts[3];
    float3 m = make_float3(0.0f, 0.0f, 0.0f);
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {
        float x = in[i];
        m.x += 1.0f;
        m.y += x;
        m.z += x * x;
    }
    for (int d = 16; d; d /= 2) {
        m.x += __shfl_xor_sync(~0u, m.x, d);
        m.y += __shfl_xor_sync(~0u, m.y, d);
        m.z += __shfl_xor_sync(~0u, m.z, d);
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = m;
    __syncthreads();
    if (threadIdx.x < 3) {
        float sum = threadIdx.x == 0 ? parts[0].x + parts[1].x + parts[2].x
                  : threadIdx.x == 1 ? parts[0].y + parts[1].y + parts[2].y
                                     : parts[0].z + parts[1].z + parts[2].z;
        stats[blockIdx.x * 3 + threadIdx.x] = sum;
    }
}

// cutrace: old_reduce<<<16, 256>>>(stats, in)
__global__ void old_reduce(float *out, const float *in)
{
    __shared__ volatile float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 512 + t] + in[blockIdx.x * 512 + t + 256];
    __syncthreads();
    for (int d = 128; d > 32; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t < 32) {
        float v = s[t] + s[t + 32];
        for (int d = 16; d; d >>= 1) v += __shfl_down_sync(0xffffffff, v, d);
        if (t == 0) out[blockIdx.x] = v;
    }
}

// cutrace: compact<<<8, 128>>>(packed:u32[4096], kept:i32[8], keys, 2000)
__global__ void compact(u32 *out, int *kept, const u32 *in, u32 below)
{
    __shared__ int count[128];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    u32 key = in[i];
    count[t] = key < below;
    __syncthreads();
    for (int d = 1; d < 128; d *= 2) {
        int v = t >= d ? count[t - d] : 0;
        __syncthreads();
        count[t] += v;
        __syncthreads();
    }
    if (key < below) out[blockIdx.x * 128 + count[t] - 1] = key;
    if (t == 127) kept[blockIdx.x] = count[127];
}

// cutrace: fnv<<<4, 128>>>(sorted, image, 24)
__global__ void fnv(u32 *out, const u8 *text, int length)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    u32 h = 2166136261u;
    for (int i = 0; i < length; i++) {
        h ^= text[row * length + i];
        h *= 16777619u;
    }
    out[row] = h;
}

// cutrace: find_in_table<<<16, 64>>>(sorted, keys, runs, 4095)
__global__ void find_in_table(u32 *out, const u32 *queries, const u32 *table, int mask)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 key = queries[i], slot = key * 2654435761u >> 7 & mask;
    int steps = 0;
    while (table[slot] != key && steps < 20) {
        slot = (slot + 1) & mask;
        steps++;
    }
    out[i] = steps;
}

__device__ u32 crc_table[256];
// cutrace: make_crc_table<<<1, 256>>>()
__global__ void make_crc_table()
{
    u32 c = threadIdx.x;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    crc_table[threadIdx.x] = c;
}

// cutrace: crc<<<2, 128>>>(sorted, colours, 64)
__global__ void crc(u32 *out, const u8 *bytes, int length)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    const u8 *p = bytes + row * length;
    u32 c = ~0u;
    for (int i = 0; i < length; i++) c = crc_table[(c ^ p[i]) & 255] ^ (c >> 8);
    out[row] = ~c;
}

// cutrace: pi<<<8, 256>>>(hits:u64[1], 50)
__global__ void pi(u64 *hits, int tries)
{
    u32 s = (blockIdx.x * blockDim.x + threadIdx.x) * 747796405u + 2891336453u;
    int in = 0;
    for (int k = 0; k < tries; k++) {
        s ^= s << 13;
        s ^= s >> 17;
        s ^= s << 5;
        float x = (s & 0xffff) / 65536.0f, y = (s >> 16) / 65536.0f;
        in += x * x + y * y < 1.0f;
    }
    in = __reduce_add_sync(0xffffffff, in);
    if (threadIdx.x % 32 == 0) atomicAdd(hits, (u64)in);
}

// cutrace: bodies<<<4, 128>>>(force:f32[2048], in, 512)
__global__ void bodies(float4 *force, const float4 *body, int n)
{
    __shared__ float4 tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = body[i];
    float3 a = {0.0f, 0.0f, 0.0f};
    for (int start = 0; start < n; start += 128) {
        tile[threadIdx.x] = body[start + threadIdx.x];
        __syncthreads();
#pragma unroll 8
        for (int j = 0; j < 128; j++) {
            float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            float r = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float s = tile[j].w * r * r * r;
            a.x += dx * s;
            a.y += dy * s;
            a.z += dz * s;
        }
        __syncthreads();
    }
    force[i] = make_float4(a.x, a.y, a.z, 0.0f);
}

// cutrace: distances<<<(4, 4), (16, 16)>>>(out, in, 64, 24)
__global__ void distances(float *out, const float *points, int n, int dims)
{
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int d = 0; d < dims; d++) {
        float diff = points[i * dims + d] - points[j * dims + d];
        sum += diff * diff;
    }
    out[i * n + j] = sqrtf(sum);
}

// cutrace: nearest_centre<<<16, 128, 512>>>(where2:i32[2048], in, x, 2000, 16, 8)
__global__ void nearest_centre(int *label, const float *points, const float *centres, int n, int k,
                               int dims)
{
    extern __shared__ float c[];
    for (int i = threadIdx.x; i < k * dims; i += blockDim.x) c[i] = centres[i];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float least = 1e30f;
    int best = 0;
    for (int j = 0; j < k; j++) {
        float sum = 0.0f;
        for (int d = 0; d < dims; d++) {
            float diff = points[d * n + i] - c[j * dims + d];
            sum += diff * diff;
        }
        if (sum < least) {
            least = sum;
            best = j;
        }
    }
    label[i] = best;
}

// cutrace: four_nearest<<<4, 64>>>(where2, in, 256)
__global__ void four_nearest(int4 *out, const float2 *points, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float2 me = points[i];
    float dist[4] = {1e30f, 1e30f, 1e30f, 1e30f};
    int index[4] = {-1, -1, -1, -1};
    for (int j = 0; j < n; j++) {
        float2 p = points[j];
        float d = (p.x - me.x) * (p.x - me.x) + (p.y - me.y) * (p.y - me.y);
        if (j == i || d >= dist[3]) continue;
        int k = 3;
        while (k > 0 && dist[k - 1] > d) {
            dist[k] = dist[k - 1];
            index[k] = index[k - 1];
            k--;
        }
        dist[k] = d;
        index[k] = j;
    }
    out[i] = make_int4(index[0], index[1], index[2], index[3]);
}

// cutrace: fft_in_block<<<4, 128>>>(out, in)
__global__ void fft_in_block(float2 *out, const float2 *in)
{
    __shared__ float2 s[256];
    int t = threadIdx.x, base = blockIdx.x * 256;
    for (int i = t; i < 256; i += 128) s[__brev(i) >> 24] = in[base + i];
    for (int half = 1; half < 256; half *= 2) {
        __syncthreads();
        int j = t & (half - 1), i = (t - j) * 2 + j;
        float sn, cs;
        sincospif(-(float)j / half, &sn, &cs);
        float2 a = s[i], b = s[i + half];
        float2 w = make_float2(b.x * cs - b.y * sn, b.x * sn + b.y * cs);
        s[i] = make_float2(a.x + w.x, a.y + w.y);
        s[i + half] = make_float2(a.x - w.x, a.y - w.y);
    }
    __syncthreads();
    for (int i = t; i < 256; i += 128) out[base + i] = s[i];
}

// cutrace: fft_step_4<<<4, 64>>>(out, in, x, 256)
__global__ void fft_step_4(float2 *out, const float2 *in, const float2 *twiddle, int quarter)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float2 a = in[i], b = in[i + quarter], c = in[i + 2 * quarter], d = in[i + 3 * quarter];
    float2 s = {a.x + c.x, a.y + c.y}, t = {a.x - c.x, a.y - c.y};
    float2 u = {b.x + d.x, b.y + d.y}, v = {b.y - d.y, d.x - b.x};
    float2 w = twiddle[i];
    out[4 * i] = make_float2(s.x + u.x, s.y + u.y);
    out[4 * i + 1] = make_float2((t.x + v.x) * w.x, (t.y + v.y) * w.y);
    out[4 * i + 2] = make_float2((s.x - u.x) * w.x, (s.y - u.y) * w.x);
    out[4 * i + 3] = make_float2((t.x - v.x) * w.y, (t.y - v.y) * w.y);
}

// cutrace: hadamard<<<8, 128>>>(out, in)
__global__ void hadamard(float *out, const float *in)
{
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    s[t + 128] = in[blockIdx.x * 256 + t + 128];
    for (int h = 1; h < 256; h <<= 1) {
        __syncthreads();
        int i = (t / h) * 2 * h + t % h;
        float a = s[i], b = s[i + h];
        s[i] = a + b;
        s[i + h] = a - b;
    }
    __syncthreads();
    out[blockIdx.x * 256 + t] = s[t];
    out[blockIdx.x * 256 + t + 128] = s[t + 128];
}

// cutrace: haar<<<16, 64>>>(out, in, 1024)
__global__ void haar(float *out, const float *in, int half)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= half) return;
    float a = in[2 * i], b = in[2 * i + 1];
    out[i] = (a + b) * 0.70710678f;
    out[half + i] = (a - b) * 0.70710678f;
}

// cutrace: mandelbrot<<<(4, 8), (16, 8)>>>(edges, 64, 64, 40)
__global__ void mandelbrot(u8 *out, int w, int h, int most)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    float cx = px * 3.0f / w - 2.0f, cy = py * 2.0f / h - 1.0f, x = 0.0f, y = 0.0f;
    int n = 0;
    for (; n < most && x * x + y * y < 4.0f; n++) {
        float next = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = next;
    }
    out[py * w + px] = n;
}

// cutrace: floyd<<<1, (16, 16)>>>(paths:i32[256]=random:111)
__global__ void floyd(int *paths)
{
    __shared__ int d[16][16];
    int i = threadIdx.y, j = threadIdx.x;
    d[i][j] = paths[i * 16 + j];
    __syncthreads();
    for (int k = 0; k < 16; k++) {
        int through = d[i][k] + d[k][j];
        __syncthreads();
        d[i][j] = min(d[i][j], through);
        __syncthreads();
    }
    paths[i * 16 + j] = d[i][j];
}

// cutrace: lu<<<2, (24, 24)>>>(out)
__global__ void lu(float *matrix)
{
    __shared__ float a[24][24];
    int r = threadIdx.y, c = threadIdx.x;
    float *mine = matrix + blockIdx.x * 576;
    a[r][c] = mine[r * 24 + c] + (r == c ? 30.0f : 0.0f);
    for (int k = 0; k < 23; k++) {
        __syncthreads();
        if (r > k && c == k) a[r][k] /= a[k][k];
        __syncthreads();
        if (r > k && c > k) a[r][c] -= a[r][k] * a[k][c];
    }
    __syncthreads();
    mine[r * 24 + c] = a[r][c];
}

// cutrace: thomas<<<2, 64>>>(out, in, 128, 40)
__global__ void thomas(float *x, const float *d, int systems, int n)
{
    int s = blockIdx.x * blockDim.x + threadIdx.x;
    float c[40];
    float previous = 0.0f, value = 0.0f;
    for (int i = 0; i < n; i++) {
        float m = 4.0f - previous;
        previous = 1.0f / m;
        c[i] = previous;
        value = (d[i * systems + s] - value) / m;
        x[i * systems + s] = value;
    }
    for (int i = n - 2; i >= 0; i--) {
        value = x[i * systems + s] - c[i] * value;
        x[i * systems + s] = value;
    }
}

// cutrace: product_naive<<<(4, 6), (16, 16)>>>(out, in, x, 64, 96, 40)
__global__ void product_naive(float *c, const float *a, const float *b, int n, int m, int k)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= m || col >= n) return;
    float sum = 0.0f;
    for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + col];
    c[row * n + col] = sum;
}

// cutrace: product_registers<<<(2, 2), (16, 16)>>>(out, in, x, 128, 64)
__global__ void product_registers(float *c, const float *a, const float *b, int n, int k)
{
    __shared__ float as[16][65];
    __shared__ float4 bs[16][16];
    int tx = threadIdx.x, ty = threadIdx.y, t = ty * 16 + tx;
    float acc[4][4] = {};
    for (int start = 0; start < k; start += 16) {
        for (int i = t; i < 1024; i += 256)
            as[i % 16][i / 16] = a[(blockIdx.y * 64 + i / 16) * k + start + i % 16];
        bs[ty][tx] = *(const float4 *)(b + (start + ty) * n + blockIdx.x * 64 + tx * 4);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i++) {
            float4 row = bs[i][tx];
#pragma unroll
            for (int r = 0; r < 4; r++) {
                float v = as[i][ty * 4 + r];
                acc[r][0] += v * row.x;
                acc[r][1] += v * row.y;
                acc[r][2] += v * row.z;
                acc[r][3] += v * row.w;
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 4; r++)
        *(float4 *)(c + (blockIdx.y * 64 + ty * 4 + r) * n + blockIdx.x * 64 + tx * 4)
            = make_float4(acc[r][0], acc[r][1], acc[r][2], acc[r][3]);
}

// cutrace: rank_one<<<(4, 8), (32, 8)>>>(out, in, x, 128)
__global__ void rank_one(float *a, const float *x, const float *y, int n)
{
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    a[row * n + col] += x[row] * y[col];
}

// cutrace: softmax<<<16, 128>>>(out, in, 500)
__global__ void softmax(float *out, const float *in, int n)
{
    __shared__ float s[4];
    const float *row = in + blockIdx.x * n;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float most = -1e30f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) most = fmaxf(most, row[i]);
    for (int d = 16; d; d >>= 1) most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
    if (lane == 0) s[warp] = most;
    __syncthreads();
    most = fmaxf(fmaxf(s[0], s[1]), fmaxf(s[2], s[3]));
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += expf(row[i] - most);
    for (int d = 16; d; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
    __syncthreads();
    if (lane == 0) s[warp] = sum;
    __syncthreads();
    sum = s[0] + s[1] + s[2] + s[3];
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[blockIdx.x * n + i] = expf(row[i] - most) / sum;
}

// cutrace: max_pool<<<(4, 4, 8), (8, 8)>>>(out, in, 64)
__global__ void max_pool(float *out, const float *in, int w)
{
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, c = blockIdx.z;
    const float *p = in + c * w * w + 2 * y * w + 2 * x;
    out[c * w * w / 4 + y * w / 2 + x] = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[w], p[w + 1]));
}

// cutrace: convolve_channels<<<(4, 4, 4), (8, 8)>>>(out, in, x, 32, 6)
__global__ void convolve_channels(float *out, const float *in, const float *weights, int w, int channels)
{
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, o = blockIdx.z;
    float sum = 0.0f;
    for (int c = 0; c < channels; c++)
        for (int j = -1; j <= 1; j++)
            for (int i = -1; i <= 1; i++) {
                int sx = x + i, sy = y + j;
                if (sx < 0 || sy < 0 || sx >= w || sy >= w) continue;
                sum += in[(c * w + sy) * w + sx] * weights[((o * channels + c) * 3 + j + 1) * 3 + i + 1];
            }
    out[(o * w + y) * w + x] = sum;
}

// cutrace: embed<<<64, 32>>>(out, in, cols, 96)
__global__ void embed(float *out, const float *table, const int *tokens, int width)
{
    int token = tokens[blockIdx.x] % 256;
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        out[blockIdx.x * width + i] = table[token * width + i];
}

// cutrace: bfs_level<<<16, 64>>>(levels:i32[1024], cols, changed:i32[1], 1024, 0)
// cutrace: bfs_level<<<16, 64>>>(levels, cols, changed, 1024, 1)
__global__ void bfs_level(int *levels, const int *edges, int *changed, int n, int level)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n) return;
    bool mine = level == 0 ? v % 97 == 0 : levels[v] == level;
    if (!mine) return;
    for (int e = v * 6; e < v * 6 + 6; e++) {
        int to = edges[e] % n;
        if (levels[to] == 0) {
            levels[to] = level + 1;
            *changed = 1;
        }
    }
}

// cutrace: push_rank<<<16, 64>>>(y, in, cols, 1024)
__global__ void push_rank(float *next, const float *rank, const int *edges, int n)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    float share = rank[v] / 8.0f;
    for (int e = 0; e < 8; e++) atomicAdd(&next[edges[v * 8 + e] % n], share);
}

// cutrace: lowest_label<<<16, 64>>>(labels:i32[1024]=arange, cols, 1024)
__global__ void lowest_label(int *labels, const int *edges, int n)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    for (int e = 0; e < 4; e++) atomicMin(labels + edges[v * 4 + e] % n, v);
}

// cutrace: triangles<<<8, 64>>>(where2, runs, 512, 8)
__global__ void triangles(int *found, const u32 *lists, int n, int width)
{
    int v = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
    const u32 *a = lists + v, *b = lists + (v * 7) % n;
    int i = 0, j = 0;
    while (i < width && j < width) {
        if (a[i] == b[j]) {
            count++;
            i++;
            j++;
        } else if (a[i] < b[j]) i++;
        else j++;
    }
    found[v] = count;
}

// cutrace: lower_bound<<<8, 128>>>(sorted, runs, keys, 4096)
__global__ void lower_bound(u32 *out, const u32 *list, const u32 *wanted, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    u32 key = wanted[i];
    int low = 0, high = n;
    while (low < high) {
        int mid = (low + high) >> 1;
        if (list[mid] < key) low = mid + 1;
        else high = mid;
    }
    out[i] = low;
}

// cutrace: chase<<<4, 32>>>(sorted, keys, 12)
__global__ void chase(u32 *out, const u32 *next, int hops)
{
    u32 at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int h = 0; h < hops; h++) at = next[at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = at;
}

// cutrace: collatz<<<8, 96>>>(where2, 768)
__global__ void collatz(int *steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u32 v = i + 1;
    int k = 0;
    while (v != 1) {
        v = v & 1 ? 3 * v + 1 : v / 2;
        k++;
    }
    steps[i] = k;
}
