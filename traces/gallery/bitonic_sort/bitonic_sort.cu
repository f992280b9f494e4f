// Every block sorts its 256 keys in shared memory by a bitonic network.
// cutrace: bitonicSort<<<8, 256>>>(keys:i32[8,256]=random:9)

__global__ void bitonicSort(int *keys)
{
    __shared__ int shared[256];
    unsigned t = threadIdx.x;
    unsigned first = blockIdx.x * blockDim.x;
    shared[t] = keys[first + t];
    __syncthreads();

    for (unsigned run = 2; run <= blockDim.x; run *= 2) {
        for (unsigned distance = run / 2; distance > 0; distance /= 2) {
            unsigned partner = t ^ distance;
            if (t < partner) {
                int mine = shared[t];
                int theirs = shared[partner];
                bool ascending = (t & run) == 0;
                if ((mine > theirs) == ascending) {
                    shared[t] = theirs;
                    shared[partner] = mine;
                }
            }
            __syncthreads();
        }
    }
    keys[first + t] = shared[t];
}
