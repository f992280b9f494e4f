/* Streams that wait for a value in memory, or for an event behind such a wait: what is submitted to
   them meanwhile is kept, and runs as soon as what they wait for is there. */

#include <stdio.h>
#include <unistd.h>

#include "runtime.h"

#define PATIENCE 10.0 /* seconds in which another thread of the program may write the value */

struct held {
    struct held *next;
    struct awaited awaited;
    cudaGraph_t work;
};

static int count; /* of all that are held */

static int is_met(const struct awaited *awaited)
{
    uint64_t found = awaited->bytes == 8 ? *(const volatile uint64_t *)awaited->place
                                         : *(const volatile uint32_t *)awaited->place;
    uint64_t value = awaited->value, mask = awaited->bytes == 8 ? ~0ull : ~0u;
    switch (awaited->how) {
    case AT_LEAST: return awaited->bytes == 8 ? (int64_t)(found - value) >= 0
                                              : (int32_t)(uint32_t)(found - value) >= 0;
    case EQUAL: return found == (value & mask);
    case ANY_BIT: return (found & value) != 0;
    default: return (~(found | value) & mask) != 0;
    }
}

static cudaError_t hold(cudaStream_t stream, const struct awaited *awaited)
{
    struct held **end = &stream->held, *new = calloc(1, sizeof *new);
    while (*end)
        end = &(*end)->next;
    new->awaited = *awaited;
    new->work = make_graph();
    *end = new;
    count++;
    return cudaSuccess;
}

cudaGraph_t held_work(cudaStream_t stream)
{
    struct held *last = stream->held;
    while (last && last->next)
        last = last->next;
    return last ? last->work : NULL;
}

/* Run what need not wait any more; whether there was something. */
static int release_one(cudaStream_t stream, cudaError_t *status)
{
    struct held *first = stream->held;
    if (!first || !is_met(&first->awaited))
        return 0;
    stream->held = first->next; /* so that its work is not kept again */
    count--;
    *status = run_graph(first->work);
    free_graph(first->work);
    free(first);
    return 1;
}

cudaError_t release_held(void)
{
    cudaError_t status = cudaSuccess;
    static int is_running; /* work that is released submits nothing that releases more */
    for (int again = count && !is_running; again && !status;) {
        again = 0;
        is_running = 1;
        for (cudaStream_t each = next_stream(NULL); each && !status; each = next_stream(each))
            again |= release_one(each, &status);
        is_running = 0;
    }
    return status;
}

static int is_held(cudaStream_t stream)
{
    if (stream)
        return stream->held != NULL;
    return count > 0;
}

cudaError_t finish_held(cudaStream_t stream, int must_end)
{
    cudaError_t status = release_held();
    for (double waited = 0; !status && is_held(stream); waited += 0.001) {
        if (!must_end)
            return cudaErrorNotReady;
        if (waited > PATIENCE) {
            fprintf(stderr, "cutrace: a stream waits for a value in memory that nothing writes: what "
                            "was submitted to it behind that is left out\n");
            return cudaErrorLaunchTimeout;
        }
        usleep(1000);
        status = release_held();
    }
    return status;
}

cudaError_t await(cudaStream_t stream, const struct awaited *awaited)
{
    cudaError_t status = release_held();
    if (!status && (stream->held || !is_met(awaited)))
        status = hold(stream, awaited);
    return status;
}
