/* Objects of the program that its graphs hold: a graph gives back what it holds when it ends, and
   what was instantiated or cloned of it holds each of them once. */

#include "driver.h"
#include "graph.h"

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

API CUresult cuUserObjectRelease(CUuserObject handle, unsigned count)
{
    struct user_object *object = object_of(handle);
    if (!handle || !count || count > object->held)
        return CUDA_ERROR_INVALID_VALUE;
    release_object(object, count);
    return result(begin());
}

API CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject handle, unsigned count,
                                     unsigned flags)
{
    CUresult status = CUDA_SUCCESS;
    if (!graph || !handle || !count)
        return CUDA_ERROR_INVALID_VALUE;
    if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
        status = cuUserObjectRetain(handle, count);
    if (!status)
        hold_object(graph, object_of(handle), count);
    return status;
}

API CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject handle, unsigned count)
{
    struct holding *each = graph ? graph->held : NULL;
    while (each && (each->object != object_of(handle) || each->count < count))
        each = each->next;
    if (!each)
        return CUDA_ERROR_INVALID_VALUE;
    each->count -= count;
    return cuUserObjectRelease(handle, count);
}

#include "forwards_driver_user_object.h"
