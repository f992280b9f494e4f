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

#include "forwards_driver_module.h"
