/* What the files of cuSOLVER share: a call's arrays, sizes and options by name. */

#ifndef CUTRACE_CUSOLVER_H
#define CUTRACE_CUSOLVER_H

#include "include/cusolverDn.h"
#include "library.h"

enum { N, M, LDA, NUMBER, LDB, K, LDV };                   /* sizes of a call */
enum { TYPE, LOWER, TRANSPOSED, VECTORS, WIDE, RIGHT, U_JOB, V_JOB,
       IS_UNIT = RIGHT };                                  /* its options */
enum { A, W, INFO, PIVOTS, B, V };                         /* its arrays */

struct cusolverDnContext { cudaStream_t stream; };

cusolverStatus_t solve(cusolverDnHandle_t handle, const struct call *call);
void tell_info(const struct call *call, int value);
void run_potrf(const struct call *call);
void run_potrs(const struct call *call);
void run_getrf(const struct call *call);
void run_getrs(const struct call *call);
void run_syev(const struct call *call);
void run_geqrf(const struct call *call);
void run_orgqr(const struct call *call);
void run_ormqr(const struct call *call);
void run_gesvd(const struct call *call);
void run_trtri(const struct call *call);

static inline double get(const struct call *call, int array, int64_t i)
{
    return element_of(call->array[array], call->option[TYPE], i);
}

static inline void set(const struct call *call, int array, int64_t i, double value)
{
    set_element(call->array[array], call->option[TYPE], i, value);
}

#define SOLVE(what, ...) \
    struct call call = {.name = "cusolverDn" #what, __VA_ARGS__}; \
    return solve(handle, &call)

#endif
