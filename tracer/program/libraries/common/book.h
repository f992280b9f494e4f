/* What the programs of the book "CUDA by Example" take from its header: checks of calls, blocks of
   random numbers, colours of numbers, threads. It is taken where a program's own folders have none. */

#ifndef __BOOK_H__
#define __BOOK_H__

#include <cstdio>
#include <cstdlib>
#include <pthread.h>

#include <cuda_runtime.h>

static void HandleError(cudaError_t status, const char *file, int line)
{
    if (status == cudaSuccess)
        return;
    printf("%s in %s at line %d\n", cudaGetErrorString(status), file, line);
    exit(EXIT_FAILURE);
}
#define HANDLE_ERROR(call) (HandleError(call, __FILE__, __LINE__))
#define HANDLE_NULL(a)                                                                           \
    {                                                                                            \
        if ((a) == NULL) {                                                                       \
            printf("Host memory failed in %s at line %d\n", __FILE__, __LINE__);                 \
            exit(EXIT_FAILURE);                                                                  \
        }                                                                                        \
    }

template <class T> void swap(T &a, T &b)
{
    T first = a;
    a = b;
    b = first;
}

inline void *big_random_block(int bytes)
{
    unsigned char *data = (unsigned char *)malloc(bytes);
    HANDLE_NULL(data);
    for (int i = 0; i < bytes; i++)
        data[i] = rand();
    return data;
}

inline int *big_random_block_int(int count)
{
    int *data = (int *)malloc(count * sizeof(int));
    HANDLE_NULL(data);
    for (int i = 0; i < count; i++)
        data[i] = rand();
    return data;
}

#ifdef __CUDACC__
/* One channel of a colour given by lightness and saturation (as two limits) and hue in degrees. */
static __device__ unsigned char value(float n1, float n2, int hue)
{
    hue = (hue + 360) % 360;
    float part = hue < 60    ? n1 + (n2 - n1) * hue / 60
                 : hue < 180 ? n2
                 : hue < 240 ? n1 + (n2 - n1) * (240 - hue) / 60
                             : n1;
    return (unsigned char)(255 * part);
}

static __device__ uchar4 cutrace_color(float lightness)
{
    int hue = (180 + (int)(360.0f * lightness)) % 360;
    float limit = lightness <= 0.5f ? 2 * lightness : 1; /* saturation 1 */
    float least = 2 * lightness - limit;
    return make_uchar4(value(least, limit, hue + 120), value(least, limit, hue),
                       value(least, limit, hue - 120), 255);
}

static __global__ void float_to_color(uchar4 *colors, const float *numbers)
{
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    int at = x + y * blockDim.x * gridDim.x;
    colors[at] = cutrace_color(numbers[at]);
}

static __global__ void float_to_color(unsigned char *colors, const float *numbers)
{
    int x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    int at = x + y * blockDim.x * gridDim.x;
    ((uchar4 *)colors)[at] = cutrace_color(numbers[at]);
}
#endif

typedef pthread_t CUTThread;
typedef void *(*CUT_THREADROUTINE)(void *);
#define CUT_THREADPROC void *
#define CUT_THREADEND return 0

static inline CUTThread start_thread(CUT_THREADROUTINE function, void *data)
{
    pthread_t thread;
    pthread_create(&thread, NULL, function, data);
    return thread;
}

static inline void end_thread(CUTThread thread) { pthread_join(thread, NULL); }
static inline void destroy_thread(CUTThread thread) { pthread_cancel(thread); }
static inline void wait_for_threads(const CUTThread *threads, int count)
{
    for (int i = 0; i < count; i++)
        end_thread(threads[i]);
}

#endif
