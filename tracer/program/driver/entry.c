/* Where a program comes in: initialization, errors, and functions by their names. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "driver.h"
#include "interpose.h"

CUresult result(cudaError_t status)
{
    forget_error(status);
    switch (status) {
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidSymbol:
    case cudaErrorInvalidMemcpyDirection:
    case cudaErrorInvalidChannelDescriptor:
        return CUDA_ERROR_INVALID_VALUE;
    case cudaErrorInvalidDeviceFunction:
        return CUDA_ERROR_INVALID_HANDLE;
    default:
        return (CUresult)status;
    }
}

CUresult refuse_driver(const char *name)
{
    say_refused(name, "CUDA_ERROR_NOT_SUPPORTED");
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* errors.h is made from the enumeration in cuda.h. */
API CUresult cuGetErrorName(CUresult error, const char **name)
{
    switch ((int)error) {
#define NAME(name_) case name_: *name = #name_; return CUDA_SUCCESS;
#include "errors.h"
#undef NAME
    }
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

API CUresult cuGetErrorString(CUresult error, const char **text)
{
    const char *name;
    CUresult status = cuGetErrorName(error, &name);
    *text = status ? NULL : cudaGetErrorString((cudaError_t)error);
    return status;
}

/* NVIDIA's compilers ask, too, and do without. */
static int is_compiler(const char *path)
{
    return strstr(path, "libnvrtc") || strstr(path, "libnvJitLink") || strstr(path, "libnvvm");
}

static void tell_unreached(const char *path)
{
    fprintf(stderr,
            "cutrace: NVIDIA's runtime in %s is not reached, and what it launches is not recorded:\n"
            "its functions have no names there (strip, -s), or it began too early. If that is the\n"
            "program's own, link it with these names, with nvcc's option -cudart shared, or by\n"
            "`cutrace nvcc`\n", path);
}

/* Tables that NVIDIA does not document, by which its runtime calls its driver. */
API CUresult cuGetExportTable(const void **table, const CUuuid *which)
{
    static int is_told;
    Dl_info caller;
    *table = find_table(which->bytes);
    if (*table)
        return CUDA_SUCCESS;
    if (dladdr(__builtin_return_address(0), &caller) && !is_compiler(caller.dli_fname) &&
        !is_redirected(caller.dli_fbase) && !is_told++)
        tell_unreached(caller.dli_fname);
    return CUDA_ERROR_NOT_FOUND;
}

/* entries.h has each function of this library: ENTRY(name, the name to ask for, the first version
   of CUDA in which that name means this function). */
struct entry {
    const char *name, *asked;
    int since;
    void *function;
};

#define ENTRY(name, asked, since) extern void name##_entry(void) __asm__(#name);
#include "entries.h"
#undef ENTRY

static const struct entry entries[] = {
#define ENTRY(name, asked, since) {#name, #asked, since, (void *)name##_entry},
#include "entries.h"
#undef ENTRY
};

/* The newest function of this name that a program written for that version may mean. */
static void *find_entry(const char *name, int version)
{
    const struct entry *found = NULL;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        const struct entry *each = entries + i;
        if (!strcmp(each->name, name) && strcmp(each->asked, name))
            return each->function; /* asked with the suffix of its version */
        if (!strcmp(each->asked, name) && each->since <= version &&
            (!found || each->since >= found->since))
            found = each;
    }
    return found ? found->function : NULL;
}

API CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                                 CUdriverProcAddressQueryResult *outcome)
{
    (void)flags; /* streams per thread or not: all streams are alike */
    *function = find_entry(name, version); /* programs probe for what newer drivers have */
    if (outcome)
        *outcome = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *function || outcome ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#include "forwards_driver_entry.h"
