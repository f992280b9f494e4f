/* A call of a library: submitted to its stream, run on the host, told to the recorder. */

#include <stdio.h>

#include "library.h"

static void tell_recorder(const struct call *call)
{
    struct message message = question(LIBRARY);
    size_t length = strlen(call->name);
    if (length > 3 && !strcmp(call->name + length - 3, "_v2"))
        length -= 3;
    put_bytes(&message, call->name, length);
    put64(&message, (uint64_t)(uintptr_t)call->written);
    tell(&message);
}

static cudaError_t run_call(const void *what)
{
    const struct call *call = what;
    call->run(call);
    tell_recorder(call);
    return cudaSuccess;
}

int submit_call_of(cudaStream_t stream, const struct call *call, size_t bytes)
{
    cudaError_t status = begin();
    if (!status)
        status = submit(stream, cudaGraphNodeTypeHost, run_call, call, bytes);
    return done(status);
}

int submit_call(cudaStream_t stream, const struct call *call)
{
    return submit_call_of(stream, call, sizeof *call);
}

void hold_scalar(struct call *call, int number, const void *place, size_t bytes, int now)
{
    call->scalar[number].place = now ? NULL : place;
    if (now && place)
        memcpy(call->scalar[number].value, place, bytes);
}

const void *scalar_of(const struct call *call, int number)
{
    const void *place = call->scalar[number].place;
    return place ? place : call->scalar[number].value;
}

int refuse_call(const char *name, int status)
{
    fprintf(stderr, "cutrace: %s is not supported: its library is machine code, and cutrace computes "
                    "only the common calls on the host\n", name);
    return status;
}

static void run_operator(const struct call *call)
{
    void (*compute)(void) = (void (*)(void))call->array[0];
    compute();
}

/* An operator of a framework, which `compute` computes in its turn in the stream. The name and the
   function stay valid as long as a graph that captured them. */
API int _cutrace_operator(cudaStream_t stream, const char *name, void *written, void (*compute)(void))
{
    struct call call = {.name = name, .run = run_operator, .written = written};
    call.array[0] = (void *)compute;
    return submit_call(stream, &call);
}
