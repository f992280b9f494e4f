/* The device, alone, as the runtime has it: attributes have the same numbers in both. */

#include "driver.h"

API CUresult cuDeviceGet(CUdevice *number, int ordinal)
{
    int value;
    CUresult status = result(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, ordinal));
    if (!status)
        *number = ordinal;
    return status;
}

API CUresult cuDeviceGetName(char *name, int room, CUdevice number)
{
    int value;
    CUresult status = cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, number);
    if (!status && room > 0) {
        strncpy(name, device.name, room - 1);
        name[room - 1] = '\0';
    }
    return status;
}

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice number)
{
    int value;
    CUresult status = cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, number);
    if (!status)
        *bytes = device.facts.memory_bytes;
    return status;
}

API CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice number)
{
    memset(uuid, 0, sizeof *uuid);
    memcpy(uuid->bytes, "cutrace", 7);
    int value;
    return cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, number);
}

#include "forwards_driver_device.h"
