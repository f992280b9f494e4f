// Count what a thread sees by its last four bits. Bad: in an array that the data index, so in
// memory. Good: in four bits of a register each.
// expect: local_array on 8800gtx gtx580 h200
// cutrace: badCounts<<<2, 64>>>(out:i64[128], in:i32[1024]=random:5)
// cutrace: goodCounts<<<2, 64>>>(out, in)

__global__ void badCounts(long long *out, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int seen[16];
    for (int n = 0; n < 16; n++) seen[n] = 0;
    for (int k = 0; k < 8; k++)
        seen[in[k * 128 + i] & 15]++;
    long long all = 0;
    for (int n = 0; n < 16; n++) all = all * 16 + seen[n];
    out[i] = all;
}

__global__ void goodCounts(long long *out, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long seen = 0;
    for (int k = 0; k < 8; k++)
        seen += 1LL << (in[k * 128 + i] & 15) * 4;
    out[i] = seen;
}
