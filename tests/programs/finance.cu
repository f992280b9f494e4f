// Options: Black and Scholes' formula with the error function and with a polynomial, and American
// puts on a binomial tree in shared memory.

__device__ float normal_polynomial(float d)
{
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float sum = k * (0.31938153f + k * (-0.356563782f
        + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
    float tail = 0.39894228f * expf(-0.5f * d * d) * sum;
    return d > 0.0f ? 1.0f - tail : tail;
}

__global__ void black_scholes(float *call, float *put, const float *price, const float *strike,
                              const float *years, float rate, float volatility, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float root = sqrtf(years[i]);
        float d1 = (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i])
            / (volatility * root);
        float d2 = d1 - volatility * root;
        float n1 = normal_polynomial(d1), n2 = normal_polynomial(d2);
        float discount = strike[i] * expf(-rate * years[i]);
        call[i] = price[i] * n1 - discount * n2;
        put[i] = discount * (1.0f - n2) - price[i] * (1.0f - n1);
    }
}

__global__ void black_scholes_erf(double *call, const double *price, const double *strike,
                                  const double *years, double rate, double volatility, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double spread = volatility * sqrt(years[i]);
    double drift = rate + volatility * volatility / 2;
    double d1 = (log(price[i] / strike[i]) + drift * years[i]) / spread;
    double n1 = 0.5 * erfc(-d1 * 0.70710678118654752440);
    double n2 = 0.5 * (1.0 + erf((d1 - spread) * 0.70710678118654752440));
    call[i] = price[i] * n1 - strike[i] * exp(-rate * years[i]) * n2;
}

__global__ void american_put(double *out, const double *price, double strike, double up,
                             double discount, double chance, int steps)
{
    extern __shared__ double worth[];
    double spot = price[blockIdx.x];
    for (int k = threadIdx.x; k <= steps; k += blockDim.x)
        worth[k] = fmax(strike - spot * pow(up, 2.0 * k - steps), 0.0);
    __syncthreads();
    for (int step = steps - 1; step >= 0; --step) {
        double kept = 0.0;
        if (threadIdx.x <= step) {
            double held = discount
                * (chance * worth[threadIdx.x + 1] + (1.0 - chance) * worth[threadIdx.x]);
            kept = fmax(held, strike - spot * pow(up, 2.0 * threadIdx.x - step));
        }
        __syncthreads();
        if (threadIdx.x <= step)
            worth[threadIdx.x] = kept;
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = worth[0];
}
