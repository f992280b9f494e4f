/* The driver's linker. It only collects: PTX is linked by the recorder. */

#include <stdio.h>

#include "bundle.h"
#include "driver.h"

struct CUlinkState_st {
    struct bundle bundle;
};

void add_piece(struct bundle *bundle, const void *data, size_t bytes)
{
    struct bundle_head head = {BUNDLE_MAGIC, 0, 0};
    uint64_t own = bytes;
    size_t before = bundle->data ? bundle->bytes : sizeof head;
    char *room = realloc(bundle->data, before + sizeof own + bytes + 1);
    if (!room)
        abort();
    if (bundle->data)
        memcpy(&head, room, sizeof head);
    head.count++;
    head.bytes += sizeof own + bytes;
    memcpy(room, &head, sizeof head);
    memcpy(room + before, &own, sizeof own);
    memcpy(room + before + sizeof own, data, bytes);
    room[before + sizeof own + bytes] = '\0';
    bundle->data = room;
    bundle->bytes = before + sizeof own + bytes;
}

const void *bundle_data(const struct bundle *bundle, size_t *bytes)
{
    const struct bundle_head *head = (const struct bundle_head *)bundle->data;
    size_t skipped = sizeof *head + sizeof(uint64_t);
    *bytes = bundle->bytes;
    if (!head || head->count != 1)
        return bundle->data;
    *bytes -= skipped;
    return bundle->data + skipped;
}

void free_bundle(struct bundle *bundle)
{
    free(bundle->data);
    bundle->data = NULL;
}

int is_device_runtime(const char *name)
{
    return name && strstr(name, "cudadevrt");
}

API CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes,
                              const char *name, unsigned count, CUjit_option *options,
                              void **values)
{
    (void)count, (void)options, (void)values;
    if (is_device_runtime(name))
        return CUDA_SUCCESS;
    if (type == CU_JIT_INPUT_OBJECT || type == CU_JIT_INPUT_LIBRARY || type == CU_JIT_INPUT_NVVM)
        return refuse_driver("cuLinkAddData of object files, libraries and NVVM's code");
    add_piece(&state->bundle, data, bytes);
    return CUDA_SUCCESS;
}

API CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                              unsigned count, CUjit_option *options, void **values)
{
    size_t bytes;
    if (is_device_runtime(path))
        return CUDA_SUCCESS;
    char *data = read_file(path, &bytes);
    if (!data)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult status = cuLinkAddData_v2(state, type, data, bytes, path, count, options, values);
    free(data);
    return status;
}

API CUresult cuLinkComplete(CUlinkState state, void **made, size_t *bytes)
{
    size_t size;
    *made = (void *)bundle_data(&state->bundle, &size);
    if (bytes)
        *bytes = size;
    return *made ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#include "forwards_driver_linker.h"
