// Which lines L1 keeps of those that are read in turn: as many as there is room for, and at strides of
// powers of two. The loads are plain ones, which a volatile pointer's are not.

typedef unsigned int u32;
#define BARRIER asm volatile("bar.sync 0;" ::: "memory")

// So many lines, `pitch` words apart, each read once a round.
// cutrace: reread<<<1, 256>>>(out:u32[1024], in:u32[8388608], 1536, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 1664, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 1728, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 1792, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 1856, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 1920, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 1952, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 1984, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 2048, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 2304, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 2560, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 3072, 32, 2)
// cutrace: reread<<<1, 256>>>(out, in, 1728, 32, 6)
// cutrace: reread<<<1, 256>>>(out, in, 1792, 32, 6)
// cutrace: reread<<<1, 256>>>(out, in, 1920, 32, 6)
// cutrace: reread<<<1, 256>>>(out, in, 2048, 32, 6)
// cutrace: reread<<<1, 256>>>(out, in, 2560, 32, 6)
// cutrace: reread<<<1, 256>>>(out, in, 128, 64, 3)
// cutrace: reread<<<1, 256>>>(out, in, 256, 64, 3)
// cutrace: reread<<<1, 256>>>(out, in, 512, 64, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1024, 64, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1536, 64, 3)
// cutrace: reread<<<1, 256>>>(out, in, 128, 96, 3)
// cutrace: reread<<<1, 256>>>(out, in, 256, 96, 3)
// cutrace: reread<<<1, 256>>>(out, in, 512, 96, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1024, 96, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1536, 96, 3)
// cutrace: reread<<<1, 256>>>(out, in, 128, 128, 3)
// cutrace: reread<<<1, 256>>>(out, in, 256, 128, 3)
// cutrace: reread<<<1, 256>>>(out, in, 512, 128, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1024, 128, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1536, 128, 3)
// cutrace: reread<<<1, 256>>>(out, in, 128, 256, 3)
// cutrace: reread<<<1, 256>>>(out, in, 256, 256, 3)
// cutrace: reread<<<1, 256>>>(out, in, 512, 256, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1024, 256, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1536, 256, 3)
// cutrace: reread<<<1, 256>>>(out, in, 128, 512, 3)
// cutrace: reread<<<1, 256>>>(out, in, 256, 512, 3)
// cutrace: reread<<<1, 256>>>(out, in, 512, 512, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1024, 512, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1536, 512, 3)
// cutrace: reread<<<1, 256>>>(out, in, 128, 1024, 3)
// cutrace: reread<<<1, 256>>>(out, in, 256, 1024, 3)
// cutrace: reread<<<1, 256>>>(out, in, 512, 1024, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1024, 1024, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1536, 1024, 3)
// cutrace: reread<<<1, 256>>>(out, in, 128, 2048, 3)
// cutrace: reread<<<1, 256>>>(out, in, 256, 2048, 3)
// cutrace: reread<<<1, 256>>>(out, in, 512, 2048, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1024, 2048, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1536, 2048, 3)
// cutrace: reread<<<1, 256>>>(out, in, 128, 4096, 3)
// cutrace: reread<<<1, 256>>>(out, in, 256, 4096, 3)
// cutrace: reread<<<1, 256>>>(out, in, 512, 4096, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1024, 4096, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1536, 4096, 3)
// cutrace: reread<<<1, 256>>>(out, in, 128, 8192, 3)
// cutrace: reread<<<1, 256>>>(out, in, 256, 8192, 3)
// cutrace: reread<<<1, 256>>>(out, in, 512, 8192, 3)
// cutrace: reread<<<1, 256>>>(out, in, 1024, 8192, 3)
// cutrace: reread<<<1, 256>>>(out, in, 128, 16384, 3)
// cutrace: reread<<<1, 256>>>(out, in, 256, 16384, 3)
// cutrace: reread<<<1, 256>>>(out, in, 512, 16384, 3)
// cutrace: reread<<<1, 256>>>(out, in, 8, 2048, 4)
// cutrace: reread<<<1, 256>>>(out, in, 8, 16384, 4)
// cutrace: reread<<<1, 256>>>(out, in, 8, 65536, 4)
// cutrace: reread<<<1, 256>>>(out, in, 8, 131072, 4)
// cutrace: reread<<<1, 256>>>(out, in, 16, 2048, 4)
// cutrace: reread<<<1, 256>>>(out, in, 16, 16384, 4)
// cutrace: reread<<<1, 256>>>(out, in, 16, 65536, 4)
// cutrace: reread<<<1, 256>>>(out, in, 16, 131072, 4)
// cutrace: reread<<<1, 256>>>(out, in, 24, 2048, 4)
// cutrace: reread<<<1, 256>>>(out, in, 24, 16384, 4)
// cutrace: reread<<<1, 256>>>(out, in, 24, 65536, 4)
// cutrace: reread<<<1, 256>>>(out, in, 24, 131072, 4)
// cutrace: reread<<<1, 256>>>(out, in, 32, 2048, 4)
// cutrace: reread<<<1, 256>>>(out, in, 32, 16384, 4)
// cutrace: reread<<<1, 256>>>(out, in, 32, 65536, 4)
// cutrace: reread<<<1, 256>>>(out, in, 32, 131072, 4)
// cutrace: reread<<<1, 256>>>(out, in, 64, 2048, 4)
// cutrace: reread<<<1, 256>>>(out, in, 64, 16384, 4)
// cutrace: reread<<<1, 256>>>(out, in, 64, 65536, 4)
// cutrace: reread<<<1, 256>>>(out, in, 64, 131072, 4)
extern "C" __global__ void reread(u32 *out, const u32 *in, int lines, int pitch, int many)
{
    u32 sum = 0;
    #pragma unroll 1
    for (int round = 0; round < many; round++)
    {
        #pragma unroll 1
        for (int k = threadIdx.x; k < lines; k += blockDim.x)
        {
            u32 found;
            asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(found) : "l"(in + k * pitch) : "memory");
            sum += found;
        }
        BARRIER;
    }
    out[threadIdx.x] = sum;
}
// The same with room for fewer: shared memory takes it.
// cutrace: reread_beside<<<1, 256>>>(out, in, 64, 32, 3)
// cutrace: reread_beside<<<1, 256>>>(out, in, 96, 32, 3)
// cutrace: reread_beside<<<1, 256>>>(out, in, 112, 32, 3)
// cutrace: reread_beside<<<1, 256>>>(out, in, 128, 32, 3)
// cutrace: reread_beside<<<1, 256>>>(out, in, 160, 32, 3)
// cutrace: reread_beside<<<1, 256>>>(out, in, 192, 32, 3)
// cutrace: reread_beside<<<1, 256>>>(out, in, 256, 32, 3)
// cutrace: reread_beside<<<1, 256>>>(out, in, 384, 32, 3)
// cutrace: reread_beside<<<1, 256>>>(out, in, 96, 64, 3)
// cutrace: reread_beside<<<1, 256>>>(out, in, 96, 256, 3)
// cutrace: reread_beside<<<1, 256>>>(out, in, 96, 1024, 3)
// cutrace: reread_beside<<<1, 256>>>(out, in, 96, 4096, 3)
extern "C" __global__ void reread_beside(u32 *out, const u32 *in, int lines, int pitch, int many)
{
    __shared__ u32 tile[11264];
    u32 sum = 0;
    tile[threadIdx.x] = 0;
    #pragma unroll 1
    for (int round = 0; round < many; round++)
    {
        #pragma unroll 1
        for (int k = threadIdx.x; k < lines; k += blockDim.x)
        {
            u32 found;
            asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(found) : "l"(in + k * pitch) : "memory");
            sum += found;
        }
        BARRIER;
    }
    tile[threadIdx.x * 44] = sum;
    BARRIER;
    out[threadIdx.x] = tile[(threadIdx.x ^ 1) * 44];
}
