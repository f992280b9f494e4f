/* Where the program calls: addresses in its code, which the recorder looks up by its debug
   information. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <execinfo.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "runtime.h"

#define MOST 24

static const char *program_base(void)
{
    Dl_info program = {0};
    dladdr((const void *)getauxval(AT_ENTRY), &program);
    return program.dli_fbase;
}

static const char *base_of(const char *address)
{
    Dl_info found = {0};
    return dladdr(address, &found) ? found.dli_fbase : NULL;
}

static const char *program_path(void)
{
    static char path[4096];
    if (!path[0] && readlink("/proc/self/exe", path, sizeof path - 1) < 0)
        path[0] = 0;
    return path;
}

void put_site(struct message *message, const char *address)
{
    Dl_info found = {0};
    if (!address || !dladdr(address - 1, &found) || !found.dli_fname) {
        put64(message, 0);
        put64(message, 0);
        put_text(message, "");
        return;
    }
    put64(message, (uintptr_t)address - 1);
    put64(message, (uintptr_t)found.dli_fbase);
    put_text(message, program_base() == found.dli_fbase ? program_path() : found.dli_fname);
}

/* The calls that led here from the program's own file, the innermost first: none where a library
   has called. */
void put_stack(struct message *message)
{
    void *frames[MOST];
    uint64_t places[MOST];
    const char *own = base_of((const char *)put_stack), *base = program_base();
    int count = backtrace(frames, MOST), first = 0, many = 0;
    while (first < count && base_of((char *)frames[first] - 1) == own)
        first++;
    for (int i = first; i < count && base_of((char *)frames[i] - 1) == base; i++)
        places[many++] = (uintptr_t)frames[i] - 1;
    put_bytes(message, places, many * sizeof *places);
    put64(message, (uintptr_t)base);
    put_text(message, many ? program_path() : "");
}
