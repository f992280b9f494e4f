/* Streams that write a value into memory, or wait for one. */

#include "driver.h"

struct value {
    void *place;
    uint64_t value;
    int bytes;
};

static cudaError_t run_write(const void *what)
{
    const struct value *write = what;
    if (write->bytes == 8)
        *(volatile uint64_t *)write->place = write->value;
    else
        *(volatile uint32_t *)write->place = (uint32_t)write->value;
    return cudaSuccess;
}

cudaError_t write_value(CUstream stream, CUdeviceptr place, uint64_t value, int bytes)
{
    struct value write = {pointer(place), value, bytes};
    cudaError_t status = begin();
    if (!status && place % bytes)
        status = cudaErrorInvalidValue;
    return status ? status : submit(stream, cudaGraphNodeTypeMemset, run_write, &write, sizeof write);
}

/* What is captured, and the default stream, wait for nothing that comes later. */
cudaError_t wait_value(CUstream stream, CUdeviceptr place, uint64_t value, int bytes,
                       unsigned flags)
{
    struct awaited awaited = {pointer(place), value, bytes, flags & 3};
    cudaError_t status = begin();
    if (!status && place % bytes)
        status = cudaErrorInvalidValue;
    if (status)
        return status;
    if (capturing(stream))
        return cudaErrorStreamCaptureUnsupported;
    if ((uintptr_t)stream <= (uintptr_t)cudaStreamPerThread)
        return cudaErrorNotSupported;
    return await(stream, &awaited);
}

static cudaError_t run_operation(CUstream stream, const CUstreamBatchMemOpParams *each)
{
    switch (each->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return wait_value(stream, each->waitValue.address, each->waitValue.value, 4,
                          each->waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return wait_value(stream, each->waitValue.address, each->waitValue.value64, 8,
                          each->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return write_value(stream, each->writeValue.address, each->writeValue.value, 4);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return write_value(stream, each->writeValue.address, each->writeValue.value64, 8);
    default: return cudaSuccess; /* barriers: all work is in order */
    }
}

API CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams *all,
                                   unsigned flags)
{
    (void)flags;
    cudaError_t status = cudaSuccess;
    for (unsigned i = 0; i < count && !status; i++)
        status = run_operation(stream, all + i);
    return result(status);
}
