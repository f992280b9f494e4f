/* A launch is run: by the recorder, which answers what the kernel printed, or its fault. */

#include <stdio.h>

#include "runtime.h"

static void put_dimensions(struct message *message, dim3 dimensions)
{
    put32(message, dimensions.x);
    put32(message, dimensions.y);
    put32(message, dimensions.z);
}

static int is_fault(cudaError_t status)
{
    return status == cudaErrorIllegalAddress || status == cudaErrorMisalignedAddress ||
           status == cudaErrorLaunchFailure || status == cudaErrorAssert ||
           status == cudaErrorLaunchTimeout || status == cudaErrorIllegalInstruction;
}

/* Kernels that write nothing and wait for what the program does while they run: they are run again
   when the program waits for them. */
static struct waiting {
    struct waiting *next;
    cudaStream_t stream;
    struct launch *launch;
} *waiting;

static void keep_waiting(const struct launch *launch)
{
    struct waiting **end = &waiting, *new = malloc(sizeof *new);
    while (*end)
        end = &(*end)->next;
    size_t bytes = sizeof *launch + launch->bytes;
    *new = (struct waiting){NULL, launch->stream, memcpy(malloc(bytes), launch, bytes)};
    *end = new;
}

static int is_before(cudaStream_t one, cudaStream_t other)
{
    return !one || !other || one == other;
}

/* Without `is_all` what is before the end of `stream`. A kernel that waits still faults if it
   `must_end`, and else makes this cudaErrorNotReady. */
cudaError_t finish_waiting(cudaStream_t stream, int is_all, int must_end)
{
    for (struct waiting **at = &waiting; *at;) {
        struct waiting *each = *at;
        if (!is_all && !is_before(each->stream, stream)) {
            at = &each->next;
            continue;
        }
        *at = each->next;
        each->launch->flags |= must_end ? MUST_END : 0;
        run_launch(each->launch);
        free(each->launch);
        free(each);
        if (!must_end)
            break;
    }
    return waiting && !must_end ? cudaErrorNotReady : begin();
}

/* A kernel's fault is not the launch's: it is found at the next call that looks. */
cudaError_t run_launch(const void *what)
{
    const struct launch *launch = what;
    struct message message = question(LAUNCH);
    put32(&message, launch->function->number);
    put_dimensions(&message, launch->grid);
    put_dimensions(&message, launch->block);
    put_dimensions(&message, launch->cluster);
    put32(&message, launch->shared);
    put32(&message, launch->flags | launch->prefers << PREFERENCE_BITS);
    char *arguments = memcpy(malloc(launch->bytes + 1), launch->arguments, launch->bytes), *end = arguments;
    for (uint32_t i = 0; i < launch->function->count; end += launch->function->parameters[i++].bytes)
        replace_registered(end, launch->function->parameters[i].bytes);
    put_bytes(&message, arguments, launch->bytes);
    free(arguments);
    put_stack(&message, &launch->stack);
    size_t in_ranges;
    char *ranges = ranges_now(&in_ranges);
    put_bytes(&message, ranges, in_ranges);
    free(ranges);
    cudaError_t status = ask(&message);
    if (!status) {
        size_t bytes;
        const void *text = take_bytes(&message, &bytes);
        fwrite(text, 1, bytes, stdout);
    }
    close_message(&message);
    if (status == cudaErrorNotReady) {
        keep_waiting(launch);
        return cudaSuccess;
    }
    if (is_fault(status)) {
        set_fault(status);
        return cudaSuccess;
    }
    return status;
}
