// Atomic operations on global and shared memory: every kind, with lanes that collide and not.

typedef unsigned int u32;
typedef unsigned long long u64;

#define THREAD int i = blockIdx.x * blockDim.x + threadIdx.x; int lane = threadIdx.x & 31; (void)lane
#define REDUCE(NAME, T, CALL) extern "C" __global__ void NAME(T *p) { THREAD; CALL; }
#define FETCH(NAME, T, CALL) extern "C" __global__ void NAME(T *p, T *out) { THREAD; out[i] = CALL; }
#define SHARED(NAME, T, CALL)                                                                      \
    extern "C" __global__ void NAME(T *out)                                                        \
    {                                                                                              \
        __shared__ T s[1056];                                                                      \
        THREAD;                                                                                    \
        for (int k = threadIdx.x; k < 1056; k += blockDim.x) s[k] = 0;                             \
        __syncthreads();                                                                           \
        CALL;                                                                                      \
        __syncthreads();                                                                           \
        out[i] = s[threadIdx.x];                                                                   \
    }

// cutrace: red_own<<<8, 256>>>(p:u32[65536])
REDUCE(red_own, u32, atomicAdd(p + i, i))
// cutrace: red_same<<<8, 256>>>(p)
REDUCE(red_same, u32, atomicAdd(p, i))
// cutrace: red_pairs<<<8, 256>>>(p)
REDUCE(red_pairs, u32, atomicAdd(p + i / 2, i))
// cutrace: red_eights<<<8, 256>>>(p)
REDUCE(red_eights, u32, atomicAdd(p + i / 8, i))
// cutrace: red_modulo_4<<<8, 256>>>(p)
REDUCE(red_modulo_4, u32, atomicAdd(p + (i & 3), i))
// cutrace: red_stride_2<<<8, 256>>>(p)
REDUCE(red_stride_2, u32, atomicAdd(p + 2 * i, i))
// cutrace: red_stride_8<<<8, 256>>>(p)
REDUCE(red_stride_8, u32, atomicAdd(p + 8 * i, i))
// cutrace: red_stride_32<<<8, 256>>>(p)
REDUCE(red_stride_32, u32, atomicAdd(p + 32 * i, i))
// cutrace: red_offset_3<<<8, 256>>>(p)
REDUCE(red_offset_3, u32, atomicAdd(p + i + 3, i))
// cutrace: red_max<<<8, 256>>>(p)
REDUCE(red_max, u32, atomicMax(p + i / 4, i))
// cutrace: red_or<<<8, 256>>>(p)
REDUCE(red_or, u32, atomicOr(p + i, i))
// cutrace: red_odd<<<8, 256>>>(p)
REDUCE(red_odd, u32, if (i & 1) atomicAdd(p + i, i))
// cutrace: red_u64<<<8, 256>>>(p64:u64[8192])
REDUCE(red_u64, u64, atomicAdd(p + i, (u64)i))
// cutrace: red_f32<<<8, 256>>>(pf:f32[8192])
REDUCE(red_f32, float, atomicAdd(p + i, 1.0f))
// cutrace: red_f32_same<<<8, 256>>>(pf)
REDUCE(red_f32_same, float, atomicAdd(p + blockIdx.x, 1.0f))
// cutrace: red_f64<<<8, 256>>>(pd:f64[8192])
REDUCE(red_f64, double, atomicAdd(p + i, 1.0))

// cutrace: atom_own<<<8, 256>>>(p, out:u32[8192])
FETCH(atom_own, u32, atomicAdd(p + i, i))
// cutrace: atom_pairs<<<8, 256>>>(p, out)
FETCH(atom_pairs, u32, atomicAdd(p + i / 2, 1))
// cutrace: atom_modulo_4<<<8, 256>>>(p, out)
FETCH(atom_modulo_4, u32, atomicAdd(p + (i & 3), i))
// cutrace: atom_stride_8<<<8, 256>>>(p, out)
FETCH(atom_stride_8, u32, atomicAdd(p + 8 * i, i))
// cutrace: atom_exch<<<8, 256>>>(p, out)
FETCH(atom_exch, u32, atomicExch(p + i, i))
// cutrace: atom_cas<<<8, 256>>>(p, out)
FETCH(atom_cas, u32, atomicCAS(p + i, 0u, i))
// cutrace: atom_cas_same<<<8, 256>>>(p, out)
FETCH(atom_cas_same, u32, atomicCAS(p + blockIdx.x, 0u, i))
// cutrace: atom_u64<<<8, 256>>>(p64, out64:u64[8192])
FETCH(atom_u64, u64, atomicAdd(p + i, (u64)i))
// cutrace: atom_min<<<8, 256>>>(p, out)
FETCH(atom_min, u32, atomicMin(p + i / 4, i))

// cutrace: shared_own<<<4, 256>>>(s32:u32[8192])
SHARED(shared_own, u32, atomicAdd(s + threadIdx.x, i))
// cutrace: shared_same<<<4, 256>>>(s32)
SHARED(shared_same, u32, atomicAdd(s, i))
// cutrace: shared_pairs<<<4, 256>>>(s32)
SHARED(shared_pairs, u32, atomicAdd(s + threadIdx.x / 2, i))
// cutrace: shared_modulo_4<<<4, 256>>>(s32)
SHARED(shared_modulo_4, u32, atomicAdd(s + (threadIdx.x & 3), i))
// cutrace: shared_bank_2<<<4, 256>>>(s32)
SHARED(shared_bank_2, u32, atomicAdd(s + 2 * threadIdx.x, i))
// cutrace: shared_bank_8<<<4, 128>>>(s32)
SHARED(shared_bank_8, u32, atomicAdd(s + 8 * threadIdx.x, i))
// cutrace: shared_bank_32<<<4, 32>>>(s32)
SHARED(shared_bank_32, u32, atomicAdd(s + 32 * threadIdx.x, i))
// cutrace: shared_max<<<4, 256>>>(s32)
SHARED(shared_max, u32, atomicMax(s + threadIdx.x / 4, i))
// cutrace: shared_fetch<<<4, 256>>>(s32)
SHARED(shared_fetch, u32, u32 old = atomicAdd(s + threadIdx.x, i); atomicExch(s + 512 + threadIdx.x, old))
// cutrace: shared_cas<<<4, 256>>>(s32)
SHARED(shared_cas, u32, atomicCAS(s + threadIdx.x, 0u, i))
// cutrace: shared_odd<<<4, 256>>>(s32)
SHARED(shared_odd, u32, if (i & 1) atomicAdd(s + threadIdx.x, i))
