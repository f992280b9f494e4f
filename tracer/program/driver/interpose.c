/* This library is loaded before all others (LD_PRELOAD). Programs that are linked with a compiler
   find our function first; those that ask for its address in a library they opened come by here. */

#define _GNU_SOURCE
#include <dlfcn.h>

#include "interpose.h"
#include "runtime.h"

int is_within;
void (*on_python_module)(void);

#define INTERPOSED(FUNCTION) \
    FUNCTION(nvrtcCreateProgram) \
    FUNCTION(nvrtcCompileProgram) \
    FUNCTION(nvrtcGetProgramLogSize) \
    FUNCTION(nvrtcGetProgramLog) \
    FUNCTION(nvrtcGetCUBINSize) \
    FUNCTION(nvrtcGetCUBIN) \
    FUNCTION(nvJitLinkCreate) \
    FUNCTION(nvJitLinkDestroy) \
    FUNCTION(nvJitLinkAddData) \
    FUNCTION(nvJitLinkAddFile) \
    FUNCTION(nvJitLinkComplete) \
    FUNCTION(nvJitLinkGetLinkedCubinSize) \
    FUNCTION(nvJitLinkGetLinkedCubin)

#define FUNCTION(name) extern void name##_ours(void) __asm__(#name);
INTERPOSED(FUNCTION)
#undef FUNCTION

static struct interposed {
    const char *name;
    void *ours, *theirs;
} table[] = {
#define FUNCTION(name) {#name, (void *)name##_ours, NULL},
    INTERPOSED(FUNCTION)
#undef FUNCTION
};

typedef void *(*finder)(void *, const char *);

static finder system_dlsym(void)
{
    static finder found;
    if (!found)
        found = (finder)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34"); /* in libc since then */
    if (!found)
        found = (finder)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"); /* x86-64 */
    if (!found)
        found = (finder)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17"); /* AArch64 */
    return found;
}

static struct interposed *find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name))
            return table + i;
    return NULL;
}

/* A function that is not ours, in the library of those that are, or where it would be found. */
static void *beside(const char *name)
{
    Dl_info known;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strncmp(table[i].name, name, 5) || !table[i].theirs || !dladdr(table[i].theirs, &known))
            continue;
        void *library = dlopen(known.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        return library ? system_dlsym()(library, name) : NULL;
    }
    return system_dlsym()(RTLD_NEXT, name);
}

void *theirs(const char *name)
{
    struct interposed *found = find(name);
    if (!found)
        return beside(name);
    if (!found->theirs)
        found->theirs = system_dlsym()(RTLD_NEXT, name);
    return found->theirs;
}

/* A function of a library that we stand in for: ours, and never NVIDIA's, which would be given
   handles that we made. A name has the meaning that it has in the newest of the library's files. */
static void *stand_in(const char *name)
{
    static const struct {
        const char *names, *version;
    } libraries[] = {
#define STAND_IN(names, version) {names, version},
#include "stand_ins.h"
#undef STAND_IN
    };
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        if (strncmp(name, libraries[i].names, strlen(libraries[i].names)))
            continue;
        Dl_info own;
        void *self = dladdr(libraries, &own) ? dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
        void *there = NULL;
        if (self && libraries[i].version)
            there = dlvsym(self, name, libraries[i].version);
        return self && !there ? system_dlsym()(self, name) : there;
    }
    return NULL;
}

/* What is not ours is asked with a jump, not a call: RTLD_NEXT goes by who asks. Python asks each
   module that it loaded for its beginning. */
API void *dlsym(void *handle, const char *name)
{
    struct interposed *found = strncmp(name, "nv", 2) ? NULL : find(name);
    if (on_python_module && !strncmp(name, "PyInit_", 7))
        on_python_module();
    if (!is_within && (!strncmp(name, "cu", 2) || !strncmp(name, "nvml", 4))) {
        void *stands_in = stand_in(name);
        if (stands_in && (system_dlsym()(handle, name) || system_dlsym()(handle, "cuInit")))
            return stands_in;
    }
    if (!found)
        return system_dlsym()(handle, name);
    void *there = system_dlsym()(handle, name);
    if (there && there != found->ours)
        found->theirs = there;
    else if (there && is_within)
        return NULL; /* it is ours alone, found from here and not by who asks */
    return there ? found->ours : NULL;
}

void *ours_for(const void *function)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (function && table[i].theirs == function)
            return table[i].ours;
    return NULL;
}

void find_theirs(const char *path)
{
    void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    for (size_t i = 0; library && i < sizeof table / sizeof *table; i++) {
        void *there = system_dlsym()(library, table[i].name);
        if (there)
            table[i].theirs = there;
    }
}
