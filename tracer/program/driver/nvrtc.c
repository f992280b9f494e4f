/* NVRTC makes PTX with the lines of its source, which is also what a program gets that asks for
   machine code. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interpose.h"
#include "runtime.h"

/* NVRTC takes an option's value behind `=` or as the next word. */
static int starts(const char *option, const char *name)
{
    size_t length = strlen(name);
    return !strncmp(option, name, length) && (!option[length] || option[length] == '=');
}

static int names_target(const char *option)
{
    return starts(option, "-arch") || starts(option, "--gpu-architecture");
}

static int is_any(int count, const char *const *options, const char *const *wanted)
{
    for (int i = 0; i < count; i++)
        for (const char *const *each = wanted; *each; each++)
            if (starts(options[i], *each))
                return 1;
    return 0;
}

static const char *const with_lines[] = {"-lineinfo", "--generate-line-info", "-G",
                                         "--device-debug", NULL};
static const char *const for_linking[] = {"-dlto", "--dlink-time-opt", NULL};

/* sm_90 in an option becomes compute_90: no assembler is asked. */
static char *virtual_target(const char *option)
{
    const char *found = strstr(option, "sm_");
    char *made = malloc(strlen(option) + sizeof "compute_");
    if (!found)
        return strcpy(made, option);
    sprintf(made, "%.*scompute_%s", (int)(found - option), option, found + strlen("sm_"));
    return made;
}

API int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    int (*compile)(void *, int, const char *const *) = theirs("nvrtcCompileProgram");
    const char **own = calloc(count + 1, sizeof *own);
    int is_ptx = !is_any(count, options, for_linking), total = count;
    for (int i = 0; i < count; i++) {
        int is_target = names_target(options[i]) || (i && names_target(options[i - 1]));
        own[i] = is_ptx && is_target ? virtual_target(options[i]) : strdup(options[i]);
    }
    if (!is_any(count, options, with_lines))
        own[total++] = strdup("-lineinfo");
    int status = compile(program, total, own);
    for (int i = 0; i < total; i++)
        free((char *)own[i]);
    free(own);
    return status;
}

API int nvrtcGetCUBINSize(void *program, size_t *bytes)
{
    int (*get)(void *, size_t *) = theirs("nvrtcGetPTXSize");
    return get(program, bytes);
}

API int nvrtcGetCUBIN(void *program, char *data)
{
    int (*get)(void *, char *) = theirs("nvrtcGetPTX");
    return get(program, data);
}
