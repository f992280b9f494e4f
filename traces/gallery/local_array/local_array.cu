// An array indexed at run time cannot live in registers: it goes to local memory.
// cutrace: localArray<<<4, 64>>>(out:i32[256], in:i32[256]=arange, 40)

__global__ void localArray(int *out, const int *in, int count)
{
    int kept[40];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int place = in[i];
    for (int k = 0; k < count; k++)
        kept[(place + k) % 40] = place * k;

    int sum = 0;
    for (int k = 0; k < count; k++)
        sum += kept[(place + 7 * k) % 40] * k;
    out[i] = sum;
}
