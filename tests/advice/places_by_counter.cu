// Numbers that pass a test, one after another. Bad: each asks for its place. Good: one lane asks
// for its warp.
// expect: contention on gtx580 gtx980
// cutrace: naive<<<8, 128>>>(out:i32[1024], count:i32[1], in:i32[1024]=random:1)
// cutrace: aggregated<<<8, 128>>>(out, count, in)

__global__ void naive(int *out, int *count, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] & 1)
        out[atomicAdd(count, 1)] = in[i];
}

__global__ void aggregated(int *out, int *count, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31;
    bool keep = in[i] & 1;
    unsigned m = __ballot_sync(~0u, keep);
    int base = 0;
    if (lane == 0 && m)
        base = atomicAdd(count, __popc(m));
    base = __shfl_sync(~0u, base, 0);
    if (keep)
        out[(base + __popc(m & ((1u << lane) - 1))) & 1023] = in[i];
}
