/* Where the program calls: addresses in its code, which the recorder looks up by its debug
   information. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "runtime.h"

static const char *base_of(const char *address)
{
    Dl_info found = {0};
    return dladdr(address, &found) ? found.dli_fbase : NULL;
}

static const char *program_base(void)
{
    static const char *base;
    if (!base)
        base = base_of((const char *)getauxval(AT_ENTRY));
    return base;
}

int is_in_program(const struct stack *stack)
{
    return stack->base == program_base();
}

void find_stack(struct stack *stack)
{
    void *frames[MOST_CALLS];
    const char *own = base_of((const char *)find_stack);
    int count = backtrace(frames, MOST_CALLS), first = 0;
    stack->count = 0;
    while (first < count && base_of((char *)frames[first] - 1) == own)
        first++;
    stack->base = first < count ? base_of((char *)frames[first] - 1) : NULL;
    for (int i = first; i < count && base_of((char *)frames[i] - 1) == stack->base; i++)
        stack->places[stack->count++] = (uintptr_t)frames[i] - 1;
}

static const char *program_path(void)
{
    static char path[4096];
    if (!path[0] && readlink("/proc/self/exe", path, sizeof path - 1) < 0)
        path[0] = 0;
    return path;
}

void put_stack(struct message *message, const struct stack *stack)
{
    Dl_info found = {0};
    const char *file = NULL;
    if (stack->count && is_in_program(stack))
        file = program_path();
    else if (stack->count && dladdr(stack->base, &found))
        file = found.dli_fname;
    put_bytes(message, stack->places, stack->count * sizeof *stack->places);
    put64(message, (uintptr_t)stack->base);
    put_text(message, file ? file : "");
}
