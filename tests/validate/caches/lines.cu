// What L1 keeps: rows a power of two apart, more lines than fit, stores and loads of one line.

typedef unsigned int u32;
#define BARRIER asm volatile("bar.sync 0;" ::: "memory")

// A row a thread: load again and again from `blockDim` lines, `pitch` words apart.
// cutrace: load_rows<<<1, 32>>>(out:u32[1048576], in:u32[1048576]=arange, 32, 16)
// cutrace: load_rows<<<1, 32>>>(out, in, 64, 16)
// cutrace: load_rows<<<1, 32>>>(out, in, 128, 16)
// cutrace: load_rows<<<1, 32>>>(out, in, 256, 16)
// cutrace: load_rows<<<1, 32>>>(out, in, 512, 16)
// cutrace: load_rows<<<1, 32>>>(out, in, 1024, 16)
// cutrace: load_rows<<<1, 32>>>(out, in, 4096, 16)
// cutrace: load_rows<<<1, 32>>>(out, in, 16384, 16)
// cutrace: load_rows<<<1, 256>>>(out, in, 33, 16)
// cutrace: load_rows<<<1, 256>>>(out, in, 64, 16)
// cutrace: load_rows<<<1, 256>>>(out, in, 128, 16)
// cutrace: load_rows<<<1, 256>>>(out, in, 256, 16)
// cutrace: load_rows<<<1, 256>>>(out, in, 512, 16)
// cutrace: load_rows<<<1, 256>>>(out, in, 1024, 16)
// cutrace: load_rows<<<1, 256>>>(out, in, 4096, 16)
// cutrace: load_rows<<<1, 1024>>>(out, in, 32, 16)
// cutrace: load_rows<<<1, 1024>>>(out, in, 48, 16)
// cutrace: load_rows<<<1, 1024>>>(out, in, 64, 16)
// cutrace: load_rows<<<1, 1024>>>(out, in, 128, 16)
// cutrace: load_rows<<<1, 1024>>>(out, in, 256, 16)
// cutrace: load_rows<<<1, 1024>>>(out, in, 1024, 16)
extern "C" __global__ void load_rows(u32 *out, const u32 *in, int pitch, int words)
{
    u32 sum = 0;
    #pragma unroll 1
    for (int k = 0; k < words; k++) { sum += ((volatile const u32 *)in)[threadIdx.x * pitch + k]; BARRIER; }
    out[threadIdx.x] = sum;
}
// cutrace: store_rows<<<1, 32>>>(out, 32, 16)
// cutrace: store_rows<<<1, 32>>>(out, 40, 16)
// cutrace: store_rows<<<1, 32>>>(out, 64, 16)
// cutrace: store_rows<<<1, 32>>>(out, 128, 16)
// cutrace: store_rows<<<1, 32>>>(out, 1024, 16)
// cutrace: store_rows<<<1, 32>>>(out, 4096, 16)
// cutrace: store_rows<<<1, 256>>>(out, 33, 16)
// cutrace: store_rows<<<1, 256>>>(out, 64, 16)
// cutrace: store_rows<<<1, 256>>>(out, 128, 16)
// cutrace: store_rows<<<1, 256>>>(out, 1024, 16)
// cutrace: store_rows<<<1, 1024>>>(out, 32, 16)
// cutrace: store_rows<<<1, 1024>>>(out, 33, 16)
// cutrace: store_rows<<<1, 1024>>>(out, 128, 16)
extern "C" __global__ void store_rows(u32 *out, int pitch, int words)
{
    #pragma unroll 1
    for (int k = 0; k < words; k++) { ((volatile u32 *)out)[threadIdx.x * pitch + k] = k; BARRIER; }
}
// The same without barriers.
// cutrace: store_rows_free<<<1, 32>>>(out, 32, 16)
// cutrace: store_rows_free<<<1, 32>>>(out, 64, 16)
// cutrace: store_rows_free<<<1, 256>>>(out, 33, 16)
// cutrace: store_rows_free<<<1, 256>>>(out, 64, 16)
// cutrace: store_rows_free<<<64, 256>>>(out, 16, 16)
extern "C" __global__ void store_rows_free(u32 *out, int pitch, int words)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    #pragma unroll 1
    for (int k = 0; k < words; k++) ((volatile u32 *)out)[i * pitch + k] = k;
}
// A column a warp: neighbouring warps store to neighbouring words of the same lines.
// cutrace: store_columns<<<1, (32, 32)>>>(out, 33)
// cutrace: store_columns<<<1, (32, 32)>>>(out, 40)
// cutrace: store_columns<<<1, (32, 32)>>>(out, 48)
// cutrace: store_columns<<<1, (32, 32)>>>(out, 64)
// cutrace: store_columns<<<1, (32, 32)>>>(out, 96)
// cutrace: store_columns<<<1, (32, 32)>>>(out, 128)
// cutrace: store_columns<<<1, (32, 32)>>>(out, 1024)
// cutrace: store_columns<<<1, (32, 16)>>>(out, 64)
// cutrace: store_columns<<<1, (32, 8)>>>(out, 64)
// cutrace: store_columns<<<1, (32, 8)>>>(out, 1024)
// cutrace: store_columns<<<1, (32, 4)>>>(out, 64)
// cutrace: store_columns<<<1, (16, 16)>>>(out, 64)
// cutrace: store_columns<<<1, (16, 64)>>>(out, 64)
// cutrace: store_columns<<<1, (8, 64)>>>(out, 64)
// cutrace: store_columns<<<1, (8, 128)>>>(out, 128)
extern "C" __global__ void store_columns(u32 *out, int pitch)
{
    out[threadIdx.x * pitch + threadIdx.y] = threadIdx.x;
}
// cutrace: load_columns<<<1, (32, 32)>>>(out, in, 64)
// cutrace: load_columns<<<1, (32, 32)>>>(out, in, 1024)
// cutrace: load_columns<<<1, (32, 8)>>>(out, in, 64)
extern "C" __global__ void load_columns(u32 *out, const u32 *in, int pitch)
{
    out[threadIdx.y * 32 + threadIdx.x] = in[threadIdx.x * pitch + threadIdx.y];
}
// So many lines, `pitch` words apart, read in rounds.
// cutrace: rounds<<<1, 256>>>(out, in, 1536, 32, 2)
// cutrace: rounds<<<1, 256>>>(out, in, 1664, 32, 2)
// cutrace: rounds<<<1, 256>>>(out, in, 1728, 32, 2)
// cutrace: rounds<<<1, 256>>>(out, in, 1856, 32, 2)
// cutrace: rounds<<<1, 256>>>(out, in, 1920, 32, 2)
// cutrace: rounds<<<1, 256>>>(out, in, 2304, 32, 2)
// cutrace: rounds<<<1, 256>>>(out, in, 2560, 32, 2)
// cutrace: rounds<<<1, 256>>>(out, in, 3072, 32, 2)
// cutrace: rounds<<<1, 256>>>(out, in, 1664, 32, 6)
// cutrace: rounds<<<1, 256>>>(out, in, 1792, 32, 6)
// cutrace: rounds<<<1, 256>>>(out, in, 1920, 32, 6)
// cutrace: rounds<<<1, 256>>>(out, in, 2048, 32, 6)
// cutrace: rounds<<<1, 256>>>(out, in, 2560, 32, 6)
// cutrace: rounds<<<1, 256>>>(out, in, 4096, 32, 6)
// cutrace: rounds<<<1, 256>>>(out, in, 512, 64, 3)
// cutrace: rounds<<<1, 256>>>(out, in, 1024, 64, 3)
// cutrace: rounds<<<1, 256>>>(out, in, 1536, 64, 3)
// cutrace: rounds<<<1, 256>>>(out, in, 1792, 64, 3)
// cutrace: rounds<<<1, 256>>>(out, in, 256, 256, 3)
// cutrace: rounds<<<1, 256>>>(out, in, 512, 256, 3)
// cutrace: rounds<<<1, 256>>>(out, in, 1024, 256, 3)
// cutrace: rounds<<<1, 256>>>(out, in, 1536, 256, 3)
// cutrace: rounds<<<1, 256>>>(out, in, 256, 1024, 3)
// cutrace: rounds<<<1, 256>>>(out, in, 1024, 1024, 3)
// cutrace: rounds<<<1, 1024>>>(out, in, 1024, 32, 3)
// cutrace: rounds<<<1, 1024>>>(out, in, 2048, 32, 3)
// cutrace: rounds<<<1, 1024>>>(out, in, 3072, 32, 3)
extern "C" __global__ void rounds(u32 *out, const u32 *in, int lines, int pitch, int many)
{
    u32 sum = 0;
    #pragma unroll 1
    for (int round = 0; round < many; round++)
    {
        #pragma unroll 1
        for (int k = threadIdx.x; k < lines; k += blockDim.x)
        {
            sum += ((volatile const u32 *)in)[k * pitch];
            BARRIER;
        }
    }
    out[threadIdx.x] = sum;
}
// Shared memory beside L1: the same lines with less room.
// cutrace: beside_shared<<<1, 256>>>(out, in, 512)
// cutrace: beside_shared<<<1, 256>>>(out, in, 640)
// cutrace: beside_shared<<<1, 256>>>(out, in, 768)
// cutrace: beside_shared<<<1, 256>>>(out, in, 896)
// cutrace: beside_shared<<<1, 256>>>(out, in, 1024)
// cutrace: beside_shared<<<1, 256>>>(out, in, 1280)
extern "C" __global__ void beside_shared(u32 *out, const u32 *in, int lines)
{
    __shared__ u32 tile[11264];
    u32 sum = 0;
    tile[threadIdx.x] = 0;
    #pragma unroll 1
    for (int round = 0; round < 3; round++)
    {
        #pragma unroll 1
        for (int k = threadIdx.x; k < lines; k += 256)
        {
            sum += ((volatile const u32 *)in)[k * 32];
            BARRIER;
        }
    }
    tile[threadIdx.x * 44] = sum;
    BARRIER;
    out[threadIdx.x] = tile[(threadIdx.x ^ 1) * 44];
}
// A structure of four words, a field at a time.
// cutrace: store_fields<<<64, 256>>>(out)
extern "C" __global__ void store_fields(u32 *out)
{
    volatile u32 *own = out + 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    own[0] = 1; own[1] = 2; own[2] = 3; own[3] = 4;
}
// cutrace: store_halves<<<64, 256>>>(out)
extern "C" __global__ void store_halves(u32 *out)
{
    volatile u32 *own = out + 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    own[0] = 1; own[1] = 2;
}
// cutrace: load_fields<<<64, 256>>>(out, in)
extern "C" __global__ void load_fields(u32 *out, const u32 *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    volatile const u32 *own = (volatile const u32 *)in + 4 * i;
    out[i] = own[0] + own[1] + own[2] + own[3];
}
// cutrace: add_to<<<64, 256>>>(out, in)
extern "C" __global__ void add_to(u32 *out, const u32 *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] += in[i];
}
// cutrace: shift<<<256, 256>>>(out, in, 1)
// cutrace: shift<<<256, 256>>>(out, in, 5)
// cutrace: shift<<<256, 256>>>(out, in, 8)
// cutrace: shift<<<256, 256>>>(out, in, 13)
// cutrace: shift<<<256, 256>>>(out, in, 24)
extern "C" __global__ void shift(u32 *out, const u32 *in, int offset)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i + offset] = in[i];
}
// cutrace: scatter_bytes<<<64, 256>>>(bytes:u8[65536], index:i32[16384]=random:4)
extern "C" __global__ void scatter_bytes(unsigned char *out, const int *index)
{
    out[index[blockIdx.x * blockDim.x + threadIdx.x]] = 1;
}
// cutrace: constants<<<64, 256>>>(out, 1)
// cutrace: constants<<<64, 256>>>(out, 16)
// cutrace: constants<<<64, 256>>>(out, 64)
__constant__ u32 table[16384];
extern "C" __global__ void constants(u32 *out, int step)
{
    u32 sum = 0;
    #pragma unroll 1
    for (int k = 0; k < 256; k++) sum += ((volatile const u32 *)table)[k * step & 16383];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
