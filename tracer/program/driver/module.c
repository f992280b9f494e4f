/* Modules and libraries, which are the same here, and what is in them. A CUfunction, as a CUkernel,
   is the runtime's kernel. */

#include "driver.h"

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
    return result(load_image((struct module **)module, data, NULL));
}

API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    *mode = CU_MODULE_EAGER_LOADING;
    return CUDA_SUCCESS;
}

API CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options,
                                   void **values, unsigned count,
                                   CUlibraryOption *library_options, void **library_values,
                                   unsigned library_count)
{
    (void)library_options, (void)library_values, (void)library_count;
    empty_logs(count, options, values);
    return result(load_file((struct module **)library, path));
}

API CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
    *module = (CUmodule)library;
    return result(begin());
}
