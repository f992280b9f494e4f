// Kernels as people write them, captured before any model saw them: what was right about them then
// is what a reader may expect of kernels of their own.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x

// cutrace: saxpy<<<512, 256>>>(y:f32[131072]=random:1, x:f32[131072]=random:2, 131072)
extern "C" __global__ void saxpy(float *y, const float *x, int n)
{
    INDEX;
    if (i < n) y[i] = 2.5f * x[i] + y[i];
}
// cutrace: saxpy_ragged<<<391, 256>>>(y, x, 100000)
extern "C" __global__ void saxpy_ragged(float *y, const float *x, int n)
{
    INDEX;
    if (i < n) y[i] = 2.5f * x[i] + y[i];
}
// cutrace: scale_48<<<100, 48>>>(y, x, 4700)
// cutrace: scale_48<<<37, 33>>>(y, x, 1221)
// cutrace: scale_48<<<64, 1>>>(y, x, 64)
extern "C" __global__ void scale_48(float *y, const float *x, int n)
{
    INDEX;
    if (i < n) y[i] = 3.0f * x[i];
}
// cutrace: grid_stride<<<32, 128>>>(y, x, 131072)
extern "C" __global__ void grid_stride(float *y, const float *x, int n)
{
    #pragma unroll 1
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = x[i] * x[i];
}
// cutrace: chunks_of_a_thread<<<16, 128>>>(y, x, 64)
extern "C" __global__ void chunks_of_a_thread(float *y, const float *x, int each)
{
    INDEX;
    #pragma unroll 1
    for (int k = 0; k < each; k++) y[i * each + k] = x[i * each + k] + 1.0f;
}

struct Body { float x, y, z, vx, vy, vz, mass; };
struct Pixel { u8 r, g, b; };
struct Cell { double rho, u, v, p, e; };
struct alignas(16) Wide { float a, b, c; };

// cutrace: move_bodies<<<64, 128>>>(bodies:f32[57344]=random:3, 8192)
extern "C" __global__ void move_bodies(Body *b, int n)
{
    INDEX;
    if (i >= n) return;
    b[i].x += b[i].vx * 0.01f;
    b[i].y += b[i].vy * 0.01f;
    b[i].z += b[i].vz * 0.01f;
}
// cutrace: gray<<<128, 128>>>(g8:u8[16384], rgb:u8[49152]=random:4, 16384)
extern "C" __global__ void gray(u8 *out, const Pixel *in, int n)
{
    INDEX;
    if (i < n) out[i] = (in[i].r * 77 + in[i].g * 151 + in[i].b * 28) >> 8;
}
// cutrace: pressures<<<32, 128>>>(cells:f64[20480]=random:5, 4096)
extern "C" __global__ void pressures(Cell *c, int n)
{
    INDEX;
    if (i < n) c[i].p = 0.4 * (c[i].e - 0.5 * c[i].rho * (c[i].u * c[i].u + c[i].v * c[i].v));
}
// cutrace: wide_structs<<<32, 128>>>(w:f32[16384], v:f32[16384]=random:6, 4096)
extern "C" __global__ void wide_structs(Wide *out, const Wide *in, int n)
{
    INDEX;
    if (i < n) { Wide w = in[i]; w.b += w.a; out[n - 1 - i] = w; }
}
// cutrace: vectors_of_four<<<32, 128>>>(w, v)
extern "C" __global__ void vectors_of_four(float4 *out, const float4 *in)
{
    INDEX;
    float4 a = in[i];
    out[i] = make_float4(a.w, a.z, a.y, a.x);
}
// cutrace: vectors_reversed<<<32, 128>>>(w, v, 8192)
extern "C" __global__ void vectors_reversed(float2 *out, const float2 *in, int n)
{
    INDEX;
    float2 a = in[n - 1 - 2 * i];
    out[i] = a;
}
// cutrace: shorts_of_two<<<16, 100>>>(s:i16[4096], t:i16[4096]=arange)
extern "C" __global__ void shorts_of_two(short2 *out, const short2 *in)
{
    INDEX;
    short2 a = in[i + 1];
    out[i] = make_short2(a.y, a.x);
}

// cutrace: gather<<<256, 256>>>(y, x, at:i32[131072]=random:7, 65536)
extern "C" __global__ void gather(float *y, const float *x, const int *at, int n)
{
    INDEX;
    if (i < n) y[i] = x[at[i]];
}
// cutrace: scatter<<<128, 256>>>(y, x, at, 32768)
extern "C" __global__ void scatter(float *y, const float *x, const int *at, int n)
{
    INDEX;
    if (i < n) y[at[i]] = x[i];
}
// cutrace: chase<<<8, 64>>>(ends:i32[512], at, 24)
extern "C" __global__ void chase(int *ends, const int *next, int steps)
{
    INDEX;
    int p = i;
    #pragma unroll 1
    for (int k = 0; k < steps; k++) p = next[p];
    ends[i] = p;
}
// cutrace: search<<<32, 128>>>(places:i32[4096], keys:i32[4096]=random:8, sorted:i32[4096]=arange, 4096)
extern "C" __global__ void search(int *places, const int *keys, const int *sorted, int n)
{
    INDEX;
    int key = keys[i], low = 0, high = n;
    #pragma unroll 1
    while (low < high) {
        int middle = (low + high) / 2;
        if (sorted[middle] < key) low = middle + 1; else high = middle;
    }
    places[i] = low;
}

// cutrace: row_sums<<<4, 128>>>(sums:f32[512], m:f32[262144]=random:9, 512)
extern "C" __global__ void row_sums(float *sums, const float *m, int n)
{
    INDEX;
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k++) sum += m[i * n + k];
    sums[i] = sum;
}
// cutrace: column_sums<<<4, 128>>>(sums, m, 512)
extern "C" __global__ void column_sums(float *sums, const float *m, int n)
{
    INDEX;
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k++) sum += m[k * n + i];
    sums[i] = sum;
}
// cutrace: matrix_vector_by_warp<<<64, 256>>>(sums, m, x, 512)
extern "C" __global__ void matrix_vector_by_warp(float *y, const float *m, const float *x, int n)
{
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    float sum = 0;
    #pragma unroll 1
    for (int k = lane; k < n; k += 32) sum += m[row * n + k] * x[k];
    for (int d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
    if (lane == 0) y[row] = sum;
}
// cutrace: turn_doubles<<<(8, 8), (16, 16)>>>(e:f64[16384], d:f64[16384]=random:10, 128)
extern "C" __global__ void turn_doubles(double *out, const double *in, int n)
{
    __shared__ double tile[16][16];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}
// cutrace: turn_bytes<<<(4, 4), (32, 8)>>>(g8, rgb, 128)
extern "C" __global__ void turn_bytes(u8 *out, const u8 *in, int n)
{
    __shared__ u8 tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    #pragma unroll 1
    for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32 + threadIdx.y;
    #pragma unroll 1
    for (int j = 0; j < 32; j += 8) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
// cutrace: product_of_double<<<(6, 6), (16, 16)>>>(e, d, d, 96)
extern "C" __global__ void product_of_double(double *c, const double *a, const double *b, int n)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    double sum = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
    c[y * n + x] = sum;
}
// cutrace: product_narrow<<<(12, 12), (8, 8)>>>(e, d, d, 96)
extern "C" __global__ void product_narrow(double *c, const double *a, const double *b, int n)
{
    __shared__ double s[8][8], t[8][8];
    int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    double sum = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k += 8) {
        s[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        t[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        __syncthreads();
        #pragma unroll 1
        for (int j = 0; j < 8; j++) sum += s[threadIdx.y][j] * t[j][threadIdx.x];
        __syncthreads();
    }
    c[y * n + x] = sum;
}

// cutrace: five_points<<<(16, 64), (32, 8)>>>(grid:f32[262144], m, 512)
extern "C" __global__ void five_points(float *out, const float *in, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
        out[y * n + x] = 0.25f * (in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x]
                                  + in[(y + 1) * n + x]);
}
// cutrace: seven_points<<<(2, 8, 16), (32, 8, 4)>>>(grid, m, 64)
extern "C" __global__ void seven_points(float *out, const float *in, int n)
{
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    int z = blockIdx.z * 4 + threadIdx.z, p = (z * n + y) * n + x;
    if (x == 0 || y == 0 || z == 0 || x == n - 1 || y == n - 1 || z == n - 1) return;
    out[p] = in[p - 1] + in[p + 1] + in[p - n] + in[p + n] + in[p - n * n] + in[p + n * n]
             - 6.0f * in[p];
}
// cutrace: life<<<(8, 16), (16, 8)>>>(g8, rgb, 128)
extern "C" __global__ void life(u8 *out, const u8 *in, int n)
{
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, near = 0;
    #pragma unroll 1
    for (int dy = -1; dy <= 1; dy++)
        #pragma unroll 1
        for (int dx = -1; dx <= 1; dx++)
            near += in[((y + dy + n) % n) * n + (x + dx + n) % n] & 1;
    out[y * n + x] = near == 3;
}
// cutrace: tile_with_edges<<<(8, 8), (18, 18)>>>(grid, m, 128)
extern "C" __global__ void tile_with_edges(float *out, const float *in, int n)
{
    __shared__ float t[18][18];
    int x = blockIdx.x * 16 + threadIdx.x - 1, y = blockIdx.y * 16 + threadIdx.y - 1;
    bool inside = x >= 0 && y >= 0 && x < n && y < n;
    t[threadIdx.y][threadIdx.x] = inside ? in[y * n + x] : 0.0f;
    __syncthreads();
    if (threadIdx.x == 0 || threadIdx.y == 0 || threadIdx.x == 17 || threadIdx.y == 17) return;
    out[y * n + x] = t[threadIdx.y][threadIdx.x - 1] + t[threadIdx.y][threadIdx.x + 1]
                     + t[threadIdx.y - 1][threadIdx.x] + t[threadIdx.y + 1][threadIdx.x];
}
__constant__ float weights[9] = {1, 2, 4, 8, 16, 8, 4, 2, 1};
// cutrace: blur<<<64, 128>>>(grid, m, 8192)
extern "C" __global__ void blur(float *out, const float *in, int n)
{
    INDEX;
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < 9; k++) {
        int at = min(max(i + k - 4, 0), n - 1);
        sum += weights[k] * in[at];
    }
    out[i] = sum;
}

// cutrace: sum_by_halves<<<64, 256>>>(sums, m)
extern "C" __global__ void sum_by_halves(float *sums, const float *in)
{
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    #pragma unroll 1
    for (int d = 128; d; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
// cutrace: sum_by_doubling<<<64, 256>>>(sums, m)
extern "C" __global__ void sum_by_doubling(float *sums, const float *in)
{
    __shared__ float s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    #pragma unroll 1
    for (int d = 1; d < 256; d *= 2) {
        int at = 2 * d * t;
        if (at < 256) s[at] += s[at + d];
        __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = s[0];
}
// cutrace: prefix_sums<<<16, 128>>>(sums32:i32[2048], keys)
extern "C" __global__ void prefix_sums(int *out, const int *in)
{
    __shared__ int s[2][128];
    int t = threadIdx.x, from = 0;
    s[0][t] = in[blockIdx.x * 128 + t];
    __syncthreads();
    #pragma unroll 1
    for (int d = 1; d < 128; d *= 2) {
        s[1 - from][t] = s[from][t] + (t >= d ? s[from][t - d] : 0);
        from = 1 - from;
        __syncthreads();
    }
    out[blockIdx.x * 128 + t] = s[from][t];
}
// cutrace: prefix_tree<<<16, 128>>>(sums32, keys)
extern "C" __global__ void prefix_tree(int *out, const int *in)
{
    __shared__ int s[256];
    int t = threadIdx.x;
    s[2 * t] = in[blockIdx.x * 128 + t], s[2 * t + 1] = t;
    #pragma unroll 1
    for (int d = 1; d < 256; d *= 2) {
        __syncthreads();
        int at = (t + 1) * d * 2 - 1;
        if (at < 256) s[at] += s[at - d];
    }
    __syncthreads();
    out[blockIdx.x * 128 + t] = s[2 * t];
}
// cutrace: swap_network<<<8, 256>>>(sums32, keys)
extern "C" __global__ void swap_network(int *out, const int *in)
{
    __shared__ int s[256];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    #pragma unroll 1
    for (int k = 2; k <= 256; k *= 2)
        #pragma unroll 1
        for (int j = k / 2; j; j /= 2) {
            int other = t ^ j;
            if (other > t) {
                int a = s[t], b = s[other];
                if ((a > b) == ((t & k) == 0)) s[t] = b, s[other] = a;
            }
            __syncthreads();
        }
    out[blockIdx.x * 256 + t] = s[t];
}
// cutrace: butterflies<<<8, 64>>>(w, v)
extern "C" __global__ void butterflies(float2 *out, const float2 *in)
{
    __shared__ float2 s[128];
    int t = threadIdx.x;
    s[t] = in[blockIdx.x * 128 + t], s[t + 64] = in[blockIdx.x * 128 + t + 64];
    #pragma unroll 1
    for (int half = 1; half < 128; half *= 2) {
        __syncthreads();
        int at = (t / half) * 2 * half + t % half;
        float2 a = s[at], b = s[at + half];
        s[at] = make_float2(a.x + b.x, a.y + b.y);
        s[at + half] = make_float2(a.x - b.x, a.y - b.y);
    }
    __syncthreads();
    out[blockIdx.x * 128 + t] = s[t], out[blockIdx.x * 128 + t + 64] = s[t + 64];
}

// cutrace: count_in_shared<<<32, 256>>>(bins:i32[64], at, 32768)
extern "C" __global__ void count_in_shared(int *bins, const int *in, int n)
{
    __shared__ int mine[64];
    if (threadIdx.x < 64) mine[threadIdx.x] = 0;
    __syncthreads();
    #pragma unroll 1
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        atomicAdd(&mine[in[i] & 63], 1);
    __syncthreads();
    if (threadIdx.x < 64) atomicAdd(&bins[threadIdx.x], mine[threadIdx.x]);
}
// cutrace: count_in_global<<<32, 256>>>(many:i32[1024], at, 8192)
extern "C" __global__ void count_in_global(int *bins, const int *in, int n)
{
    INDEX;
    if (i < n) atomicAdd(&bins[in[i] & 1023], 1);
}
// cutrace: largest<<<32, 256>>>(one:i32[4], at, 8192)
extern "C" __global__ void largest(int *one, const int *in, int n)
{
    INDEX;
    if (i < n && in[i] > 1000) atomicMax(one + (i & 3), in[i]);
}
// cutrace: float_sums<<<32, 128>>>(sums, m, at)
extern "C" __global__ void float_sums(float *sums, const float *in, const int *at)
{
    INDEX;
    atomicAdd(&sums[at[i] & 255], in[i]);
}
// cutrace: long_sums<<<32, 128>>>(wide:u64[256], at)
extern "C" __global__ void long_sums(u64 *sums, const int *at)
{
    INDEX;
    atomicAdd(&sums[at[i] & 255], (u64)i);
}
// cutrace: claim<<<8, 128>>>(table:i32[4096], at)
extern "C" __global__ void claim(int *table, const int *at)
{
    INDEX;
    int slot = (at[i] * 31) & 4095;
    #pragma unroll 1
    for (int k = 0; k < 8; k++) {
        if (atomicCAS(&table[slot], 0, i + 1) == 0) break;
        slot = (slot + 1) & 4095;
    }
}
// cutrace: compact<<<32, 128>>>(places, keys, total:i32[1], 2048)
extern "C" __global__ void compact(int *out, const int *in, int *total, int bound)
{
    __shared__ int many, first;
    INDEX;
    if (threadIdx.x == 0) many = 0;
    __syncthreads();
    bool kept = in[i] < bound;
    int mine = kept ? atomicAdd(&many, 1) : 0;
    __syncthreads();
    if (threadIdx.x == 0) first = atomicAdd(total, many);
    __syncthreads();
    if (kept) out[first + mine] = i;
}

// cutrace: local_counts<<<16, 64>>>(ends, at)
extern "C" __global__ void local_counts(int *out, const int *in)
{
    INDEX;
    int mine[16];
    for (int k = 0; k < 16; k++) mine[k] = 0;
    #pragma unroll 1
    for (int k = 0; k < 32; k++) mine[in[(i & 511) * 32 + k] & 15]++;
    int best = 0;
    #pragma unroll 1
    for (int k = 1; k < 16; k++) if (mine[k] > mine[best]) best = k;
    if (i < 512) out[i] = best;
}
// cutrace: local_stack<<<8, 64>>>(ends, at, 20)
extern "C" __global__ void local_stack(int *out, const int *in, int steps)
{
    INDEX;
    int stack[24], top = 0;
    stack[top++] = i;
    #pragma unroll 1
    for (int k = 0; k < steps; k++) {
        int word = in[(i * 7 + k) & 4095];
        if (word & 1 || top == 1) { if (top < 24) stack[top++] = word; } else top--;
    }
    out[i] = stack[top - 1];
}

// cutrace: by_kind<<<32, 128>>>(places, keys)
extern "C" __global__ void by_kind(int *out, const int *in)
{
    INDEX;
    int v = in[i];
    switch (v & 3) {
    case 0: v = v * 3 + 1; break;
    case 1: v = __popc(v) + in[(i + 5) & 4095]; break;
    case 2: if (v > 100) v -= in[v & 1023]; break;
    default: v = -v;
    }
    out[i] = v;
}
// cutrace: collatz<<<16, 128>>>(ends, 400)
extern "C" __global__ void collatz(int *out, int most)
{
    INDEX;
    u32 n = i + 1;
    int steps = 0;
    while (n != 1 && steps < most) { n = n & 1 ? 3 * n + 1 : n / 2; steps++; }
    if (i < 512) out[i] = steps;
}
// cutrace: ellpack<<<32, 128>>>(y, x, at, 12, 4096)
extern "C" __global__ void ellpack(float *y, const float *x, const int *at, int width, int rows)
{
    INDEX;
    float sum = 0;
    #pragma unroll 1
    for (int k = 0; k < width; k++) sum += x[at[k * rows + i]] * 0.5f;
    y[i] = sum;
}
// cutrace: through_read_only<<<128, 128>>>(y, x, at, 16384)
extern "C" __global__ void through_read_only(float *y, const float *x, const int *at, int n)
{
    INDEX;
    if (i < n) y[i] = __ldg(x + (__ldg(at + i) & 4095)) + __ldg(x + i);
}
// cutrace: forces<<<16, 64>>>(v, w, 1024)
extern "C" __global__ void forces(float4 *out, const float4 *in, int n)
{
    __shared__ float4 near[64];
    INDEX;
    float4 me = in[i];
    float ax = 0;
    #pragma unroll 1
    for (int k = 0; k < n; k += 64) {
        near[threadIdx.x] = in[k + threadIdx.x];
        __syncthreads();
        #pragma unroll 1
        for (int j = 0; j < 64; j++) {
            float dx = near[j].x - me.x;
            ax += near[j].w * dx / (dx * dx + 0.01f);
        }
        __syncthreads();
    }
    out[i] = make_float4(ax, 0, 0, 0);
}
// cutrace: alignment_row<<<8, 128>>>(sums32, keys, 64)
extern "C" __global__ void alignment_row(int *out, const int *in, int rounds)
{
    __shared__ int row[129];
    int t = threadIdx.x;
    row[t + 1] = 0;
    if (t == 0) row[0] = 0;
    __syncthreads();
    #pragma unroll 1
    for (int k = 0; k < rounds; k++) {
        int best = max(row[t] + ((in[t] ^ in[k]) & 3), row[t + 1] - 1);
        __syncthreads();
        row[t + 1] = best;
        __syncthreads();
    }
    out[blockIdx.x * 128 + t] = row[t + 1];
}
// cutrace: dynamic_columns<<<16, 96, 3072>>>(w, v)
extern "C" __global__ void dynamic_columns(float *out, const float *in)
{
    extern __shared__ float s[];
    int t = threadIdx.x;
    #pragma unroll 1
    for (int k = 0; k < 8; k++) s[t * 8 + k] = in[blockIdx.x * 768 + k * 96 + t];
    __syncthreads();
    #pragma unroll 1
    for (int k = 0; k < 8; k++) out[blockIdx.x * 768 + k * 96 + t] = s[k * 96 + t];
}
// cutrace: every_other<<<64, 128>>>(y, x)
extern "C" __global__ void every_other(float *y, const float *x)
{
    INDEX;
    if (threadIdx.x % 2) y[i] = x[2 * i]; else y[i] = x[2 * i + 1] * 2.0f;
}
// cutrace: last_by_warp<<<32, 128>>>(ends, at)
extern "C" __global__ void last_by_warp(int *out, const int *in)
{
    INDEX;
    u32 odd = __ballot_sync(~0u, in[i] & 1);
    if ((threadIdx.x & 31) == 31 - __clz(odd | 1)) out[i / 32] = in[i];
}
// cutrace: copy_large<<<2048, 256>>>(big:f32[524288], also:f32[524288]=arange)
extern "C" __global__ void copy_large(float *out, const float *in)
{
    INDEX;
    out[i] = in[i];
}
// cutrace: add_in_columns<<<(16, 16), (32, 32)>>>(big, also, 512)
extern "C" __global__ void add_in_columns(float *out, const float *in, int n)
{
    int row = blockIdx.x * 32 + threadIdx.x, column = blockIdx.y * 32 + threadIdx.y;
    out[row * n + column] += in[row * n + column];
}
