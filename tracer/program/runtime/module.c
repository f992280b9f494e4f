/* What the compiler put into the program: images of code, and the kernels and variables in them.

   They are registered before main; the recorder is told of an image when something of it is first
   asked for. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>

#include "runtime.h"

struct variable {
    struct variable *next;
    struct module *module;
    const void *host;
    const char *name;
    size_t bytes;
    void *address;
    void **managed; /* where the program keeps the address of a __managed__ variable */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct function *functions;
static struct variable *variables;

API void **__cudaRegisterFatBinary(void *data)
{
    struct module *module = calloc(1, sizeof *module);
    module->wrapper = data;
    return (void **)module;
}

API void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

API void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

/* A kernel that only the driver's interface knows has no host function: it stands for itself. */
static struct function *add_function(struct module *module, const void *host, const char *name)
{
    struct function *function = calloc(1, sizeof *function);
    function->module = module;
    function->host = host ? host : function;
    function->name = strdup(name);
    function->next = functions;
    functions = function;
    return function;
}

API void __cudaRegisterFunction(void **handle, const char *host, char *stub, const char *name,
                                int limit, void *tid, void *bid, void *block, void *grid, int *size)
{
    (void)stub, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)size;
    add_function((struct module *)handle, host, name);
}

static struct variable *add_variable(struct module *module, const void *host, const char *name,
                                     size_t bytes)
{
    struct variable *variable = calloc(1, sizeof *variable);
    variable->module = module;
    variable->host = host;
    variable->name = name;
    variable->bytes = bytes;
    variable->next = variables;
    variables = variable;
    return variable;
}

API void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int ext,
                           size_t bytes, int constant, int global)
{
    (void)address, (void)ext, (void)constant, (void)global;
    add_variable((struct module *)handle, host, name, bytes);
}

API void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name,
                                  int ext, size_t bytes, int constant, int global)
{
    (void)address, (void)ext, (void)constant, (void)global;
    add_variable((struct module *)handle, host, name, bytes)->managed = host;
}

API void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t bytes)
{
    (void)handle, (void)name, (void)host, (void)bytes;
}

static const char *file_of(const void *data)
{
    Dl_info info;
    return dladdr(data, &info) && info.dli_fname ? info.dli_fname : "";
}

static cudaError_t send_image(struct module *module, const void *data, size_t bytes,
                              const char *file)
{
    struct message message = question(MODULE);
    put_bytes(&message, data, bytes);
    put_text(&message, file);
    cudaError_t status = ask(&message);
    if (!status) {
        module->number = take32(&message);
        module->is_loaded = 1;
    }
    close_message(&message);
    return status;
}

/* The images of a module one after the other: its own, and those linked into it. */
static cudaError_t load(struct module *module)
{
    const struct wrapper *wrapper = module->wrapper;
    if (module->is_loaded)
        return cudaSuccess;
    if (wrapper->magic != WRAPPER_MAGIC)
        return cudaErrorInvalidKernelImage;
    size_t bytes = image_bytes(wrapper->image);
    const struct image **linked = wrapper->version >= 2 ? wrapper->linked : NULL;
    for (const struct image **each = linked; each && *each; each++)
        bytes += image_bytes(*each);
    char *all = malloc(bytes), *end = all;
    memcpy(end, wrapper->image, image_bytes(wrapper->image));
    end += image_bytes(wrapper->image);
    for (const struct image **each = linked; each && *each; each++) {
        memcpy(end, *each, image_bytes(*each));
        end += image_bytes(*each);
    }
    cudaError_t status = send_image(module, all, bytes, file_of(wrapper->image));
    free(all);
    return status;
}

struct module *load_module(const void *data, size_t bytes, const char *file, cudaError_t *status)
{
    struct module *module = calloc(1, sizeof *module);
    *status = send_image(module, data, bytes, file ? file : file_of(data));
    if (!*status)
        return module;
    free(module);
    return NULL;
}

static cudaError_t learn(struct function *function)
{
    cudaError_t status = load(function->module);
    if (status)
        return status;
    struct message message = question(FUNCTION);
    put32(&message, function->module->number);
    put_text(&message, function->name);
    status = ask(&message);
    if (!status) {
        struct cudaFuncAttributes *own = &function->attributes;
        size_t bytes;
        function->number = take32(&message);
        own->sharedSizeBytes = take32(&message);
        own->constSizeBytes = take32(&message);
        own->localSizeBytes = take32(&message);
        own->maxThreadsPerBlock = take32(&message);
        own->ptxVersion = own->binaryVersion = take32(&message);
        own->clusterDimMustBeSet = take32(&message);
        own->requiredClusterWidth = take32(&message);
        own->requiredClusterHeight = take32(&message);
        own->requiredClusterDepth = take32(&message);
        function->block.x = take32(&message);
        function->block.y = take32(&message);
        function->block.z = take32(&message);
        own->maxDynamicSharedSizeBytes = 48 * 1024 - (int)own->sharedSizeBytes;
        own->preferredShmemCarveout = -1;
        const void *sizes = take_bytes(&message, &bytes);
        function->count = bytes / sizeof *function->parameters;
        function->parameters = malloc(bytes + 1);
        memcpy(function->parameters, sizes, bytes);
        function->is_known = 1;
    }
    close_message(&message);
    return status;
}

/* A kernel by the address of its host function, or by what cudaGetKernel made of that. */
static struct function *look_up(const void *host)
{
    for (struct function *each = functions; each; each = each->next)
        if (each->host == host || each == host)
            return each;
    return NULL;
}

struct function *find_function(const void *host, cudaError_t *status)
{
    pthread_mutex_lock(&lock);
    struct function *found = look_up(host);
    *status = found ? cudaSuccess : cudaErrorInvalidDeviceFunction;
    if (found && !found->is_known)
        *status = learn(found);
    pthread_mutex_unlock(&lock);
    return *status ? NULL : found;
}

struct function *function_named(struct module *module, const char *name, cudaError_t *status)
{
    pthread_mutex_lock(&lock);
    struct function *each = functions;
    while (each && (each->module != module || strcmp(each->name, name)))
        each = each->next;
    if (!each)
        each = add_function(module, NULL, name);
    *status = each->is_known ? cudaSuccess : learn(each);
    pthread_mutex_unlock(&lock);
    return *status ? NULL : each;
}

static cudaError_t place(struct variable *variable)
{
    cudaError_t status = load(variable->module);
    if (status || variable->address)
        return status;
    struct message message = question(SYMBOL);
    put32(&message, variable->module->number);
    put_text(&message, variable->name);
    status = ask(&message);
    if (!status) {
        variable->address = (void *)(uintptr_t)take64(&message);
        variable->bytes = take64(&message);
        note_allocation(variable->address, variable->bytes, variable->managed ? MANAGED : DEVICE);
    }
    close_message(&message);
    return status;
}

cudaError_t find_symbol(const void *host, void **address, size_t *bytes)
{
    cudaError_t status = cudaErrorInvalidSymbol;
    pthread_mutex_lock(&lock);
    for (struct variable *each = variables; each; each = each->next) {
        if (each->host != host && !(each->managed && *each->managed == host))
            continue;
        status = place(each);
        *address = each->address;
        *bytes = each->bytes;
        break;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

cudaError_t symbol_named(struct module *module, const char *name, void **address, size_t *bytes)
{
    pthread_mutex_lock(&lock);
    struct variable *each = variables;
    while (each && (each->module != module || strcmp(each->name, name)))
        each = each->next;
    if (!each)
        each = add_variable(module, NULL, strdup(name), 0);
    cudaError_t status = place(each);
    *address = each->address;
    *bytes = each->bytes;
    pthread_mutex_unlock(&lock);
    return status;
}

/* The compiler's code asks for this before it reads a __managed__ variable through its pointer. */
API char __cudaInitModule(void **handle)
{
    (void)handle;
    pthread_mutex_lock(&lock);
    for (struct variable *each = variables; each; each = each->next)
        if (each->managed && !each->address && !place(each))
            *each->managed = each->address;
    pthread_mutex_unlock(&lock);
    return 1;
}

API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    *kernel = (cudaKernel_t)look_up(host);
    return *kernel ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

/* The assembler is asked in the background: its answer is waited for where it is needed. */
cudaError_t count_registers(struct function *function)
{
    if (function->attributes.numRegs)
        return cudaSuccess;
    struct message message = question(REGISTERS);
    put32(&message, function->number);
    cudaError_t status = ask(&message);
    if (!status)
        function->attributes.numRegs = take32(&message);
    close_message(&message);
    return status;
}

API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *host)
{
    cudaError_t status = begin();
    struct function *function = status ? NULL : find_function(host, &status);
    if (function)
        status = count_registers(function);
    if (!status)
        *attributes = function->attributes;
    return done(status);
}

API cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value)
{
    cudaError_t status = begin();
    struct function *function = status ? NULL : find_function(host, &status);
    if (!function)
        return done(status);
    struct cudaFuncAttributes *own = &function->attributes;
    switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
        if (value < 0 || value + own->sharedSizeBytes > (size_t)device.facts.shared_per_block)
            return done(cudaErrorInvalidValue);
        own->maxDynamicSharedSizeBytes = value;
        break;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
        own->preferredShmemCarveout = value;
        break;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
        own->nonPortableClusterSizeAllowed = value;
        break;
    case cudaFuncAttributeClusterDimMustBeSet:
    case cudaFuncAttributeRequiredClusterWidth:
    case cudaFuncAttributeRequiredClusterHeight:
    case cudaFuncAttributeRequiredClusterDepth:
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
        break;
    default: /* newer ones, such as oversized shared memory: Triton does without where it may not */
        return done(cudaErrorInvalidValue);
    }
    return done(cudaSuccess);
}

API cudaError_t cudaFuncGetName(const char **name, const void *host)
{
    struct function *function = look_up(host);
    if (function)
        *name = function->name;
    return done(function ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

API cudaError_t cudaFuncSetCacheConfig(const void *host, enum cudaFuncCache config)
{
    struct function *function = look_up(host);
    if ((unsigned)config > cudaFuncCachePreferEqual)
        return done(cudaErrorInvalidValue);
    if (function)
        function->cache = config;
    return done(function ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

/* What a kernel prefers of L1: 1 + the percentage of shared memory, 101 + a cache configuration of
   the function or the device, which counts without a percentage; 0: nothing. */
uint32_t preference(const struct function *function)
{
    int carveout = function->attributes.preferredShmemCarveout;
    if (carveout >= 0 && carveout <= 100)
        return 1 + carveout;
    enum cudaFuncCache config = function->cache;
    if (config == cudaFuncCachePreferNone)
        cudaDeviceGetCacheConfig(&config);
    return config == cudaFuncCachePreferNone ? 0 : 101 + config;
}

#include "forwards_runtime_module.h"
