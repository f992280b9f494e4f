/* cuRAND's host interface: numbers of a generator of our own, the same for the same seed and offset.

   Number `index` of a seed is a mix of both (splitmix64), so an offset costs nothing and each call
   goes on where the last one ended. Quasi-random numbers are Halton's: dimension d counts in the
   d-th prime. No number is that which cuRAND has: its distributions are the same, its bits are not. */

#include <math.h>

#include "library.h"

#if __has_include(<curand.h>) /* else all names are refused */
#include <curand.h>

#define PI 3.14159265358979323846

struct curandGenerator_st {
    curandRngType_t type;
    uint64_t seed, next;
    unsigned dimensions;
    cudaStream_t stream;
    int is_host;
};

enum form { WORDS, LONGS, UNIFORM, UNIFORM_D, NORMAL, NORMAL_D, LOG_NORMAL, LOG_NORMAL_D, POISSON };

static uint64_t mix(uint64_t seed, uint64_t index)
{
    uint64_t x = seed + (index + 1) * 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return x ^ x >> 31;
}

static unsigned prime(unsigned number)
{
    for (unsigned p = 2;; p++) {
        unsigned d = 2;
        while (d * d <= p && p % d)
            d++;
        if (d * d > p && !number--)
            return p;
    }
}

/* The digits of `index` in a base, behind the point and the other way round. */
static double reversed(uint64_t index, unsigned base)
{
    double value = 0, weight = 1;
    for (; index; index /= base)
        value += (double)(index % base) * (weight /= base);
    return value;
}

/* What a run of `n` numbers draws from. */
struct source {
    uint64_t seed, first, each; /* `each` dimension has so many, one after the other; 0: no quasi */
};

static double uniform(const struct source *source, uint64_t k)
{
    if (source->each)
        return reversed(source->first + k % source->each + 1, prime(k / source->each));
    return ((mix(source->seed, source->first + k) >> 11) + 0.5) * 0x1p-53;
}

static uint64_t word(const struct source *source, uint64_t k)
{
    if (source->each)
        return (uint64_t)(uniform(source, k) * 0x1p53) << 11;
    return mix(source->seed, source->first + k);
}

/* A normal number: two of the uniform ones make two (Box and Muller); a quasi one keeps its order. */
static double normal(const struct source *source, uint64_t k)
{
    uint64_t pair = k & ~1ull;
    if (source->each) { /* by the inverse of the distribution, halved step by step */
        double wanted = uniform(source, k), low = -9, high = 9;
        for (int step = 0; step < 60; step++) {
            double middle = (low + high) / 2;
            if (0.5 * erfc(-middle / sqrt(2)) < wanted)
                low = middle;
            else
                high = middle;
        }
        return low;
    }
    double radius = sqrt(-2 * log(uniform(source, pair))), angle = 2 * PI * uniform(source, pair + 1);
    return radius * (k & 1 ? sin(angle) : cos(angle));
}

static unsigned poisson(const struct source *source, uint64_t k, double mean)
{
    if (mean > 500) {
        double value = floor(mean + sqrt(mean) * normal(source, k) + 0.5);
        return value < 0 ? 0 : (unsigned)value;
    }
    double left = uniform(source, k), chance = exp(-mean);
    unsigned count = 0;
    for (; left > chance && count < 4 * mean + 64; chance *= mean / ++count)
        left -= chance;
    return count;
}

static void draw(const struct call *call)
{
    struct source source = {call->size[1], call->size[2], call->size[3]};
    double mean, deviation;
    memcpy(&mean, scalar_of(call, 0), sizeof mean);
    memcpy(&deviation, scalar_of(call, 1), sizeof deviation);
    for (int64_t k = 0; k < call->size[0]; k++) {
        void *out = call->array[0];
        switch ((enum form)call->option[0]) {
        case WORDS: ((uint32_t *)out)[k] = word(&source, k) >> 32; break;
        case LONGS: ((uint64_t *)out)[k] = word(&source, k); break;
        case UNIFORM: { /* (0, 1]: what rounds to 0 is the least of floats that occur */
            float value = (float)uniform(&source, k);
            ((float *)out)[k] = value > 0 ? value : 0x1p-32f;
            break;
        }
        case UNIFORM_D: ((double *)out)[k] = uniform(&source, k); break;
        case NORMAL: ((float *)out)[k] = (float)(mean + deviation * normal(&source, k)); break;
        case NORMAL_D: ((double *)out)[k] = mean + deviation * normal(&source, k); break;
        case LOG_NORMAL: ((float *)out)[k] = expf((float)(mean + deviation * normal(&source, k))); break;
        case LOG_NORMAL_D: ((double *)out)[k] = exp(mean + deviation * normal(&source, k)); break;
        case POISSON: ((uint32_t *)out)[k] = poisson(&source, k, mean); break;
        }
    }
}

static curandStatus_t generate(const char *name, curandGenerator_t generator, enum form form, void *out,
                               size_t n, double mean, double deviation)
{
    if (!generator)
        return CURAND_STATUS_NOT_INITIALIZED;
    uint64_t each = generator->type >= CURAND_RNG_QUASI_DEFAULT ? n / generator->dimensions : 0;
    if ((form == NORMAL || form == NORMAL_D || form == LOG_NORMAL || form == LOG_NORMAL_D)
        && !each && n % 2)
        return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
    if (generator->type >= CURAND_RNG_QUASI_DEFAULT && n % generator->dimensions)
        return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
    struct call call = {.name = name, .run = draw, .array = {out}, .written = out,
                        .size = {n, generator->seed, generator->next, each}, .option = {form}};
    hold_scalar(&call, 0, &mean, sizeof mean, 1);
    hold_scalar(&call, 1, &deviation, sizeof deviation, 1);
    generator->next += each ? each : n;
    return submit_call(generator->stream, &call) ? CURAND_STATUS_LAUNCH_FAILURE
                                                 : CURAND_STATUS_SUCCESS;
}

#define GENERATE(name, form, T) \
    API curandStatus_t name(curandGenerator_t generator, T *out, size_t n) \
    { \
        return generate(#name, generator, form, out, n, 0, 0); \
    }
#define SPREAD(name, form, T) \
    API curandStatus_t name(curandGenerator_t generator, T *out, size_t n, T mean, T deviation) \
    { \
        return generate(#name, generator, form, out, n, mean, deviation); \
    }
GENERATE(curandGenerate, WORDS, unsigned)
GENERATE(curandGenerateLongLong, LONGS, unsigned long long)
GENERATE(curandGenerateUniform, UNIFORM, float)
GENERATE(curandGenerateUniformDouble, UNIFORM_D, double)
SPREAD(curandGenerateNormal, NORMAL, float)
SPREAD(curandGenerateNormalDouble, NORMAL_D, double)
SPREAD(curandGenerateLogNormal, LOG_NORMAL, float)
SPREAD(curandGenerateLogNormalDouble, LOG_NORMAL_D, double)

static curandStatus_t create(curandGenerator_t *generator, curandRngType_t type, int is_host)
{
    *generator = calloc(1, sizeof **generator);
    (*generator)->type = type, (*generator)->is_host = is_host, (*generator)->dimensions = 1;
    return begin() ? CURAND_STATUS_INITIALIZATION_FAILED : CURAND_STATUS_SUCCESS;
}

#define SETTING(name, T, ...) \
    API curandStatus_t name(curandGenerator_t generator, T value) \
    { \
        if (!generator) \
            return CURAND_STATUS_NOT_INITIALIZED; \
        __VA_ARGS__; \
        return CURAND_STATUS_SUCCESS; \
    }
SETTING(curandSetStream, cudaStream_t, generator->stream = value)
SETTING(curandSetPseudoRandomGeneratorSeed, unsigned long long,
        generator->seed = value, generator->next = 0)
SETTING(curandSetGeneratorOffset, unsigned long long, generator->next = value)
SETTING(curandSetGeneratorOrdering, curandOrdering_t, (void)value)
SETTING(curandSetQuasiRandomGeneratorDimensions, unsigned,
        if (!value || value > 20000) return CURAND_STATUS_OUT_OF_RANGE;
        generator->dimensions = value)

#include "forwards_libraries_curand.h"
#endif
