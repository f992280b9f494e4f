// Kernels that call what the driver links to them: printf, assert, malloc and free.

// cutrace: print_one<<<2, 64>>>(p:f32[4096])
extern "C" __global__ void print_one(float *p)
{
    if (p[threadIdx.x] > 1.0f) printf("%d\n", threadIdx.x);
}

// cutrace: print_nothing<<<2, 64>>>(p)
extern "C" __global__ void print_nothing(float *p)
{
    if (p[0] > 1.0f) printf("more than one\n");
}

// cutrace: print_between<<<2, 64>>>(p)
extern "C" __global__ void print_between(float *p)
{
    float v[24];
    for (int j = 0; j < 24; j++) v[j] = p[threadIdx.x + 64 * j];
    if (v[0] > 1.0f) printf("%f\n", v[0]);
    for (int j = 0; j < 24; j++) p[threadIdx.x + 64 * j] = v[j] + v[23 - j];
}

// cutrace: print_between_many<<<2, 64>>>(p)
extern "C" __global__ void print_between_many(float *p)
{
    float v[48];
    for (int j = 0; j < 48; j++) v[j] = p[threadIdx.x + 64 * j];
    if (v[0] > 1.0f) printf("%f\n", v[0]);
    for (int j = 0; j < 48; j++) p[threadIdx.x + 64 * j] = v[j] + v[47 - j];
}

// cutrace: assert_one<<<2, 64>>>(p)
extern "C" __global__ void assert_one(float *p)
{
    assert(p[threadIdx.x] < 1.0f);
    p[threadIdx.x] += 1.0f;
}

// cutrace: take_memory<<<2, 64>>>(p)
extern "C" __global__ void take_memory(float *p)
{
    if (p[threadIdx.x] > 4.0f) {
        float *q = (float *)malloc(256);
        q[threadIdx.x & 7] = p[0];
        p[threadIdx.x + 64] = q[threadIdx.x * 5 & 7];
        free(q);
    }
}

__noinline__ __device__ float told(float x)
{
    if (x > 1.0f) printf("%f\n", x);
    return x * 3.0f;
}

// cutrace: print_in_function<<<2, 64>>>(p)
extern "C" __global__ void print_in_function(float *p)
{
    p[threadIdx.x] = told(p[threadIdx.x]) + p[threadIdx.x + 64];
}

// cutrace: print_under_bounds<<<2, 64>>>(p)
extern "C" __global__ __launch_bounds__(1024, 2) void print_under_bounds(float *p)
{
    if (p[threadIdx.x] > 1.0f) printf("%d\n", threadIdx.x);
}
