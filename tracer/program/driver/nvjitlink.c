/* nvJitLink: PTX is collected and linked by the recorder; code for optimization at link time (LTO)
   is what nvJitLink itself still compiles, to PTX. */

#include <pthread.h>

#include "bundle.h"
#include "driver.h"
#include "interpose.h"

/* nvJitLinkInputType and nvJitLinkResult, of NVIDIA's nvJitLink.h */
enum { INPUT_PTX = 2, INPUT_OBJECT = 5, INPUT_LIBRARY = 6 };
enum { DONE = 0 };

struct linking {
    struct linking *next;
    void *handle;
    int optimizes; /* made with -lto */
    struct bundle bundle;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct linking *all;

static struct linking *find(void *handle)
{
    pthread_mutex_lock(&lock);
    struct linking *each = all;
    while (each && each->handle != handle)
        each = each->next;
    pthread_mutex_unlock(&lock);
    return each;
}

API int nvJitLinkCreate(void **handle, uint32_t count, const char **options)
{
    int (*create)(void **, uint32_t, const char **) = theirs("nvJitLinkCreate");
    struct linking *linking = calloc(1, sizeof *linking);
    const char **own = calloc(count + 1, sizeof *own);
    int is_ptx = 0;
    for (uint32_t i = 0; i < count; i++) {
        own[i] = options[i];
        linking->optimizes |= !strcmp(options[i], "-lto");
        is_ptx |= !strcmp(options[i], "-ptx");
    }
    if (linking->optimizes && !is_ptx)
        own[count++] = "-ptx";
    int status = create(handle, count, own);
    free(own);
    linking->handle = *handle;
    pthread_mutex_lock(&lock);
    linking->next = all;
    all = linking;
    pthread_mutex_unlock(&lock);
    return status;
}

API int nvJitLinkDestroy(void **handle)
{
    int (*destroy)(void **) = theirs("nvJitLinkDestroy");
    pthread_mutex_lock(&lock);
    for (struct linking **place = &all; *place; place = &(*place)->next) {
        struct linking *linking = *place;
        if (linking->handle != *handle)
            continue;
        *place = linking->next;
        free_bundle(&linking->bundle);
        free(linking);
        break;
    }
    pthread_mutex_unlock(&lock);
    return destroy(handle);
}

API int nvJitLinkAddData(void *handle, int type, const void *data, size_t bytes, const char *name)
{
    int (*add)(void *, int, const void *, size_t, const char *) = theirs("nvJitLinkAddData");
    struct linking *linking = find(handle);
    if (is_device_runtime(name))
        return DONE;
    int is_theirs = type == INPUT_OBJECT || type == INPUT_LIBRARY;
    if (!linking || is_theirs || (linking->optimizes && type != INPUT_PTX))
        return add(handle, type, data, bytes, name);
    add_piece(&linking->bundle, data, bytes);
    return DONE;
}

API int nvJitLinkAddFile(void *handle, int type, const char *path)
{
    int (*add)(void *, int, const char *) = theirs("nvJitLinkAddFile");
    size_t bytes;
    if (is_device_runtime(path))
        return DONE;
    char *data = read_file(path, &bytes);
    if (!data)
        return add(handle, type, path); /* which says what is wrong */
    int status = nvJitLinkAddData(handle, type, data, bytes, path);
    free(data);
    return status;
}

/* The PTX that nvJitLink made of code for optimization is one more piece. */
static int add_optimized(struct linking *linking)
{
    int (*get_size)(void *, size_t *) = theirs("nvJitLinkGetLinkedPtxSize");
    int (*get)(void *, char *) = theirs("nvJitLinkGetLinkedPtx");
    size_t bytes;
    int status = get_size(linking->handle, &bytes);
    char *text = status ? NULL : malloc(bytes);
    if (text)
        status = get(linking->handle, text);
    if (text && !status)
        add_piece(&linking->bundle, text, strnlen(text, bytes));
    free(text);
    return status;
}

API int nvJitLinkComplete(void *handle)
{
    int (*complete)(void *) = theirs("nvJitLinkComplete");
    struct linking *linking = find(handle);
    if (!linking || (!linking->optimizes && !linking->bundle.data))
        return complete(handle);
    int status = linking->optimizes ? complete(handle) : DONE;
    return status || !linking->optimizes ? status : add_optimized(linking);
}

API int nvJitLinkGetLinkedCubinSize(void *handle, size_t *bytes)
{
    int (*get)(void *, size_t *) = theirs("nvJitLinkGetLinkedCubinSize");
    struct linking *linking = find(handle);
    if (!linking || !linking->bundle.data)
        return get(handle, bytes);
    bundle_data(&linking->bundle, bytes);
    return DONE;
}

API int nvJitLinkGetLinkedCubin(void *handle, void *data)
{
    int (*get)(void *, void *) = theirs("nvJitLinkGetLinkedCubin");
    struct linking *linking = find(handle);
    if (!linking || !linking->bundle.data)
        return get(handle, data);
    size_t bytes;
    const void *linked = bundle_data(&linking->bundle, &bytes);
    memcpy(data, linked, bytes);
    return DONE;
}
