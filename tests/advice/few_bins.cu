// Count words in four bins. Bad: every lane adds to a bin itself. Good: lanes of one bin find each
// other by a vote, and one of them adds for all.
// expect: contention on gtx280 gtx580 k20 h200
// cutrace: badBins<<<16, 256>>>(bins:i32[4]=zeros, in:i32[4096]=random:3)
// cutrace: goodBins<<<16, 256>>>(bins, in)

__global__ void badBins(int *bins, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&bins[in[i] & 3], 1);
}

__global__ void goodBins(int *bins, const int *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int mine = in[i] & 3;
    for (int bin = 0; bin < 4; bin++) {
        unsigned same = __ballot_sync(~0u, mine == bin);
        if (threadIdx.x % 32 == bin && same)
            atomicAdd(&bins[bin], __popc(same));
    }
}
