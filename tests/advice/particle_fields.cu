// Move particles. Bad: an array of structures, of which each load takes one field. Good: an array
// for each field.
// expect: uncoalesced on 8800gtx gtx580 h200
// cutrace: badParticles<<<8, 128>>>(particles:f32[8192]=arange, 0.5f)
// cutrace: goodParticles<<<8, 128>>>(x:f32[1024]=arange, vx:f32[1024]=arange, 0.5f)

struct Particle { float x, y, z, mass, vx, vy, vz, charge; };

__global__ void badParticles(Particle *particles, float step)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    particles[i].x += step * particles[i].vx;
}

__global__ void goodParticles(float *x, const float *vx, float step)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] += step * vx[i];
}
