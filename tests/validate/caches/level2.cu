// What L2 and memory see: reads that SMs share, more than L2 holds, stores that wait in it.

typedef unsigned int u32;

// Every block reads the same words.
// cutrace: everyone<<<8, 256>>>(out:u32[1048576], in:u32[1048576]=arange, 16384)
// cutrace: everyone<<<132, 256>>>(out, in, 16384)
// cutrace: everyone<<<132, 256>>>(out, in, 131072)
// cutrace: everyone<<<528, 256>>>(out, in, 16384)
// cutrace: everyone<<<1056, 256>>>(out, in, 8192)
extern "C" __global__ void everyone(u32 *out, const u32 *in, int words)
{
    u32 sum = 0;
    #pragma unroll 1
    for (int k = threadIdx.x; k < words; k += 256) sum += in[k];
    out[blockIdx.x * 256 + threadIdx.x] = sum;
}
// Neighbouring blocks read the same rows; blocks a row of the grid apart read the same columns.
// cutrace: rows_and_columns<<<(16, 16), 256>>>(out, in)
extern "C" __global__ void rows_and_columns(u32 *out, const u32 *in)
{
    u32 sum = 0;
    #pragma unroll 1
    for (int k = threadIdx.x; k < 8192; k += 256)
        sum += in[blockIdx.y * 8192 + k] + in[131072 + blockIdx.x * 8192 + k];
    out[(blockIdx.y * 16 + blockIdx.x) * 256 + threadIdx.x] = sum;
}
// A word of every `pitch`, in rounds: 64 bytes of memory a load, or a line.
// cutrace: far<<<1024, 256>>>(out, big:u32[33554432], 262144, 16, 2)
// cutrace: far<<<1024, 256>>>(out, big, 393216, 16, 2)
// cutrace: far<<<1024, 256>>>(out, big, 524288, 16, 2)
// cutrace: far<<<1024, 256>>>(out, big, 655360, 16, 2)
// cutrace: far<<<1024, 256>>>(out, big, 786432, 16, 2)
// cutrace: far<<<1024, 256>>>(out, big, 1048576, 16, 2)
// cutrace: far<<<1024, 256>>>(out, big, 262144, 32, 2)
// cutrace: far<<<1024, 256>>>(out, big, 393216, 32, 2)
// cutrace: far<<<1024, 256>>>(out, big, 524288, 32, 2)
// cutrace: far<<<1024, 256>>>(out, big, 1048576, 32, 2)
// cutrace: far<<<1024, 256>>>(out, big, 262144, 64, 2)
extern "C" __global__ void far(u32 *out, const u32 *big, int many, int pitch, int rounds)
{
    u32 sum = 0;
    #pragma unroll 1
    for (int round = 0; round < rounds; round++)
    {
        #pragma unroll 1
        for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < many; k += gridDim.x * blockDim.x)
            sum += ((volatile const u32 *)big)[k * pitch];
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// Whole lines stored, so many bytes / 16.
// cutrace: fill<<<512, 256>>>(big, 262144)
// cutrace: fill<<<512, 256>>>(big, 1048576)
// cutrace: fill<<<512, 256>>>(big, 1572864)
// cutrace: fill<<<512, 256>>>(big, 2097152)
// cutrace: fill<<<512, 256>>>(big, 4194304)
extern "C" __global__ void fill(uint4 *big, int many)
{
    #pragma unroll 1
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < many; k += gridDim.x * blockDim.x)
        big[k] = make_uint4(k, k, k, k);
}
// A sector of each line, and a word of each line.
// cutrace: fill_sectors<<<512, 256>>>(big, 262144)
// cutrace: fill_sectors<<<512, 256>>>(big, 1048576)
// cutrace: fill_sectors<<<512, 256>>>(big, 2097152)
extern "C" __global__ void fill_sectors(uint4 *big, int many)
{
    #pragma unroll 1
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < many; k += gridDim.x * blockDim.x)
        big[(k >> 1) * 8 + (k & 1)] = make_uint4(k, k, k, k);
}
// cutrace: fill_words<<<512, 256>>>(big, 262144)
// cutrace: fill_words<<<512, 256>>>(big, 1048576)
extern "C" __global__ void fill_words(u32 *big, int many)
{
    #pragma unroll 1
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < many; k += gridDim.x * blockDim.x)
        big[k * 32] = k;
}
// Stored in part, then read.
// cutrace: part_then_whole<<<128, 256>>>(big)
extern "C" __global__ void part_then_whole(u32 *big)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    ((volatile u32 *)big)[i * 32] = i;
    __threadfence();
    asm volatile("bar.sync 0;" ::: "memory");
    u32 got;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(got) : "l"(big + i * 32 + 1));
    if (got == 77) ((volatile u32 *)big)[i * 32 + 2] = got;
}
// cutrace: add_far<<<512, 256>>>(big, 131072)
extern "C" __global__ void add_far(u32 *big, int many)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < many) atomicAdd(big + i * 32, 1);
}
