/* Errors as CUDA gives them: the last one of each thread, and a fault that stays. */

#include <stdio.h>

#include "runtime.h"

static __thread cudaError_t last;
static cudaError_t fault;

cudaError_t begin(void)
{
    return fault ? fault : (cudaError_t)connect_recorder();
}

cudaError_t done(cudaError_t status)
{
    if (status && status != cudaErrorNotReady)
        last = status;
    return status;
}

void forget_error(cudaError_t status)
{
    if (last == status)
        last = fault;
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
    cudaError_t status = last;
    last = fault;
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
