// Particles: gravity with tiles of bodies in shared memory, Lennard-Jones forces over lists of
// neighbours, and the fields that scanners sum (MRI-Q).

__global__ void gravity(float4 *accelerations, const float4 *bodies, int n, float softening)
{
    extern __shared__ float4 tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 own = bodies[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int start = 0; start < n; start += blockDim.x) {
        tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        #pragma unroll 4
        for (int j = 0; j < blockDim.x; ++j) {
            float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
            float square = dx * dx + dy * dy + dz * dz + softening;
            float inverse = rsqrtf(square);
            float pull = tile[j].w * inverse * inverse * inverse;
            ax += dx * pull;
            ay += dy * pull;
            az += dz * pull;
        }
        __syncthreads();
    }
    accelerations[i] = make_float4(ax, ay, az, 0.0f);
}

__global__ void lennard_jones(double4 *force, const double4 *position, const int *neighbours,
                              int each, int n, double cut, double c12, double c6)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double4 p = position[i], f = make_double4(0, 0, 0, 0);
    for (int k = 0; k < each; ++k) {
        double4 q = position[neighbours[k * n + i]];
        double dx = p.x - q.x, dy = p.y - q.y, dz = p.z - q.z;
        double square = dx * dx + dy * dy + dz * dz;
        if (square >= cut)
            continue;
        double inverse = 1.0 / square, sixth = inverse * inverse * inverse;
        double strength = inverse * sixth * (c12 * sixth - c6);
        f.x += dx * strength;
        f.y += dy * strength;
        f.z += dz * strength;
    }
    force[i] = f;
}

struct Sample {
    float x, y, z, magnitude;
};

__constant__ Sample samples[64];

__global__ void scanner_field(float2 *out, const float *x, const float *y, const float *z, int n,
                              int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float real = 0.0f, imaginary = 0.0f;
    for (int k = 0; k < count; ++k) {
        Sample s = samples[k];
        float angle = 6.2831853f * (s.x * x[i] + s.y * y[i] + s.z * z[i]);
        float sine, cosine;
        sincosf(angle, &sine, &cosine);
        real += s.magnitude * cosine;
        imaginary += s.magnitude * sine;
    }
    out[i] = make_float2(real, imaginary);
}
