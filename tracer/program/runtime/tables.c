/* Tables of functions that cuBLAS asks the runtime for, and cuFFT the driver, beside the documented
   interface: they learn from them to which context and stream a call belongs, and which functions a
   module has. NVIDIA documents none of them; their numbers are in public use, and what each function
   is given says what it is asked for. Any other function or table, that of the driver's check of
   itself among them, is refused by its number. */

#include <stdio.h>

#include "runtime.h"

enum { SLOTS = 64, THREAD_BYTES = 4096 };

/* Of each thread, what tools would keep for it. */
static long thread_storage(void **storage)
{
    static __thread char bytes[THREAD_BYTES];
    *storage = bytes;
    return 0;
}

extern int cuCtxGetCurrent(void **context);

static long context_of(cudaStream_t stream, void **context)
{
    (void)stream;
    return cuCtxGetCurrent(context);
}

static long stream_of(void *context, cudaStream_t stream, cudaStream_t *same, int per_thread)
{
    (void)context, (void)per_thread;
    *same = stream;
    return 0;
}

static long number_of(void *context, cudaStream_t stream, unsigned long long *number)
{
    (void)context;
    return cudaStreamGetId(stream, number);
}

/* Of a context that has a part of the device's SMs: here none has. */
static long limits_of(uint64_t *first, uint64_t *second, void *context)
{
    (void)context;
    *first = *second = 0;
    return 0;
}

/* cuFFT asks for the kernel of a module that it does not know by name. */
extern int cuModuleGetFunctionCount(unsigned *count, void *module);
extern int cuModuleEnumerateFunctions(void **functions, unsigned count, void *module);

static long visit_functions(void *context, void *module, void (*visit)(void *data, void *function),
                            void *data)
{
    enum { VISITED = 1 };
    unsigned count;
    (void)context;
    int status = cuModuleGetFunctionCount(&count, module);
    void **functions = status ? NULL : calloc(count + 1, sizeof *functions);
    if (status || (status = cuModuleEnumerateFunctions(functions, count, module)))
        count = 0;
    for (unsigned k = 0; k < count; k++)
        visit(data, functions[k]);
    free(functions);
    return status ? 0 : VISITED;
}

static long refuse_slot(int slot)
{
    char name[80];
    snprintf(name, sizeof name, "function %d of a table that NVIDIA does not document", slot);
    say_refused(name, "cudaErrorNotSupported");
    return cudaErrorNotSupported;
}

/* A function for each slot of a table, by its number in base 8. */
#define EIGHT(SLOT, tens) SLOT(tens##0) SLOT(tens##1) SLOT(tens##2) SLOT(tens##3) SLOT(tens##4) \
    SLOT(tens##5) SLOT(tens##6) SLOT(tens##7)
#define ALL(SLOT) EIGHT(SLOT, 0) EIGHT(SLOT, 1) EIGHT(SLOT, 2) EIGHT(SLOT, 3) EIGHT(SLOT, 4) \
    EIGHT(SLOT, 5) EIGHT(SLOT, 6) EIGHT(SLOT, 7)
#define REFUSE(slot) static long refuse_##slot(void) { return refuse_slot(0##slot); }
ALL(REFUSE)
#define ADDRESS(slot) (void *)refuse_##slot,
static void *const refusals[SLOTS] = {ALL(ADDRESS)};

static struct table {
    const unsigned char number[16];
    struct {
        int slot;
        void *function;
    } known[3];
    void *slots[SLOTS];
} tables[] = {
    {{0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc},
     {{2, (void *)thread_storage}}, {NULL}},
    {{0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2},
     {{4, (void *)context_of}, {39, (void *)number_of}, {51, (void *)stream_of}}, {NULL}},
    {{0x17, 0x34, 0xdc, 0x26, 0x80, 0x0d, 0x47, 0x45, 0x87, 0x26, 0xc0, 0xf1, 0xe7, 0xdd, 0x8b, 0xca},
     {{4, (void *)limits_of}}, {NULL}},
    {{0x6e, 0x16, 0x3f, 0xbe, 0xb9, 0x58, 0x44, 0x4d, 0x83, 0x5c, 0xe1, 0x82, 0xaf, 0xf1, 0x99, 0x1e},
     {{7, (void *)visit_functions}}, {NULL}},
};

static void fill(struct table *table)
{
    for (int slot = 1; slot < SLOTS; slot++)
        table->slots[slot] = refusals[slot];
    for (int k = 0; k < 3 && table->known[k].slot; k++)
        table->slots[table->known[k].slot] = table->known[k].function;
    table->slots[0] = (void *)sizeof table->slots; /* a table begins with its size */
}

const void *find_table(const char *number)
{
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        if (memcmp(tables[k].number, number, sizeof tables[k].number))
            continue;
        fill(tables + k);
        return tables[k].slots;
    }
    return NULL;
}

API cudaError_t cudaGetExportTable(const void **found, const cudaUUID_t *number)
{
    char name[80];
    *found = find_table(number->bytes);
    if (*found)
        return cudaSuccess;
    size_t length = snprintf(name, sizeof name, "the table of functions ");
    for (size_t k = 0; k < sizeof number->bytes; k++)
        length += snprintf(name + length, sizeof name - length, "%02x", (unsigned char)number->bytes[k]);
    say_refused(name, "cudaErrorNotSupported");
    return cudaErrorNotSupported;
}
