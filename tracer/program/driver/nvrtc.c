/* NVRTC makes PTX with the lines of its source, which is also what a program gets that asks for
   machine code. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* FNV-1a, 64 bits */
static uint64_t hash(uint64_t seed, const char *text)
{
    for (; *text; text++)
        seed = (seed ^ (unsigned char)*text) * 0x100000001b3u;
    return seed;
}

/* Write a text where a file of that content is kept; -1 if it cannot be. */
static int keep(const char *path, const char *text)
{
    char draft[4200];
    if (!access(path, R_OK))
        return 0;
    snprintf(draft, sizeof draft, "%s.XXXXXX", path);
    int descriptor = mkostemp(draft, O_CLOEXEC);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (!file)
        return -1;
    int is_whole = fputs(text, file) >= 0 && !fchmod(descriptor, 0644);
    if (!fclose(file) && is_whole && !rename(draft, path))
        return 0;
    unlink(draft);
    return -1;
}

/* A program that is compiled from memory has its text in a file of the cache, by which PTX names its
   lines; a name that is a file's is left alone, and so is all where there is no such folder. */
static const char *place_source(char *path, size_t room, const char *text, const char *name)
{
    const char *folder = getenv("CUTRACE_SOURCES");
    name = name ? name : "default_program";
    if (!folder || !access(name, R_OK))
        return name;
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    size_t length = strlen(base);
    const char *suffix = length > 3 && !strcmp(base + length - 3, ".cu") ? "" : ".cu";
    uint64_t key = hash(hash(0xcbf29ce484222325u, text), base);
    int used = snprintf(path, room, "%s/%016llx", folder, (unsigned long long)key);
    if (mkdir(path, 0777) && errno != EEXIST)
        return name;
    snprintf(path + used, room - used, "/%s%s", base, suffix);
    return keep(path, text) ? name : path;
}

API int nvrtcCreateProgram(void **program, const char *text, const char *name, int count,
                           const char *const *headers, const char *const *include_names)
{
    int (*create)(void **, const char *, const char *, int, const char *const *,
                  const char *const *) = theirs("nvrtcCreateProgram");
    char path[4096];
    const char *own = text ? place_source(path, sizeof path, text, name) : name;
    return create(program, text, own, count, headers, include_names);
}

/* NVRTC opens its builtins by their bare name: load those beside it, which no search path may name. */
static void load_builtins(void *compile)
{
    Dl_info nvrtc;
    char pattern[4200];
    glob_t files;
    if (!dladdr(compile, &nvrtc) || !nvrtc.dli_fname || !strrchr(nvrtc.dli_fname, '/'))
        return;
    int folder = strrchr(nvrtc.dli_fname, '/') - nvrtc.dli_fname;
    snprintf(pattern, sizeof pattern, "%.*s/libnvrtc-builtins.so.*", folder, nvrtc.dli_fname);
    if (!glob(pattern, 0, NULL, &files)) {
        for (size_t i = 0; i < files.gl_pathc; i++)
            dlopen(files.gl_pathv[i], RTLD_LAZY);
        globfree(&files);
    }
}

API int nvrtcCompileProgram(void *program, int count, const char *const *options)
{
    int (*compile)(void *, int, const char *const *) = theirs("nvrtcCompileProgram");
    load_builtins(compile);
    if (count && options[0][0] != '-') /* cuDNN encodes them: the program stays as it asks */
        return compile(program, count, options);
    const char **own = calloc(count + 1, sizeof *own);
    int is_ptx = !is_any(count, options, for_linking), total = count;
    for (int i = 0; i < count; i++) {
        int is_target = names_target(options[i]) || (i && names_target(options[i - 1]));
        own[i] = is_ptx && is_target ? virtual_target(options[i]) : strdup(options[i]);
    }
    if (is_ptx && !is_any(count, options, with_lines)) /* what is linked later must agree on lines */
        own[total++] = strdup("-lineinfo");
    int status = compile(program, total, own);
    for (int i = 0; i < total; i++)
        free((char *)own[i]);
    free(own);
    return status;
}

/* Its log has the names that the program gave: the folders of the cache before them are left out. */
static char *own_log(void *program)
{
    int (*get_size)(void *, size_t *) = theirs("nvrtcGetProgramLogSize");
    int (*get)(void *, char *) = theirs("nvrtcGetProgramLog");
    const char *folder = getenv("CUTRACE_SOURCES");
    size_t bytes, skipped = folder ? strlen(folder) + strlen("/0123456789abcdef/") : 0;
    if (get_size(program, &bytes))
        return NULL;
    char *log = calloc(1, bytes + 1);
    if (get(program, log)) {
        free(log);
        return NULL;
    }
    for (char *found = log; folder && (found = strstr(found, folder));)
        if (strlen(found) >= skipped)
            memmove(found, found + skipped, strlen(found + skipped) + 1);
        else
            break;
    return log;
}

API int nvrtcGetProgramLogSize(void *program, size_t *bytes)
{
    int (*get_size)(void *, size_t *) = theirs("nvrtcGetProgramLogSize");
    char *log = own_log(program);
    if (!log)
        return get_size(program, bytes);
    *bytes = strlen(log) + 1;
    free(log);
    return 0;
}

API int nvrtcGetProgramLog(void *program, char *text)
{
    int (*get)(void *, char *) = theirs("nvrtcGetProgramLog");
    char *log = own_log(program);
    if (!log)
        return get(program, text);
    strcpy(text, log);
    free(log);
    return 0;
}

/* A program whose options were left alone has machine code, all others have PTX alone. */
static int has_cubin(void *program)
{
    int (*get_size)(void *, size_t *) = theirs("nvrtcGetCUBINSize");
    size_t bytes = 0;
    return !get_size(program, &bytes) && bytes;
}

API int nvrtcGetCUBINSize(void *program, size_t *bytes)
{
    int (*get)(void *, size_t *) =
        theirs(has_cubin(program) ? "nvrtcGetCUBINSize" : "nvrtcGetPTXSize");
    return get(program, bytes);
}

API int nvrtcGetCUBIN(void *program, char *data)
{
    int (*get)(void *, char *) = theirs(has_cubin(program) ? "nvrtcGetCUBIN" : "nvrtcGetPTX");
    return get(program, data);
}
