/* The calls of cuFFT that cutrace computes on the host, and names of others, which it refuses. */

#ifndef _CUFFT_H_
#define _CUFFT_H_

#include <cuComplex.h>
#include <cuda_runtime_api.h>
#include <library_types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUFFT_VER_MAJOR 12
#define CUFFT_VERSION 12000
#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1

typedef enum {
    CUFFT_SUCCESS = 0,
    CUFFT_INVALID_PLAN = 1,
    CUFFT_ALLOC_FAILED = 2,
    CUFFT_INVALID_TYPE = 3,
    CUFFT_INVALID_VALUE = 4,
    CUFFT_INTERNAL_ERROR = 5,
    CUFFT_EXEC_FAILED = 6,
    CUFFT_SETUP_FAILED = 7,
    CUFFT_INVALID_SIZE = 8,
    CUFFT_UNALIGNED_DATA = 9,
    CUFFT_INVALID_DEVICE = 11,
    CUFFT_NO_WORKSPACE = 13,
    CUFFT_NOT_IMPLEMENTED = 14,
    CUFFT_NOT_SUPPORTED = 16,
    CUFFT_MISSING_DEPENDENCY = 17,
    CUFFT_NVRTC_FAILURE = 18,
    CUFFT_NVJITLINK_FAILURE = 19,
    CUFFT_NVSHMEM_FAILURE = 20
} cufftResult_t, cufftResult;

typedef enum {
    CUFFT_R2C = 0x2a,
    CUFFT_C2R = 0x2c,
    CUFFT_C2C = 0x29,
    CUFFT_D2Z = 0x6a,
    CUFFT_Z2D = 0x6c,
    CUFFT_Z2Z = 0x69
} cufftType;

typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
typedef int cufftHandle;

cufftResult cufftCreate(cufftHandle *plan);
cufftResult cufftDestroy(cufftHandle plan);
cufftResult cufftPlan1d(cufftHandle *plan, int nx, cufftType type, int batch);
cufftResult cufftPlan2d(cufftHandle *plan, int nx, int ny, cufftType type);
cufftResult cufftPlan3d(cufftHandle *plan, int nx, int ny, int nz, cufftType type);
cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *inembed, int istride, int idist,
                          int *onembed, int ostride, int odist, cufftType type, int batch);
cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *work);
cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, size_t *work);
cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *work);
cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int *n, int *inembed, int istride,
                              int idist, int *onembed, int ostride, int odist, cufftType type,
                              int batch, size_t *work);
cufftResult cufftMakePlanMany64(cufftHandle plan, int rank, long long *n, long long *inembed,
                                long long istride, long long idist, long long *onembed,
                                long long ostride, long long odist, cufftType type,
                                long long batch, size_t *work);
cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long *n, long long *inembed,
                                long long istride, long long idist, cudaDataType in,
                                long long *onembed, long long ostride, long long odist,
                                cudaDataType out, long long batch, size_t *work,
                                cudaDataType compute);
cufftResult cufftEstimate1d(int nx, cufftType type, int batch, size_t *work);
cufftResult cufftEstimate2d(int nx, int ny, cufftType type, size_t *work);
cufftResult cufftEstimate3d(int nx, int ny, int nz, cufftType type, size_t *work);
cufftResult cufftGetSize(cufftHandle plan, size_t *work);
cufftResult cufftSetWorkArea(cufftHandle plan, void *work);
cufftResult cufftSetAutoAllocation(cufftHandle plan, int is_automatic);
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
cufftResult cufftGetVersion(int *version);
cufftResult cufftGetProperty(libraryPropertyType what, int *value);
cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *in, cufftComplex *out, int direction);
cufftResult cufftExecR2C(cufftHandle plan, cufftReal *in, cufftComplex *out);
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *in, cufftReal *out);
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex *in, cufftDoubleComplex *out,
                         int direction);
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal *in, cufftDoubleComplex *out);
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex *in, cufftDoubleReal *out);

#ifdef __cplusplus
#define CUTRACE_REFUSED(name) cufftResult name(...);
#else
#define CUTRACE_REFUSED(name) cufftResult name();
#endif
#define CUTRACE_CUFFT_REFUSED \
    CUTRACE_REFUSED(cufftEstimateMany) \
    CUTRACE_REFUSED(cufftGetSize1d) \
    CUTRACE_REFUSED(cufftGetSize2d) \
    CUTRACE_REFUSED(cufftGetSize3d) \
    CUTRACE_REFUSED(cufftGetSizeMany) \
    CUTRACE_REFUSED(cufftSetPlanPropertyInt64) \
    CUTRACE_REFUSED(cufftXtExecDescriptorR2C) \
    CUTRACE_REFUSED(cufftXtExecDescriptorC2R) \
    CUTRACE_REFUSED(cufftXtExecDescriptorD2Z) \
    CUTRACE_REFUSED(cufftXtExecDescriptorZ2D) \
    CUTRACE_REFUSED(cufftXtQueryPlan) \
    CUTRACE_REFUSED(cufftXtSetWorkArea) \
    CUTRACE_REFUSED(cufftXtSetCallback) \
    CUTRACE_REFUSED(cufftXtClearCallback)
CUTRACE_CUFFT_REFUSED
#undef CUTRACE_REFUSED

#ifdef __cplusplus
}
#endif
#endif
