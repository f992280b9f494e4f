/* What the files of this library share. It stands in for CUDA's runtime: the functions that a
   program compiled by nvcc calls, for a device that is cutrace's recorder (see wire.h). */

#ifndef CUTRACE_RUNTIME_H
#define CUTRACE_RUNTIME_H

#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "wire.h"

#define API __attribute__((visibility("default")))

#define MOST_ADDRESS ((uintptr_t)1 << 47) /* that a program can have on x86-64 and Arm */

/* The recorder's memory file is mapped at `base`, where kernels see it. */
struct device {
    uint64_t base, bytes, constants, texels;
    struct facts facts;
    char name[256];
};
extern struct device device;
int connect_recorder(void);

/* Set by the runtime's own calls that make a device's primary context. */
extern int is_runtime_used;

/* site.c: the calls in the program, or in one of its libraries, that led here: the innermost first,
   all in the file that is mapped at `base`. */
#define MOST_CALLS 24
struct stack {
    const char *base;
    uint32_t count;
    uint64_t places[MOST_CALLS];
};
void find_stack(struct stack *stack);
int is_in_program(const struct stack *stack);
void put_stack(struct message *message, const struct stack *stack);

/* error.c: each function of the interface ends with `return done(status)`. After a kernel's fault
   `begin` gives that fault for ever, as CUDA does; the launch itself was answered before. */
cudaError_t begin(void);
cudaError_t done(cudaError_t status);
void set_fault(cudaError_t status);
void note_runtime(uintptr_t start, uintptr_t end); /* a library that has a runtime in itself lies there */
void forget_error(cudaError_t status); /* the driver's functions leave the runtime's last error alone */
cudaError_t refuse(const char *name);
void say_refused(const char *name, const char *error);

/* tables.c: a table of functions that NVIDIA does not document, by its number of 16 bytes; or NULL. */
const void *find_table(const char *number);

/* module.c: what the program or its compiler hands over, and the kernels and variables therein. */
#define WRAPPER_MAGIC 0x466243b1u
#define IMAGE_MAGIC 0xba55ed50u

/* What the compiler passes: `linked` are the images of files that were compiled with -rdc. */
struct wrapper {
    uint32_t magic, version;
    const struct image *image;
    const struct image **linked;
};
struct image {
    uint32_t magic;
    uint16_t version, head;
    uint64_t bytes;
};
struct module {
    const struct wrapper *wrapper;
    int is_loaded;
    uint32_t number;
};
static inline size_t image_bytes(const struct image *image)
{
    return image && image->magic == IMAGE_MAGIC ? image->head + image->bytes : 0;
}
struct parameter {
    uint32_t offset, bytes;
};
struct function {
    struct function *next;
    struct module *module;
    const void *host;
    char *name;
    int is_known;
    uint32_t number;
    struct cudaFuncAttributes attributes;
    dim3 block; /* the only one that it takes; zeros if it takes others */
    enum cudaFuncCache cache;
    uint32_t count;
    struct parameter *parameters;
};
struct function *find_function(const void *host, cudaError_t *status);
cudaError_t find_symbol(const void *host, void **address, size_t *bytes);
struct module *load_module(const void *data, size_t bytes, const char *file, cudaError_t *status);
struct function *function_named(struct module *module, const char *name, cudaError_t *status);
cudaError_t symbol_named(struct module *module, const char *name, void **address, size_t *bytes);
cudaError_t count_registers(struct function *function);
uint32_t preference(const struct function *function);

/* library.c: code that the program loads: PTX, machine code, fatbinaries. `file` is
   where it came from, or NULL. `list_kernels` writes `most` kernels at most and counts all. `read_file` returns a file with a zero behind it, or NULL. */
cudaError_t load_image(struct module **module, const void *data, const char *file);
cudaError_t load_file(struct module **module, const char *path);
char *read_file(const char *path, size_t *bytes);
cudaError_t find_kernel(void **kernel, void *module, const char *name);
cudaError_t find_global(void **address, size_t *bytes, void *module, const char *name);
cudaError_t list_kernels(unsigned *count, void **kernels, unsigned most, void *module);

/* memory.c: what is allocated, so that pointers can be judged without asking. */
enum place { HOST, DEVICE, MANAGED, PINNED };
struct allocation {
    uint64_t address, bytes;
    enum place place;
    void *registered; /* the host memory that lies there, of cudaHostRegister */
    int is_of_graph;  /* it stays for as long as the program runs */
};
cudaError_t allocate(void **pointer, size_t bytes, enum place place, const char *name);
cudaError_t allocate_in_pool(void **pointer, size_t bytes);
cudaError_t release(void *pointer);
void note_allocation(const void *pointer, size_t bytes, enum place place);
int find_allocation(const void *pointer, struct allocation *found);
enum place place_of(const void *pointer);
int can_use_registered(void); /* the device takes the program's pointers to registered memory */
void replace_registered(char *value, size_t bytes); /* those among these bytes */
int is_mapped(const void *pointer, size_t bytes); /* in the program, whoever put it there */
int is_of_graph(const void *pointer);
void give_to_graph(const void *pointer);

/* copy.c: bytes from here to there: rows `pitch` bytes apart, slices `height` rows apart. What is
   copied begins at byte, row and slice `at` of `data`. Any of these numbers may be nonsense. */
struct side {
    char *data;
    size_t pitch, height;
    struct cudaPos at;
    const struct cudaArray *array; /* NULL: memory that is no array */
};
struct copy {
    struct side to, from;
    size_t width, rows, slices;
    enum cudaMemcpyKind kind;
};
cudaError_t submit_copy(cudaStream_t stream, struct copy copy);
cudaError_t check_copy(const struct copy *copy);
cudaError_t run_copy(const void *what);
struct copy copy_of(const struct cudaMemcpy3DParms *parameters);
cudaError_t add_copy(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *needs,
                     size_t count, struct copy copy);
cudaError_t change_copy(cudaGraphNode_t node, struct copy copy);

cudaError_t copy_flat(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                      cudaStream_t stream);
cudaError_t copy_rows(struct side to, struct side from, size_t width, size_t height,
                      enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t fill_array(struct side array, size_t row, struct side flat_side, int to_array,
                       size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t copy_symbol(const void *symbol, size_t offset, const void *other, size_t bytes,
                        int to_symbol, enum cudaMemcpyKind kind, cudaStream_t stream);

static inline struct side flat(const void *data)
{
    return (struct side){.data = (char *)data};
}

static inline struct side rows(const void *data, size_t pitch)
{
    return (struct side){.data = (char *)data, .pitch = pitch};
}

/* Elements of one value; `width` counts them. */
struct set {
    struct side to;
    size_t width, rows, slices;
    unsigned value, element;
};
cudaError_t check_set(const struct set *set);
cudaError_t submit_set(cudaStream_t stream, struct set set);
cudaError_t run_set(const void *what);

/* advice.c: what was advised about memory that is now another's */
void forget_advice(const void *pointer, size_t bytes);

/* array.c */
struct cudaArray {
    uint32_t number;
    struct cudaChannelFormatDesc texel;
    struct cudaExtent extent;
    unsigned flags;
    size_t texel_bytes, pitch;
    char *data;
    int is_level; /* of a mipmapped array, with which it goes */
};
struct cudaMipmappedArray {
    unsigned levels;
    struct cudaArray *level[16];
};
struct side array_side(cudaArray_const_t array, size_t x, size_t y, size_t z);

/* stream.c */
typedef cudaError_t (*action)(const void *what);
struct CUstream_st {
    cudaStream_t next;
    unsigned flags;
    int priority;
    cudaGraph_t graph;
    struct held *held;
};
int is_default(cudaStream_t stream);
cudaGraph_t capturing(cudaStream_t stream);
void end_capture(cudaGraph_t graph);
cudaStream_t next_stream(cudaStream_t stream); /* all that the program made; NULL: the first */

/* queue.c: what is submitted runs at once, or becomes a node of the graph being captured. */
cudaError_t submit(cudaStream_t stream, enum cudaGraphNodeType type, action run, const void *what,
                   size_t bytes);

/* held.c: what a stream waits for in memory; the numbers are CUstreamWaitValue_flags'. */
enum { AT_LEAST, EQUAL, ANY_BIT, NOT_ALL };
struct awaited {
    const void *place;
    uint64_t value;
    int bytes, how;
};
cudaError_t await(cudaStream_t stream, const struct awaited *awaited);
cudaGraph_t held_work(cudaStream_t stream); /* what is kept behind its last wait, or NULL */
cudaError_t release_held(void);
cudaError_t finish_held(cudaStream_t stream, int must_end); /* NULL: all */

/* graph_work.c */
cudaGraph_t make_graph(void);
void free_graph(cudaGraph_t graph);
cudaError_t add_work(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *needs,
                     size_t count, enum cudaGraphNodeType type, action run, const void *what,
                     size_t bytes);
cudaError_t add_captured(cudaGraph_t graph, enum cudaGraphNodeType type, action run,
                         const void *what, size_t bytes);

void set_said(cudaGraphNode_t node, const void *said, size_t bytes);
const void *said_of(cudaGraphNode_t node, size_t bytes); /* NULL: nothing of that size */
void set_work(cudaGraphNode_t node, action run, const void *what, size_t bytes);
cudaGraphNode_t node_in(cudaGraphExec_t exec, cudaGraphNode_t origin); /* NULL: it has no such node */
cudaError_t run_graph(cudaGraph_t graph);
cudaGraph_t clone_graph(cudaGraph_t graph);

/* graph_conditional.c */
cudaError_t add_conditional(cudaGraphNode_t *made, cudaGraph_t graph, const cudaGraphNode_t *needs,
                            size_t count, struct cudaConditionalNodeParams *params);
cudaError_t conditional_of(cudaGraphNode_t node, struct cudaConditionalNodeParams *params);
void begin_graph(cudaGraph_t graph); /* before it is launched */

/* graph_memory.c */
cudaError_t capture_allocation(cudaGraph_t graph, void **pointer, size_t bytes);
cudaError_t capture_free(cudaGraph_t graph, void *pointer);

/* driver/nvtx.c: the ranges in which the calling thread is, to be freed; NULL if in none. */
char *ranges_now(size_t *bytes);

/* Blocks of a cluster that every device can launch, and that a program may ask for. */
#define PORTABLE_CLUSTER 8
#define LARGEST_CLUSTER 16

/* Threads of a block, or blocks of a cluster, however many a program says. */
static inline uint64_t threads_of(dim3 size)
{
    uint64_t all, rows = (uint64_t)size.x * size.y;
    return __builtin_mul_overflow(rows, size.z, &all) ? UINT64_MAX : all;
}

/* run_launch.c */
struct launch {
    struct function *function;
    dim3 grid, block, cluster;
    uint32_t shared, flags, prefers;
    cudaStream_t stream;
    struct stack stack;
    size_t bytes;
    char arguments[];
};
cudaError_t run_launch(const void *what);
cudaError_t finish_waiting(cudaStream_t stream, int is_all, int must_end);
#define COOPERATIVE 1
#define MUST_END 2
#define PREFERENCE_BITS 8 /* and up: preference() */

/* launch.c */
struct launch *make_launch(const void *function, dim3 grid, dim3 block, void **arguments,
                           size_t shared, cudaError_t *status);
cudaError_t launch_kernel(const void *function, dim3 grid, dim3 block, void **arguments,
                          size_t shared, cudaStream_t stream, unsigned flags, dim3 cluster);

/* What the forwards of forwards.txt call besides. */
cudaError_t begin_on(int number);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host);
cudaError_t record_event(cudaEvent_t event, cudaStream_t stream, int is_node);
cudaError_t finish_event(cudaEvent_t event, int must_end);
cudaError_t finish_stream(cudaStream_t stream, int must_end);
cudaError_t set_kernel(cudaGraphNode_t node, const struct cudaKernelNodeParams *params);
cudaError_t list_nodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count, int roots);
cudaError_t event_of(cudaGraphNode_t node, enum cudaGraphNodeType type, cudaEvent_t *event);
cudaError_t free_if_any(void *pointer);
cudaError_t allocate_rows(void **pointer, size_t *pitch, size_t width, size_t rows, size_t slices);

#endif
