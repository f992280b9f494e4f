/* Launches and contexts as CUDA 3 had them, which its header still declares: PyCUDA uses them. */

#include <pthread.h>

#include "driver.h"

#define MOST_BYTES 4096 /* of a kernel's parameters, as in CUDA of that time */

/* What a function was told before its launch. */
struct setting {
    CUfunction function;
    unsigned x, y, z, shared;
    char parameters[MOST_BYTES];
    struct setting *next;
};

static struct setting *settings;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static struct setting *setting_of(CUfunction function)
{
    pthread_mutex_lock(&turn);
    struct setting *found = settings;
    while (found && found->function != function)
        found = found->next;
    if (!found && (found = calloc(1, sizeof *found))) {
        *found = (struct setting){function, 1, 1, 1, 0, {0}, settings};
        settings = found;
    }
    pthread_mutex_unlock(&turn);
    return found;
}

API CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
    struct setting *own = setting_of(function);
    if (!own)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (x < 1 || y < 1 || z < 1)
        return CUDA_ERROR_INVALID_VALUE;
    own->x = x, own->y = y, own->z = z;
    return result(begin());
}

API CUresult cuFuncSetSharedSize(CUfunction function, unsigned bytes)
{
    struct setting *own = setting_of(function);
    if (!own)
        return CUDA_ERROR_OUT_OF_MEMORY;
    own->shared = bytes;
    return result(begin());
}

API CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned bytes)
{
    struct setting *own = setting_of(function);
    if (!own)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (offset < 0 || offset > MOST_BYTES || bytes > (unsigned)(MOST_BYTES - offset))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(own->parameters + offset, value, bytes);
    return result(begin());
}

API CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
    struct setting *own = setting_of(function);
    if (!own)
        return CUDA_ERROR_OUT_OF_MEMORY;
    size_t bytes = MOST_BYTES;
    void *buffer[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, own->parameters,
                      CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    return cuLaunchKernel(function, width, height, 1, own->x, own->y, own->z, own->shared, stream,
                          NULL, buffer);
}

#include "forwards_driver_older.h"
