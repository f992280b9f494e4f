/* NVIDIA's Management Library: what is known of the device. It has no sensors: no power, no heat. */

#include <stdio.h>
#include <unistd.h>

#include "include/nvml.h"
#include "library.h"

#define DRIVER_VERSION "580.65.06" /* programs read numbers; the first driver of CUDA 13.0 */

static int is_open;

API nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t result = is_open ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    is_open = 0;
    return result;
}

API const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS: return "The operation was successful";
    case NVML_ERROR_UNINITIALIZED: return "NVML was not first initialized with nvmlInit()";
    case NVML_ERROR_INVALID_ARGUMENT: return "A supplied argument is invalid";
    case NVML_ERROR_NOT_SUPPORTED: return "Not supported: cutrace's device has no sensors";
    case NVML_ERROR_NOT_FOUND: return "Not found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "An input argument is not large enough";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "There is no recorder";
    default: return "Unknown error";
    }
}

static nvmlReturn_t write_text(char *into, unsigned length, const char *text)
{
    if (!is_open)
        return NVML_ERROR_UNINITIALIZED;
    if (!into)
        return NVML_ERROR_INVALID_ARGUMENT;
    int needed = snprintf(into, length, "%s", text);
    return needed < (int)length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* There is one device. */
static nvmlReturn_t find_device(int is_this, nvmlDevice_t *found)
{
    if (!is_open)
        return NVML_ERROR_UNINITIALIZED;
    if (!is_this)
        return NVML_ERROR_NOT_FOUND;
    *found = (nvmlDevice_t)&device;
    return NVML_SUCCESS;
}

static void write_bus(char *text, size_t length)
{
    cudaDeviceGetPCIBusId(text, length, 0);
}

API nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *found)
{
    char own[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
    write_bus(own, sizeof own);
    size_t given = strlen(bus), wanted = strlen(own); /* a domain may have 4 or 8 digits */
    return find_device(given >= wanted && !strcmp(bus + given - wanted, own), found);
}

static const char uuid[] = "GPU-63757472-6163-6500-0000-000000000000"; /* "cutrace", as CUDA has it */

static nvmlReturn_t check(nvmlDevice_t handle, const void *into)
{
    if (!is_open)
        return NVML_ERROR_UNINITIALIZED;
    return handle && into ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory)
{
    nvmlReturn_t result = check(handle, memory);
    size_t left, total;
    if (result || cudaMemGetInfo(&left, &total))
        return result ? result : NVML_ERROR_UNKNOWN;
    memory->total = total;
    memory->free = left;
    memory->used = total - left;
    return NVML_SUCCESS;
}

API nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory)
{
    nvmlMemory_t all;
    nvmlReturn_t result = check(handle, memory);
    if (result || (result = nvmlDeviceGetMemoryInfo(handle, &all)))
        return result;
    memory->total = all.total;
    memory->reserved = 0;
    memory->free = all.free;
    memory->used = all.used;
    return NVML_SUCCESS;
}

/* The one process that is known to use the device is the one that asks. */
API nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned *count,
                                                         nvmlProcessInfo_t *processes)
{
    nvmlMemory_t memory;
    nvmlReturn_t result = check(handle, count);
    if (result || (result = nvmlDeviceGetMemoryInfo(handle, &memory)))
        return result;
    unsigned room = *count;
    *count = 1;
    if (!room || !processes)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    const unsigned whole_device = ~0u; /* no instance of one that is partitioned */
    *processes = (nvmlProcessInfo_t){getpid(), memory.used, whole_device, whole_device};
    return NVML_SUCCESS;
}

/* PCI Express of the generation that data-center devices of that capability have (their data sheets:
   V100 and T4 3.0, A100 4.0, H100 5.0), with 16 lanes. */
API nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t handle, unsigned *generation)
{
    nvmlReturn_t result = check(handle, generation);
    if (!result)
        *generation = device.facts.major < 8 ? 3 : device.facts.major == 8 ? 4 : 5;
    return result;
}

API nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t handle, unsigned *lanes)
{
    nvmlReturn_t result = check(handle, lanes);
    if (!result)
        *lanes = 16;
    return result;
}

/* Clocks are those of the device's description: they never change. */
API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t handle, nvmlClockType_t type, unsigned *megahertz)
{
    nvmlReturn_t result = check(handle, megahertz);
    if (result)
        return result;
    if (type == NVML_CLOCK_VIDEO)
        return NVML_ERROR_NOT_SUPPORTED;
    const struct facts *facts = &device.facts;
    *megahertz = (type == NVML_CLOCK_MEM ? facts->memory_kilohertz : facts->kilohertz) / 1000;
    return NVML_SUCCESS;
}

#define CUTRACE_REFUSED(name) \
    API nvmlReturn_t name(void) { return is_open ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_UNINITIALIZED; }
CUTRACE_NVML_REFUSED

#include "forwards_libraries_nvml.h"

/* The first versions, which NCCL looks up: their parameters are those of the second. */
#define FIRST(name) \
    API __typeof__(name##_v2) name##_v1 __asm__(#name) __attribute__((alias(#name "_v2")))
FIRST(nvmlInit);
FIRST(nvmlDeviceGetCount);
FIRST(nvmlDeviceGetHandleByIndex);
FIRST(nvmlDeviceGetHandleByPciBusId);
