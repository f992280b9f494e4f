/* Functions of the driver by their names, for programs that are not linked with it. */

#include "runtime.h"

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
                        int *outcome);

API cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function,
                                                 unsigned version, unsigned long long flags,
                                                 enum cudaDriverEntryPointQueryResult *outcome)
{
    if (!name || !function)
        return done(cudaErrorInvalidValue);
    int found = 0;
    int status = cuGetProcAddress_v2(name, function, version, flags, outcome ? &found : NULL);
    if (outcome)
        *outcome = (enum cudaDriverEntryPointQueryResult)found;
    return done(status ? cudaErrorSymbolNotFound : cudaSuccess);
}
