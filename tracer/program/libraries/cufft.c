/* cuFFT on the host: plans and transforms of any size, in double precision whatever the type. */

#include <complex.h>
#include <math.h>

#include "library.h"

#include "include/cufftXt.h"

#define MOST_PLANS 1024

/* Where the elements of one side lie: `embed` of each dimension, steps, and from one to the next. */
struct layout {
    int64_t embed[3], stride, distance;
};
struct plan {
    int is_made, is_default, rank, batch; /* default: rows side by side, where none says otherwise */
    int64_t n[3];
    cufftType type;
    struct layout in, out;
    cudaStream_t stream;
    int devices; /* given by cufftXtSetGPUs, each the only one that there is; 0: none were */
};
static struct plan *plans[MOST_PLANS];

/* ---- reading and writing: R2C leaves half of the last dimension, C2R takes half of it */

static int is_double(cufftType type)
{
    return type & 0x40;
}

static double complex read_one(const void *array, int64_t index, int is_real, int wide)
{
    if (is_real)
        return wide ? ((const double *)array)[index] : ((const float *)array)[index];
    return wide ? ((const double complex *)array)[index] : ((const float complex *)array)[index];
}

static void write_one(void *array, int64_t index, int is_real, int wide, double complex value)
{
    if (is_real && wide)
        ((double *)array)[index] = creal(value);
    else if (is_real)
        ((float *)array)[index] = (float)creal(value);
    else if (wide)
        ((double complex *)array)[index] = value;
    else
        ((float complex *)array)[index] = (float complex)value;
}

static int64_t place(const struct plan *plan, const struct layout *layout, const int64_t *at,
                     int64_t number)
{
    int64_t index = 0;
    for (int d = 0; d < plan->rank; d++)
        index = index * layout->embed[d] + at[d];
    return index * layout->stride + number * layout->distance;
}

static void coordinates(const struct plan *plan, int64_t k, int64_t *at)
{
    for (int d = plan->rank - 1; d >= 0; d--) {
        at[d] = k % plan->n[d];
        k /= plan->n[d];
    }
}

static void run_one(const struct plan *plan, const void *in, void *out, int direction,
                    int64_t number, int64_t total, double complex *data)
{
    int from_half = plan->type == CUFFT_C2R || plan->type == CUFFT_Z2D;
    int to_half = plan->type == CUFFT_R2C || plan->type == CUFFT_D2Z;
    int wide = is_double(plan->type), last = plan->rank - 1;
    int64_t at[3], half = plan->n[last] / 2;
    for (int64_t k = 0; k < total; k++) {
        coordinates(plan, k, at);
        int mirrored = from_half && at[last] > half;
        for (int d = 0; mirrored && d <= last; d++)
            at[d] = (plan->n[d] - at[d]) % plan->n[d];
        double complex value = read_one(in, place(plan, &plan->in, at, number), to_half, wide);
        data[k] = mirrored ? conj(value) : value;
    }
    int64_t stride = 1;
    for (int d = last; d >= 0; d--) {
        transform_rows(data, total, plan->n[d], stride, direction);
        stride *= plan->n[d];
    }
    for (int64_t k = 0; k < total; k++) {
        coordinates(plan, k, at);
        if (!to_half || at[last] <= half)
            write_one(out, place(plan, &plan->out, at, number), from_half, wide, data[k]);
    }
}

/* In place, rows of reals lie as far apart as those of the halves: (n / 2 + 1) pairs. */
static struct plan padded(struct plan plan)
{
    int to_half = plan.type == CUFFT_R2C || plan.type == CUFFT_D2Z, last = plan.rank - 1;
    struct layout *real = to_half ? &plan.in : &plan.out;
    if (!plan.is_default || plan.type == CUFFT_C2C || plan.type == CUFFT_Z2Z)
        return plan;
    real->embed[last] = 2 * (plan.n[last] / 2 + 1);
    real->distance = real->embed[0] * real->embed[1] * real->embed[2];
    return plan;
}

static void run_plan(const struct call *call)
{
    const struct plan *given = call->array[2];
    struct plan own = call->array[0] == call->array[1] ? padded(*given) : *given, *plan = &own;
    int64_t total = plan->n[0] * plan->n[1] * plan->n[2];
    double complex *data = malloc(sizeof *data * total);
    for (int64_t number = 0; data && number < plan->batch; number++)
        run_one(plan, call->array[0], call->array[1], call->option[0], number, total, data);
    free(data);
}

/* ---- plans */

/* Bytes of the elements that a plan of complex numbers has on a side. */
static size_t bytes_of_plan(const struct plan *plan)
{
    size_t in = plan->in.distance, out = plan->out.distance;
    return (in > out ? in : out) * plan->batch * (is_double(plan->type) ? 16 : 8);
}

static struct plan *plan_of(cufftHandle handle)
{
    return handle > 0 && handle < MOST_PLANS ? plans[handle] : NULL;
}

API cufftResult cufftCreate(cufftHandle *handle)
{
    for (int k = 1; k < MOST_PLANS; k++)
        if (!plans[k]) {
            plans[k] = calloc(1, sizeof *plans[k]);
            *handle = k;
            return begin() ? CUFFT_SETUP_FAILED : CUFFT_SUCCESS;
        }
    return CUFFT_ALLOC_FAILED;
}

/* One side's layout: as given, or side by side with the last dimension halved where it is so. */
static struct layout layout_of(const struct plan *plan, const int *embed, int stride, int distance,
                               int halved)
{
    struct layout layout = {{1, 1, 1}, 1, 1};
    for (int d = 0; d < plan->rank; d++) {
        layout.embed[d] = embed ? embed[d] : plan->n[d];
        if (!embed && d == plan->rank - 1 && halved)
            layout.embed[d] = plan->n[d] / 2 + 1;
        layout.distance *= layout.embed[d];
    }
    if (embed) {
        layout.stride = stride;
        layout.distance = distance;
    }
    return layout;
}

API cufftResult cufftMakePlanMany(cufftHandle handle, int rank, int *n, int *inembed, int istride,
                                  int idist, int *onembed, int ostride, int odist, cufftType type,
                                  int batch, size_t *work)
{
    struct plan *plan = plan_of(handle);
    if (!plan)
        return CUFFT_INVALID_PLAN;
    if (rank < 1 || rank > 3 || batch < 1)
        return CUFFT_INVALID_SIZE;
    plan->rank = rank, plan->batch = batch, plan->type = type;
    for (int d = 0; d < 3; d++)
        plan->n[d] = d < rank ? n[d] : 1;
    for (int d = 0; d < rank; d++)
        if (n[d] < 1)
            return CUFFT_INVALID_SIZE;
    plan->in = layout_of(plan, inembed, istride, idist, type == CUFFT_C2R || type == CUFFT_Z2D);
    plan->out = layout_of(plan, onembed, ostride, odist, type == CUFFT_R2C || type == CUFFT_D2Z);
    plan->is_made = 1, plan->is_default = !inembed && !onembed;
    if (work)
        *work = 0;
    return CUFFT_SUCCESS;
}

static int *narrow(const long long *sizes, int rank, int *room)
{
    for (int d = 0; sizes && d < rank && d < 3; d++)
        room[d] = (int)sizes[d];
    return sizes ? room : NULL;
}

/* The type of plan for elements of these types; 0 for others. */
static cufftType type_of(cudaDataType in, cudaDataType out)
{
    if (in == CUDA_C_32F)
        return out == CUDA_C_32F ? CUFFT_C2C : out == CUDA_R_32F ? CUFFT_C2R : 0;
    if (in == CUDA_C_64F)
        return out == CUDA_C_64F ? CUFFT_Z2Z : out == CUDA_R_64F ? CUFFT_Z2D : 0;
    if (in == CUDA_R_32F)
        return out == CUDA_C_32F ? CUFFT_R2C : 0;
    return in == CUDA_R_64F && out == CUDA_C_64F ? CUFFT_D2Z : 0;
}

API cufftResult cufftXtMakePlanMany(cufftHandle handle, int rank, long long *n, long long *inembed,
                                    long long istride, long long idist, cudaDataType in,
                                    long long *onembed, long long ostride, long long odist,
                                    cudaDataType out, long long batch, size_t *work,
                                    cudaDataType compute)
{
    (void)compute;
    cufftType type = type_of(in, out);
    if (!type)
        return refuse_call("cufftXtMakePlanMany of these types", CUFFT_NOT_SUPPORTED);
    return cufftMakePlanMany64(handle, rank, n, inembed, istride, idist, onembed, ostride, odist, type,
                               batch, work);
}

static cufftResult make(cufftHandle handle, int rank, int *n, cufftType type, int batch, size_t *work)
{
    return cufftMakePlanMany(handle, rank, n, NULL, 1, 0, NULL, 1, 0, type, batch, work);
}

static cufftResult create(cufftHandle *handle, int rank, int *n, cufftType type, int batch)
{
    cufftResult status = cufftCreate(handle);
    return status ? status : make(*handle, rank, n, type, batch, NULL);
}

#define PLANS(d, sizes, ...) \
    API cufftResult cufftPlan##d(cufftHandle *handle, SIZES_##d, cufftType type BATCH_##d) \
    { \
        return create(handle, sizes, (int[]){__VA_ARGS__}, type, COUNT_##d); \
    } \
    API cufftResult cufftMakePlan##d(cufftHandle handle, SIZES_##d, cufftType type BATCH_##d, \
                                     size_t *work) \
    { \
        return make(handle, sizes, (int[]){__VA_ARGS__}, type, COUNT_##d, work); \
    } \
    API cufftResult cufftEstimate##d(SIZES_##d, cufftType type BATCH_##d, size_t *work) \
    { \
        (void)type, (void)COUNT_##d, *work = 0 * (size_t)nx; \
        return CUFFT_SUCCESS; \
    }
#define SIZES_1d int nx
#define SIZES_2d int nx, int ny
#define SIZES_3d int nx, int ny, int nz
#define BATCH_1d , int batch
#define BATCH_2d
#define BATCH_3d
#define COUNT_1d batch
#define COUNT_2d 1
#define COUNT_3d 1
#pragma GCC diagnostic ignored "-Wunused-parameter"
PLANS(1d, 1, nx)
PLANS(2d, 2, nx, ny)
PLANS(3d, 3, nx, ny, nz)
#pragma GCC diagnostic warning "-Wunused-parameter"

static cufftResult execute(const char *name, cufftHandle handle, cufftType type, void *in, void *out,
                           int direction)
{
    struct plan *plan = plan_of(handle);
    if (!plan || !plan->is_made || plan->type != type)
        return CUFFT_INVALID_PLAN;
    if (!in || !out)
        return CUFFT_INVALID_VALUE;
    struct call call = {.name = name, .run = run_plan, .array = {in, out, plan}, .written = out,
                        .option = {direction}};
    return submit_call(plan->stream, &call) ? CUFFT_EXEC_FAILED : CUFFT_SUCCESS;
}

#define TURN(name, TYPE, From, To) \
    API cufftResult name(cufftHandle plan, From *in, To *out, int direction) \
    { \
        return execute(#name, plan, TYPE, in, out, direction); \
    }
#define HALVE(name, TYPE, From, To, direction) \
    API cufftResult name(cufftHandle plan, From *in, To *out) \
    { \
        return execute(#name, plan, TYPE, in, out, direction); \
    }
TURN(cufftExecC2C, CUFFT_C2C, cufftComplex, cufftComplex)
TURN(cufftExecZ2Z, CUFFT_Z2Z, cufftDoubleComplex, cufftDoubleComplex)
HALVE(cufftExecR2C, CUFFT_R2C, cufftReal, cufftComplex, CUFFT_FORWARD)
HALVE(cufftExecD2Z, CUFFT_D2Z, cufftDoubleReal, cufftDoubleComplex, CUFFT_FORWARD)
HALVE(cufftExecC2R, CUFFT_C2R, cufftComplex, cufftReal, CUFFT_INVERSE)
HALVE(cufftExecZ2D, CUFFT_Z2D, cufftDoubleComplex, cufftDoubleReal, CUFFT_INVERSE)

/* ---- arrays over several GPUs: all of them are the one that there is */

API cufftResult cufftXtSetGPUs(cufftHandle handle, int count, int *devices)
{
    if (!plan_of(handle))
        return CUFFT_INVALID_PLAN;
    for (int i = 0; i < count; i++)
        if (devices[i])
            return CUFFT_INVALID_DEVICE;
    plan_of(handle)->devices = count;
    return count < 1 || count > MAX_CUDA_DESCRIPTOR_GPUS ? CUFFT_INVALID_VALUE : CUFFT_SUCCESS;
}

API cufftResult cufftXtMalloc(cufftHandle handle, cudaLibXtDesc **made, cufftXtSubFormat format)
{
    struct plan *plan = plan_of(handle);
    if (!plan || !plan->is_made || !plan->devices)
        return CUFFT_INVALID_PLAN;
    if (plan->type != CUFFT_C2C && plan->type != CUFFT_Z2Z)
        return refuse_call("cufftXtMalloc of real numbers", CUFFT_NOT_SUPPORTED);
    char *data;
    size_t whole = bytes_of_plan(plan), element = is_double(plan->type) ? 16 : 8;
    if (cudaMalloc((void **)&data, whole))
        return CUFFT_ALLOC_FAILED;
    cudaXtDesc *parts = calloc(1, sizeof *parts);
    parts->nGPUs = plan->devices;
    for (int i = 0; i < plan->devices; i++) {
        size_t from = whole / element * i / plan->devices * element;
        parts->data[i] = data + from;
        parts->size[i] = whole / element * (i + 1) / plan->devices * element - from;
    }
    *made = calloc(1, sizeof **made);
    (*made)->descriptor = parts, (*made)->library = LIB_FORMAT_CUFFT, (*made)->subFormat = format;
    return CUFFT_SUCCESS;
}

API cufftResult cufftXtFree(cudaLibXtDesc *array)
{
    cudaFree(array->descriptor->data[0]);
    free(array->descriptor);
    free(array);
    return CUFFT_SUCCESS;
}

/* The order of elements is the natural one in every format. */
API cufftResult cufftXtMemcpy(cufftHandle handle, void *to, void *from, cufftXtCopyType type)
{
    if (!plan_of(handle))
        return CUFFT_INVALID_PLAN;
    if (type != CUFFT_COPY_DEVICE_TO_HOST)
        to = ((cudaLibXtDesc *)to)->descriptor->data[0];
    if (type != CUFFT_COPY_HOST_TO_DEVICE)
        from = ((cudaLibXtDesc *)from)->descriptor->data[0];
    return cudaMemcpy(to, from, bytes_of_plan(plan_of(handle)), cudaMemcpyDefault)
               ? CUFFT_INTERNAL_ERROR : CUFFT_SUCCESS;
}

#define BETWEEN(name, type) \
    API cufftResult name(cufftHandle plan, cudaLibXtDesc *in, cudaLibXtDesc *out, int direction) \
    { \
        return execute(#name, plan, type, in->descriptor->data[0], out->descriptor->data[0], \
                       direction); \
    }
BETWEEN(cufftXtExecDescriptorC2C, CUFFT_C2C)
BETWEEN(cufftXtExecDescriptorZ2Z, CUFFT_Z2Z)
BETWEEN(cufftXtExecDescriptor, plan_of(plan) ? plan_of(plan)->type : CUFFT_C2C)

#include "forwards_libraries_cufft.h"
