/* The calls of NVIDIA's Management Library that cutrace answers, and names of others, which get
   NVML_ERROR_NOT_SUPPORTED. Source: NVML API Reference, "Modules". */

#ifndef __nvml_nvml_h__
#define __nvml_nvml_h__
#define NVML_API_VERSION 13
#define NVML_DEVICE_NAME_BUFFER_SIZE 64
#define NVML_DEVICE_NAME_V2_BUFFER_SIZE 96
#define NVML_DEVICE_UUID_BUFFER_SIZE 80
#define NVML_DEVICE_UUID_V2_BUFFER_SIZE 96
#define NVML_DEVICE_SERIAL_BUFFER_SIZE 30
#define NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE 32
#define NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE 80
#define NVML_SYSTEM_NVML_VERSION_BUFFER_SIZE 80

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_ALREADY_INITIALIZED = 5,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_INSUFFICIENT_POWER = 8,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_IRQ_ISSUE = 11,
    NVML_ERROR_LIBRARY_NOT_FOUND = 12,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;
typedef enum { NVML_FEATURE_DISABLED, NVML_FEATURE_ENABLED } nvmlEnableState_t;
typedef enum { NVML_TEMPERATURE_GPU } nvmlTemperatureSensors_t;
typedef enum {
    NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
    NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
} nvmlTemperatureThresholds_t;
typedef enum {
    NVML_CLOCK_GRAPHICS,
    NVML_CLOCK_SM,
    NVML_CLOCK_MEM,
    NVML_CLOCK_VIDEO
} nvmlClockType_t;
typedef enum {
    NVML_TOTAL_POWER_SAMPLES,
    NVML_GPU_UTILIZATION_SAMPLES,
    NVML_MEMORY_UTILIZATION_SAMPLES
} nvmlSamplingType_t;
typedef enum {
    NVML_VALUE_TYPE_DOUBLE,
    NVML_VALUE_TYPE_UNSIGNED_INT,
    NVML_VALUE_TYPE_UNSIGNED_LONG,
    NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
} nvmlValueType_t;
typedef enum {
    NVML_COMPUTEMODE_DEFAULT,
    NVML_COMPUTEMODE_EXCLUSIVE_THREAD,
    NVML_COMPUTEMODE_PROHIBITED,
    NVML_COMPUTEMODE_EXCLUSIVE_PROCESS
} nvmlComputeMode_t;
typedef enum { NVML_PSTATE_0, NVML_PSTATE_UNKNOWN = 32 } nvmlPstates_t;

typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[NVML_DEVICE_PCI_BUS_ID_BUFFER_SIZE];
} nvmlPciInfo_t;
typedef struct { unsigned version; char branch[80]; } nvmlSystemDriverBranchInfo_t;
typedef struct { unsigned long long total, free, used; } nvmlMemory_t;
typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;
typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;
typedef struct { unsigned gpu, memory; } nvmlUtilization_t;
typedef union {
    double dVal;
    unsigned uiVal;
    unsigned long ulVal;
    unsigned long long ullVal;
} nvmlValue_t;
typedef struct { unsigned long long timeStamp; nvmlValue_t sampleValue; } nvmlSample_t;

nvmlReturn_t nvmlInit_v2(void);
nvmlReturn_t nvmlInitWithFlags(unsigned flags);
nvmlReturn_t nvmlShutdown(void);
const char *nvmlErrorString(nvmlReturn_t result);
nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length);
nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_t *branch, unsigned length);
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length);
nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version);
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version);
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *found);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *found);
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *text, nvmlDevice_t *found);
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned *index);
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *name, unsigned length);
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *text, unsigned length);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory);
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t handle, nvmlComputeMode_t *mode);
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t handle, nvmlEnableState_t *active);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t handle, unsigned *count,
                                                     nvmlProcessInfo_t *processes);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t handle, unsigned *count,
                                                      nvmlProcessInfo_t *processes);
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor);
nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t handle, unsigned *bits);
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t handle, nvmlClockType_t type, unsigned *megahertz);
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t handle, nvmlClockType_t type,
                                       unsigned *megahertz);
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t handle, nvmlClockType_t type,
                                            unsigned *megahertz);
typedef enum { NVML_P2P_STATUS_OK } nvmlGpuP2PStatus_t;
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t handle, nvmlDevice_t peer, int capability,
                                    nvmlGpuP2PStatus_t *status);

#ifdef __cplusplus
#define CUTRACE_REFUSED(name) nvmlReturn_t name(...);
#else
#define CUTRACE_REFUSED(name) nvmlReturn_t name();
#endif
#define CUTRACE_NVML_REFUSED \
    CUTRACE_REFUSED(nvmlDeviceGetPowerUsage) \
    CUTRACE_REFUSED(nvmlDeviceGetTotalEnergyConsumption) \
    CUTRACE_REFUSED(nvmlDeviceGetPowerManagementLimit) \
    CUTRACE_REFUSED(nvmlDeviceGetPowerManagementLimitConstraints) \
    CUTRACE_REFUSED(nvmlDeviceGetPowerManagementDefaultLimit) \
    CUTRACE_REFUSED(nvmlDeviceGetPowerManagementMode) \
    CUTRACE_REFUSED(nvmlDeviceGetEnforcedPowerLimit) \
    CUTRACE_REFUSED(nvmlDeviceSetPowerManagementLimit) \
    CUTRACE_REFUSED(nvmlDeviceGetPowerState) \
    CUTRACE_REFUSED(nvmlDeviceGetPerformanceState) \
    CUTRACE_REFUSED(nvmlDeviceGetTemperature) \
    CUTRACE_REFUSED(nvmlDeviceGetTemperatureV) \
    CUTRACE_REFUSED(nvmlDeviceGetTemperatureThreshold) \
    CUTRACE_REFUSED(nvmlDeviceGetFanSpeed) \
    CUTRACE_REFUSED(nvmlDeviceGetUtilizationRates) \
    CUTRACE_REFUSED(nvmlDeviceGetSamples) \
    CUTRACE_REFUSED(nvmlDeviceGetSerial) \
    CUTRACE_REFUSED(nvmlDeviceGetPcieThroughput) \
    CUTRACE_REFUSED(nvmlDeviceGetPersistenceMode) \
    CUTRACE_REFUSED(nvmlDeviceSetPersistenceMode) \
    CUTRACE_REFUSED(nvmlDeviceGetSupportedMemoryClocks) \
    CUTRACE_REFUSED(nvmlDeviceGetSupportedGraphicsClocks) \
    CUTRACE_REFUSED(nvmlDeviceSetApplicationsClocks) \
    CUTRACE_REFUSED(nvmlDeviceResetApplicationsClocks) \
    CUTRACE_REFUSED(nvmlDeviceSetGpuLockedClocks) \
    CUTRACE_REFUSED(nvmlDeviceResetGpuLockedClocks) \
    CUTRACE_REFUSED(nvmlDeviceGetCurrentClocksThrottleReasons) \
    CUTRACE_REFUSED(nvmlDeviceGetCurrentClocksEventReasons) \
    CUTRACE_REFUSED(nvmlDeviceGetMigMode) \
    CUTRACE_REFUSED(nvmlDeviceGetEccMode) \
    CUTRACE_REFUSED(nvmlDeviceGetNvLinkState) \
    CUTRACE_REFUSED(nvmlDeviceGetNvLinkCapability) \
    CUTRACE_REFUSED(nvmlDeviceGetFieldValues) \
    CUTRACE_REFUSED(nvmlSystemGetConfComputeSettings) \
    CUTRACE_REFUSED(nvmlDeviceGetTopologyCommonAncestor)
CUTRACE_NVML_REFUSED
#undef CUTRACE_REFUSED

#define nvmlInit nvmlInit_v2
#define nvmlDeviceGetCount nvmlDeviceGetCount_v2
#define nvmlDeviceGetHandleByIndex nvmlDeviceGetHandleByIndex_v2
#define nvmlDeviceGetHandleByPciBusId nvmlDeviceGetHandleByPciBusId_v2
#define nvmlDeviceGetPciInfo nvmlDeviceGetPciInfo_v3
#define nvmlDeviceGetComputeRunningProcesses nvmlDeviceGetComputeRunningProcesses_v3
#define nvmlDeviceGetGraphicsRunningProcesses nvmlDeviceGetGraphicsRunningProcesses_v3

#ifdef __cplusplus
}
#endif
#endif
