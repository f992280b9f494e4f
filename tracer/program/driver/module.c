/* Modules and libraries, which are the same here, and what is in them. A CUfunction, as a CUkernel,
   is the runtime's kernel. */

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bundle.h"
#include "driver.h"

#define WRAPPER_MAGIC 0x466243b1u
#define IMAGE_MAGIC 0xba55ed50u
#define ELF_MAGIC 0x464c457fu

/* Images of code: a wrapper points to one, which has a head and says its size. */
struct wrapper {
    uint32_t magic, version;
    const void *image;
};

struct image {
    uint32_t magic;
    uint16_t version, head;
    uint64_t bytes;
};

static size_t elf_bytes(const Elf64_Ehdr *head)
{
    size_t sections = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
    size_t parts = head->e_phoff + (size_t)head->e_phnum * head->e_phentsize;
    size_t most = sections > parts ? sections : parts;
    return most > sizeof *head ? most : sizeof *head;
}

CUresult load_image(struct module **module, const void *data, const char *file)
{
    cudaError_t status = begin();
    uint32_t magic;
    if (status || !data)
        return status ? result(status) : CUDA_ERROR_INVALID_VALUE;
    memcpy(&magic, data, sizeof magic);
    if (magic == WRAPPER_MAGIC)
        return load_image(module, ((const struct wrapper *)data)->image, file);
    size_t bytes = strlen(data);
    if (magic == IMAGE_MAGIC)
        bytes = ((const struct image *)data)->head + ((const struct image *)data)->bytes;
    else if (magic == BUNDLE_MAGIC)
        bytes = sizeof(struct bundle_head) + ((const struct bundle_head *)data)->bytes;
    else if (magic == ELF_MAGIC) /* machine code, which ends with its table of sections or parts */
        bytes = elf_bytes(data);
    *module = load_module(data, bytes, file, &status);
    return result(status);
}

char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *data = size < 0 ? NULL : calloc(1, size + 1);
    *bytes = size;
    if (data && fread(data, 1, *bytes, file) != *bytes) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

CUresult load_file(struct module **module, const char *path)
{
    size_t bytes;
    char *data = read_file(path, &bytes);
    if (!data)
        return CUDA_ERROR_FILE_NOT_FOUND;
    CUresult status = load_image(module, data, path);
    free(data);
    return status;
}

void empty_logs(unsigned count, const CUjit_option *options, void **values)
{
    char *logs[2] = {NULL, NULL};
    size_t rooms[2] = {0, 0};
    for (unsigned i = 0; i < count; i++) {
        switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER: logs[0] = values[i]; break;
        case CU_JIT_ERROR_LOG_BUFFER: logs[1] = values[i]; break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES: rooms[0] = (size_t)values[i]; break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES: rooms[1] = (size_t)values[i]; break;
        default: continue;
        }
        if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES ||
            options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            values[i] = NULL;
    }
    for (int i = 0; i < 2; i++)
        if (logs[i] && rooms[i])
            *logs[i] = '\0';
}

API CUresult cuModuleLoadDataEx(CUmodule *module, const void *data, unsigned count,
                                CUjit_option *options, void **values)
{
    empty_logs(count, options, values);
    return load_image((struct module **)module, data, NULL);
}

API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    cudaError_t status = begin();
    if (!status)
        *function = (CUfunction)function_named((struct module *)module, name, &status);
    return result(status);
}

API CUresult cuModuleGetGlobal_v2(CUdeviceptr *place, size_t *bytes, CUmodule module,
                                  const char *name)
{
    void *data = NULL;
    size_t size = 0;
    cudaError_t status = begin();
    if (!status)
        status = symbol_named((struct module *)module, name, &data, &size);
    if (!status && place)
        *place = address(data);
    if (!status && bytes)
        *bytes = size;
    return result(status);
}

API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options,
                                   void **values, unsigned count,
                                   CUlibraryOption *library_options, void **library_values,
                                   unsigned library_count)
{
    (void)library_options, (void)library_values, (void)library_count;
    empty_logs(count, options, values);
    return load_file((struct module **)library, path);
}

API CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    *module = (CUmodule)library;
    return result(begin());
}
