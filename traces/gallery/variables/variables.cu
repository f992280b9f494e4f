// How many of each variable there are: one local one a thread, one shared one a block.
// cutrace: variables<<<1000, 512>>>(versions:i32[2]=zeros)

__global__ void variables(int *versions)
{
    __shared__ int members;
    int mine = 1;
    if (threadIdx.x == 0)
        members = 0;
    __syncthreads();
    atomicAdd(&members, mine);
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(&versions[0], members);
        atomicAdd(&versions[1], 1);
    }
}
