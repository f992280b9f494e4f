/* Objects of the program that its graphs hold: what is held by a graph is never given back, as if
   that graph lasted as long as the program. */

#include <stdlib.h>

#include "driver.h"

struct user_object {
    void *data;
    CUhostFn destroy;
    unsigned held;
};

static struct user_object *object_of(CUuserObject handle)
{
    return (struct user_object *)handle;
}

API CUresult cuUserObjectCreate(CUuserObject *handle, void *data, CUhostFn destroy, unsigned held,
                                unsigned flags)
{
    if (!handle || !destroy || !held || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct user_object *object = malloc(sizeof *object);
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *object = (struct user_object){data, destroy, held};
    *handle = (CUuserObject)object;
    return result(begin());
}

API CUresult cuUserObjectRetain(CUuserObject handle, unsigned count)
{
    if (!handle || !count)
        return CUDA_ERROR_INVALID_VALUE;
    object_of(handle)->held += count;
    return result(begin());
}

API CUresult cuUserObjectRelease(CUuserObject handle, unsigned count)
{
    struct user_object *object = object_of(handle);
    if (!handle || !count || count > object->held)
        return CUDA_ERROR_INVALID_VALUE;
    object->held -= count;
    if (!object->held) {
        object->destroy(object->data);
        free(object);
    }
    return result(begin());
}

API CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject handle, unsigned count,
                                     unsigned flags)
{
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    return flags & CU_GRAPH_USER_OBJECT_MOVE ? result(begin()) : cuUserObjectRetain(handle, count);
}

API CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject handle, unsigned count)
{
    return graph ? cuUserObjectRelease(handle, count) : CUDA_ERROR_INVALID_VALUE;
}
