/* Errors as CUDA gives them: the last one of each thread, and a fault that stays. A library with a
   runtime in itself has its own last error: NVIDIA's try what may fail. */

#include <stdio.h>

#include "runtime.h"

enum { RUNTIMES = 32 }; /* those beyond share the program's error */

struct range {
    uintptr_t start, end;
};

/* Of this library, by the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

static struct range runtimes[RUNTIMES];
static int count;
static __thread cudaError_t errors[RUNTIMES + 1];
static cudaError_t fault;

void note_runtime(uintptr_t start, uintptr_t end)
{
    if (count < RUNTIMES)
        runtimes[count++] = (struct range){start, end};
}

/* The code that called this library. All of ours keeps frame pointers. */
static uintptr_t caller(void)
{
    void **frame = __builtin_frame_address(0);
    while (frame[1] >= (void *)__ehdr_start && frame[1] < (void *)etext)
        frame = *frame;
    return (uintptr_t)frame[1];
}

static cudaError_t *last_error(void)
{
    uintptr_t place = caller();
    for (int i = 0; i < count; i++)
        if (place >= runtimes[i].start && place < runtimes[i].end)
            return errors + 1 + i;
    return errors;
}

cudaError_t begin(void)
{
    return fault ? fault : (cudaError_t)connect_recorder();
}

cudaError_t done(cudaError_t status)
{
    if (status && status != cudaErrorNotReady)
        *last_error() = status;
    return status;
}

void forget_error(cudaError_t status)
{
    cudaError_t *last = last_error();
    if (*last == status)
        *last = fault;
}

void set_fault(cudaError_t status)
{
    fault = status;
}

static int refusals;

/* How many calls were refused: startup/sitecustomize.py asks. */
API int __cudaCountRefusals(void)
{
    return refusals;
}

void say_refused(const char *name, const char *error)
{
    refusals++;
    fprintf(stderr, "cutrace: %s is not supported; the program gets %s\n", name, error);
}

cudaError_t refuse(const char *name)
{
    say_refused(name, "cudaErrorNotSupported");
    return done(cudaErrorNotSupported);
}

API cudaError_t cudaGetLastError(void)
{
    cudaError_t *last = last_error(), status = *last;
    *last = fault;
    return status;
}

static const struct {
    cudaError_t error;
    const char *text;
} texts[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorInitializationError, "initialization error"},
    {cudaErrorInvalidConfiguration, "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "invalid pitch argument"},
    {cudaErrorInvalidSymbol, "invalid device symbol"},
    {cudaErrorInvalidDevicePointer, "invalid device pointer"},
    {cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"},
    {cudaErrorInvalidDeviceFunction, "invalid device function"},
    {cudaErrorNoDevice, "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "invalid device ordinal"},
    {cudaErrorInvalidKernelImage, "device kernel image is invalid"},
    {cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"},
    {cudaErrorInvalidResourceHandle, "invalid resource handle"},
    {cudaErrorSymbolNotFound, "named symbol not found"},
    {cudaErrorNotReady, "device not ready"},
    {cudaErrorIllegalAddress, "an illegal memory access was encountered"},
    {cudaErrorMisalignedAddress, "misaligned address"},
    {cudaErrorIllegalInstruction, "an illegal instruction was encountered"},
    {cudaErrorLaunchOutOfResources, "too many resources requested for launch"},
    {cudaErrorLaunchTimeout, "the launch timed out and was terminated"},
    {cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"},
    {cudaErrorAssert, "device-side assert triggered"},
    {cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"},
    {cudaErrorLaunchFailure, "unspecified launch failure"},
    {cudaErrorCooperativeLaunchTooLarge, "too many blocks in cooperative launch"},
    {cudaErrorNotSupported, "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"},
    {cudaErrorUnknown, "unknown error"},
};

/* names.h is made from the enumeration in CUDA's driver_types.h. */
API const char *cudaGetErrorName(cudaError_t error)
{
    switch ((int)error) {
#define NAME(name) case name: return #name;
#include "names.h"
#undef NAME
    }
    return "unrecognized error code";
}

API const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error == error)
            return texts[i].text;
    return cudaGetErrorName(error);
}

#include "forwards_runtime_error.h"
