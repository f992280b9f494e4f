// Read columns of a tile of doubles. Bad: 16 doubles a row. Good: 17.
// expect: bank_conflicts on 8800gtx gtx580 h200
// cutrace: badTile<<<4, (16, 16)>>>(out:f64[1024], in:f64[1024]=arange)
// cutrace: goodTile<<<4, (16, 16)>>>(out, in)

template <int ROW>
__device__ void turn(double *out, const double *in)
{
    __shared__ double tile[16][ROW];
    int first = blockIdx.x * 256;
    tile[threadIdx.y][threadIdx.x] = in[first + threadIdx.y * 16 + threadIdx.x];
    __syncthreads();
    out[first + threadIdx.y * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void badTile(double *out, const double *in) { turn<16>(out, in); }

__global__ void goodTile(double *out, const double *in) { turn<17>(out, in); }
