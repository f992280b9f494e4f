// When a store finds its line in L1: how long after another, with how many lines in between, by one
// warp or by several.

typedef unsigned int u32;

// Where a lane stores: 32 lanes spread over `lines` neighbouring lines, each to a word of its own.
__device__ int place(int lines, int first)
{
    int lane = threadIdx.x % 32;
    return (first + lane * lines / 32) * 32 + lane;
}
__device__ void wait(int many)
{
    u32 x = many;
    #pragma unroll 1
    for (int k = 0; k < many; k++) asm volatile("add.u32 %0, %0, 3;" : "+r"(x));
}

// One warp: the same lines twice, after a wait.
// cutrace: twice<<<1, 32>>>(out:u32[1048576], 1, 0)
// cutrace: twice<<<1, 32>>>(out, 1, 1)
// cutrace: twice<<<1, 32>>>(out, 1, 2)
// cutrace: twice<<<1, 32>>>(out, 1, 4)
// cutrace: twice<<<1, 32>>>(out, 1, 8)
// cutrace: twice<<<1, 32>>>(out, 1, 16)
// cutrace: twice<<<1, 32>>>(out, 1, 32)
// cutrace: twice<<<1, 32>>>(out, 1, 64)
// cutrace: twice<<<1, 32>>>(out, 1, 256)
// cutrace: twice<<<1, 32>>>(out, 2, 0)
// cutrace: twice<<<1, 32>>>(out, 2, 1)
// cutrace: twice<<<1, 32>>>(out, 2, 2)
// cutrace: twice<<<1, 32>>>(out, 2, 4)
// cutrace: twice<<<1, 32>>>(out, 2, 8)
// cutrace: twice<<<1, 32>>>(out, 2, 16)
// cutrace: twice<<<1, 32>>>(out, 2, 32)
// cutrace: twice<<<1, 32>>>(out, 2, 64)
// cutrace: twice<<<1, 32>>>(out, 2, 256)
// cutrace: twice<<<1, 32>>>(out, 4, 0)
// cutrace: twice<<<1, 32>>>(out, 4, 1)
// cutrace: twice<<<1, 32>>>(out, 4, 2)
// cutrace: twice<<<1, 32>>>(out, 4, 4)
// cutrace: twice<<<1, 32>>>(out, 4, 8)
// cutrace: twice<<<1, 32>>>(out, 4, 16)
// cutrace: twice<<<1, 32>>>(out, 4, 32)
// cutrace: twice<<<1, 32>>>(out, 4, 64)
// cutrace: twice<<<1, 32>>>(out, 4, 256)
// cutrace: twice<<<1, 32>>>(out, 8, 0)
// cutrace: twice<<<1, 32>>>(out, 8, 1)
// cutrace: twice<<<1, 32>>>(out, 8, 2)
// cutrace: twice<<<1, 32>>>(out, 8, 4)
// cutrace: twice<<<1, 32>>>(out, 8, 8)
// cutrace: twice<<<1, 32>>>(out, 8, 16)
// cutrace: twice<<<1, 32>>>(out, 8, 32)
// cutrace: twice<<<1, 32>>>(out, 8, 64)
// cutrace: twice<<<1, 32>>>(out, 8, 256)
// cutrace: twice<<<1, 32>>>(out, 16, 0)
// cutrace: twice<<<1, 32>>>(out, 16, 1)
// cutrace: twice<<<1, 32>>>(out, 16, 2)
// cutrace: twice<<<1, 32>>>(out, 16, 4)
// cutrace: twice<<<1, 32>>>(out, 16, 8)
// cutrace: twice<<<1, 32>>>(out, 16, 16)
// cutrace: twice<<<1, 32>>>(out, 16, 32)
// cutrace: twice<<<1, 32>>>(out, 16, 64)
// cutrace: twice<<<1, 32>>>(out, 16, 256)
// cutrace: twice<<<1, 32>>>(out, 32, 0)
// cutrace: twice<<<1, 32>>>(out, 32, 1)
// cutrace: twice<<<1, 32>>>(out, 32, 2)
// cutrace: twice<<<1, 32>>>(out, 32, 4)
// cutrace: twice<<<1, 32>>>(out, 32, 8)
// cutrace: twice<<<1, 32>>>(out, 32, 16)
// cutrace: twice<<<1, 32>>>(out, 32, 32)
// cutrace: twice<<<1, 32>>>(out, 32, 64)
// cutrace: twice<<<1, 32>>>(out, 32, 256)
extern "C" __global__ void twice(u32 *out, int lines, int many)
{
    volatile u32 *own = out + place(lines, 0);
    *own = 1;
    wait(many);
    *own = 2;
}
// One warp: `rounds` times through so many stores of so many lines each.
// cutrace: in_turn<<<1, 32>>>(out, 1, 2, 4)
// cutrace: in_turn<<<1, 32>>>(out, 1, 4, 4)
// cutrace: in_turn<<<1, 32>>>(out, 1, 8, 4)
// cutrace: in_turn<<<1, 32>>>(out, 1, 16, 4)
// cutrace: in_turn<<<1, 32>>>(out, 1, 64, 4)
// cutrace: in_turn<<<1, 32>>>(out, 2, 2, 4)
// cutrace: in_turn<<<1, 32>>>(out, 2, 4, 4)
// cutrace: in_turn<<<1, 32>>>(out, 2, 8, 4)
// cutrace: in_turn<<<1, 32>>>(out, 2, 16, 4)
// cutrace: in_turn<<<1, 32>>>(out, 2, 64, 4)
// cutrace: in_turn<<<1, 32>>>(out, 4, 2, 4)
// cutrace: in_turn<<<1, 32>>>(out, 4, 4, 4)
// cutrace: in_turn<<<1, 32>>>(out, 4, 8, 4)
// cutrace: in_turn<<<1, 32>>>(out, 4, 16, 4)
// cutrace: in_turn<<<1, 32>>>(out, 4, 64, 4)
// cutrace: in_turn<<<1, 32>>>(out, 8, 2, 4)
// cutrace: in_turn<<<1, 32>>>(out, 8, 4, 4)
// cutrace: in_turn<<<1, 32>>>(out, 8, 8, 4)
// cutrace: in_turn<<<1, 32>>>(out, 8, 16, 4)
// cutrace: in_turn<<<1, 32>>>(out, 8, 64, 4)
// cutrace: in_turn<<<1, 32>>>(out, 16, 2, 4)
// cutrace: in_turn<<<1, 32>>>(out, 16, 4, 4)
// cutrace: in_turn<<<1, 32>>>(out, 16, 8, 4)
// cutrace: in_turn<<<1, 32>>>(out, 16, 16, 4)
// cutrace: in_turn<<<1, 32>>>(out, 16, 64, 4)
// cutrace: in_turn<<<1, 32>>>(out, 32, 2, 4)
// cutrace: in_turn<<<1, 32>>>(out, 32, 4, 4)
// cutrace: in_turn<<<1, 32>>>(out, 32, 8, 4)
// cutrace: in_turn<<<1, 32>>>(out, 32, 16, 4)
// cutrace: in_turn<<<1, 32>>>(out, 32, 64, 4)
extern "C" __global__ void in_turn(u32 *out, int lines, int stores, int rounds)
{
    #pragma unroll 1
    for (int round = 0; round < rounds; round++)
        #pragma unroll 1
        for (int k = 0; k < stores; k++)
            ((volatile u32 *)out)[place(lines, k * lines)] = round;
}
// Four stores one right after another, by so many warps, each to lines of its own.
// cutrace: burst<<<1, 32>>>(out, 1)
// cutrace: burst<<<1, 64>>>(out, 1)
// cutrace: burst<<<1, 128>>>(out, 1)
// cutrace: burst<<<1, 256>>>(out, 1)
// cutrace: burst<<<1, 1024>>>(out, 1)
// cutrace: burst<<<1, 32>>>(out, 2)
// cutrace: burst<<<1, 64>>>(out, 2)
// cutrace: burst<<<1, 128>>>(out, 2)
// cutrace: burst<<<1, 256>>>(out, 2)
// cutrace: burst<<<1, 1024>>>(out, 2)
// cutrace: burst<<<1, 32>>>(out, 4)
// cutrace: burst<<<1, 64>>>(out, 4)
// cutrace: burst<<<1, 128>>>(out, 4)
// cutrace: burst<<<1, 256>>>(out, 4)
// cutrace: burst<<<1, 1024>>>(out, 4)
// cutrace: burst<<<1, 32>>>(out, 8)
// cutrace: burst<<<1, 64>>>(out, 8)
// cutrace: burst<<<1, 128>>>(out, 8)
// cutrace: burst<<<1, 256>>>(out, 8)
// cutrace: burst<<<1, 1024>>>(out, 8)
// cutrace: burst<<<1, 32>>>(out, 32)
// cutrace: burst<<<1, 64>>>(out, 32)
// cutrace: burst<<<1, 128>>>(out, 32)
// cutrace: burst<<<1, 256>>>(out, 32)
// cutrace: burst<<<1, 1024>>>(out, 32)
extern "C" __global__ void burst(u32 *out, int lines)
{
    volatile u32 *own = out + place(lines, threadIdx.x / 32 * lines);
    *own = 1, *own = 2, *own = 3, *own = 4;
}
// Four stores one right after another to the four sectors of a line.
// cutrace: sectors<<<1, 32>>>(out)
// cutrace: sectors<<<1, 128>>>(out)
// cutrace: sectors<<<1, 256>>>(out)
// cutrace: sectors<<<1, 1024>>>(out)
extern "C" __global__ void sectors(u32 *out)
{
    volatile u32 *own = out + 32 * threadIdx.x;
    own[0] = 1, own[8] = 2, own[16] = 3, own[24] = 4;
}
// Every warp to the same lines.
// cutrace: all_warps<<<1, 64>>>(out, 1)
// cutrace: all_warps<<<1, 128>>>(out, 1)
// cutrace: all_warps<<<1, 256>>>(out, 1)
// cutrace: all_warps<<<1, 1024>>>(out, 1)
// cutrace: all_warps<<<1, 64>>>(out, 2)
// cutrace: all_warps<<<1, 128>>>(out, 2)
// cutrace: all_warps<<<1, 256>>>(out, 2)
// cutrace: all_warps<<<1, 1024>>>(out, 2)
// cutrace: all_warps<<<1, 64>>>(out, 4)
// cutrace: all_warps<<<1, 128>>>(out, 4)
// cutrace: all_warps<<<1, 256>>>(out, 4)
// cutrace: all_warps<<<1, 1024>>>(out, 4)
// cutrace: all_warps<<<1, 64>>>(out, 8)
// cutrace: all_warps<<<1, 128>>>(out, 8)
// cutrace: all_warps<<<1, 256>>>(out, 8)
// cutrace: all_warps<<<1, 1024>>>(out, 8)
// cutrace: all_warps<<<1, 64>>>(out, 16)
// cutrace: all_warps<<<1, 128>>>(out, 16)
// cutrace: all_warps<<<1, 256>>>(out, 16)
// cutrace: all_warps<<<1, 1024>>>(out, 16)
// cutrace: all_warps<<<1, 64>>>(out, 32)
// cutrace: all_warps<<<1, 128>>>(out, 32)
// cutrace: all_warps<<<1, 256>>>(out, 32)
// cutrace: all_warps<<<1, 1024>>>(out, 32)
extern "C" __global__ void all_warps(u32 *out, int lines)
{
    out[place(lines, 0)] = threadIdx.x;
}
// A load in between, of other lines, or of the same.
// cutrace: load_between<<<1, 32>>>(out, in:u32[1048576]=arange, 1, 0)
// cutrace: load_between<<<1, 32>>>(out, in, 1, 65536)
// cutrace: load_between<<<1, 32>>>(out, in, 4, 0)
// cutrace: load_between<<<1, 32>>>(out, in, 4, 65536)
// cutrace: load_between<<<1, 32>>>(out, in, 8, 0)
// cutrace: load_between<<<1, 32>>>(out, in, 8, 65536)
// cutrace: load_between<<<1, 32>>>(out, in, 32, 0)
// cutrace: load_between<<<1, 32>>>(out, in, 32, 65536)
extern "C" __global__ void load_between(u32 *out, const u32 *in, int lines, int at)
{
    volatile u32 *own = out + place(lines, 0);
    *own = 1;
    u32 found = at ? ((volatile const u32 *)in)[place(lines, 0) + at] : own[0];
    *own = found;
}
// Many blocks of many warps, as people store: a structure a thread, a field at a time.
// cutrace: fields<<<1, 32>>>(out)
// cutrace: fields<<<1, 256>>>(out)
// cutrace: fields<<<64, 32>>>(out)
// cutrace: fields<<<64, 1024>>>(out)
// cutrace: fields<<<264, 256>>>(out)
extern "C" __global__ void fields(u32 *out)
{
    volatile u32 *own = out + 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    own[0] = 1, own[1] = 2, own[2] = 3, own[3] = 4;
}
