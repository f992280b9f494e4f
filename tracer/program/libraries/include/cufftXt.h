/* cuFFT on several GPUs, of which each is the only one that there is; callbacks are refused. */

#ifndef _CUFFTXT_H_
#define _CUFFTXT_H_

#include "cufft.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAX_CUDA_DESCRIPTOR_GPUS 64

typedef enum libFormat_t { LIB_FORMAT_CUFFT = 0, LIB_FORMAT_UNDEFINED = 1 } libFormat;
typedef struct cudaXtDesc_t {
    int version, nGPUs, GPUs[MAX_CUDA_DESCRIPTOR_GPUS];
    void *data[MAX_CUDA_DESCRIPTOR_GPUS];
    size_t size[MAX_CUDA_DESCRIPTOR_GPUS];
    void *cudaXtState;
} cudaXtDesc;
typedef struct cudaLibXtDesc_t {
    int version;
    cudaXtDesc *descriptor;
    libFormat library;
    int subFormat;
    void *libDescriptor;
} cudaLibXtDesc;

typedef enum cufftXtSubFormat_t {
    CUFFT_XT_FORMAT_INPUT = 0,
    CUFFT_XT_FORMAT_OUTPUT = 1,
    CUFFT_XT_FORMAT_INPLACE = 2,
    CUFFT_XT_FORMAT_INPLACE_SHUFFLED = 3,
    CUFFT_XT_FORMAT_1D_INPUT_SHUFFLED = 4,
    CUFFT_XT_FORMAT_DISTRIBUTED_INPUT = 5,
    CUFFT_XT_FORMAT_DISTRIBUTED_OUTPUT = 6,
    CUFFT_FORMAT_UNDEFINED = 7
} cufftXtSubFormat;
typedef enum cufftXtCopyType_t {
    CUFFT_COPY_HOST_TO_DEVICE = 0,
    CUFFT_COPY_DEVICE_TO_HOST = 1,
    CUFFT_COPY_DEVICE_TO_DEVICE = 2,
    CUFFT_COPY_UNDEFINED = 3
} cufftXtCopyType;

cufftResult cufftXtSetGPUs(cufftHandle plan, int count, int *devices);
cufftResult cufftXtMalloc(cufftHandle plan, cudaLibXtDesc **made, cufftXtSubFormat format);
cufftResult cufftXtFree(cudaLibXtDesc *array);
cufftResult cufftXtMemcpy(cufftHandle plan, void *to, void *from, cufftXtCopyType type);
cufftResult cufftXtExec(cufftHandle plan, void *in, void *out, int direction);
cufftResult cufftXtExecDescriptor(cufftHandle plan, cudaLibXtDesc *in, cudaLibXtDesc *out,
                                  int direction);
cufftResult cufftXtExecDescriptorC2C(cufftHandle plan, cudaLibXtDesc *in, cudaLibXtDesc *out,
                                     int direction);
cufftResult cufftXtExecDescriptorZ2Z(cufftHandle plan, cudaLibXtDesc *in, cudaLibXtDesc *out,
                                     int direction);

#ifdef __cplusplus
}
#endif
#endif
