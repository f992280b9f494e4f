// Scans of a block through two buffers, and by shuffles within warps.
// expect: nothing on 8800gtx gtx580 gtx980 h200
// cutrace: scan<<<4, 256>>>(out:i32[1024], in:i32[1024]=arange)
// cutrace: warpScan<<<4, 256>>>(out, in)

__global__ void scan(int *out, const int *in)
{
    __shared__ int s[2][256];
    int t = threadIdx.x, p = 0;
    s[0][t] = in[blockIdx.x * 256 + t];
    __syncthreads();
    for (int d = 1; d < 256; d *= 2) {
        s[1 - p][t] = t >= d ? s[p][t] + s[p][t - d] : s[p][t];
        p = 1 - p;
        __syncthreads();
    }
    out[blockIdx.x * 256 + t] = s[p][t];
}

__global__ void warpScan(int *out, const int *in)
{
    __shared__ int sums[8];
    int t = threadIdx.x, lane = t & 31, w = t >> 5, v = in[blockIdx.x * 256 + t];
    for (int d = 1; d < 32; d *= 2) {
        int o = __shfl_up_sync(~0u, v, d);
        if (lane >= d)
            v += o;
    }
    if (lane == 31)
        sums[w] = v;
    __syncthreads();
    if (w == 0) {
        int u = lane < 8 ? sums[lane] : 0;
        for (int d = 1; d < 8; d *= 2) {
            int o = __shfl_up_sync(~0u, u, d);
            if (lane >= d)
                u += o;
        }
        if (lane < 8)
            sums[lane] = u;
    }
    __syncthreads();
    out[blockIdx.x * 256 + t] = v + (w ? sums[w - 1] : 0);
}
