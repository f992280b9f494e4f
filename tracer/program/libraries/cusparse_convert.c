/* cuSPARSE on the host: matrices from one form into another, and elements put in order. Values are
   moved as bytes, whatever their type is. */

#include "cusparse.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* ---- where rows begin, and the row of each element */

static void run_count(const struct call *call)
{
    const int *rows = call->array[0];
    int *starts = call->written, base = call->option[0], at = 0;
    for (int i = 0; i <= call->size[1]; i++) {
        while (at < call->size[0] && rows[at] - base < i)
            at++;
        starts[i] = at + base;
    }
}

static void run_spread(const struct call *call)
{
    const int *starts = call->array[0];
    int *rows = call->written, base = call->option[0];
    for (int i = 0; i < call->size[1]; i++)
        for (int k = starts[i] - base; k < starts[i + 1] - base; k++)
            rows[k] = i + base;
}

static cusparseStatus_t convert(cusparseHandle_t handle, const char *name,
                                void (*run)(const struct call *), const int *from, int nonzeros,
                                int lines, int *to, cusparseIndexBase_t base)
{
    struct call call = {.name = name, .run = run, .array = {(void *)from}, .written = to,
                        .size = {nonzeros, lines}, .option = {base}};
    if (!handle)
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    return submit_call(handle->stream, &call) ? CUSPARSE_STATUS_EXECUTION_FAILED
                                              : CUSPARSE_STATUS_SUCCESS;
}

/* ---- elements of one matrix to the places of another */

/* Where element `at` of a matrix goes to: its line, its number in the line, its value. */
static void put_element(const struct operands *on, int64_t to, int64_t line, int64_t other,
                        int64_t from)
{
    const struct cusparseSpMatDescr *d = &on->d;
    size_t bytes = bytes_of(d->type);
    if (d->is_coo)
        set_index(d->major, d->major_type, to, line + d->base);
    set_index(d->minor, d->minor_type, to, other + d->base);
    if (d->values && on->a.values)
        memcpy((char *)d->values + to * bytes, (const char *)on->a.values + from * bytes, bytes);
}

/* By the lines of the new form; within a line in the order that they had. */
static void run_turn(const struct call *call)
{
    const struct operands *on = call->array[0];
    int64_t lines = on->d.is_by_column ? on->d.columns : on->d.rows;
    int64_t *next = calloc(lines + 2, sizeof *next);
    struct walk walk = {.matrix = &on->a}, again = walk;
    while (next && next_element(&walk))
        next[(on->d.is_by_column ? walk.column : walk.row) + 1]++;
    for (int64_t i = 0; next && i < lines; i++)
        next[i + 1] += next[i];
    for (int64_t i = 0; next && i <= lines; i++)
        set_index(on->d.major, on->d.major_type, i, next[i] + on->d.base);
    while (next && next_element(&again)) {
        int64_t line = on->d.is_by_column ? again.column : again.row;
        int64_t other = on->d.is_by_column ? again.row : again.column;
        put_element(on, next[line]++, line, other, again.at - 1);
    }
    free(next);
}

API cusparseStatus_t cusparseCsr2cscEx2(cusparseHandle_t handle, int rows, int columns, int nonzeros,
                                        const void *values, const int *starts, const int *indices,
                                        void *to_values, int *to_starts, int *to_indices,
                                        cudaDataType type, cusparseAction_t action,
                                        cusparseIndexBase_t base, cusparseCsr2CscAlg_t algorithm,
                                        void *buffer)
{
    int is_numeric = action == CUSPARSE_ACTION_NUMERIC, narrow = CUSPARSE_INDEX_32I;
    struct operands operands = {
        .a = {rows, columns, nonzeros, starts, indices, is_numeric ? (void *)values : NULL, narrow,
              narrow, base, type, 0, 0, 0, 0},
        .d = {rows, columns, nonzeros, to_starts, to_indices, to_values, narrow, narrow, base, type,
              0, 1, 0, 0}};
    struct call call = {.name = "cusparseCsr2cscEx2", .run = run_turn, .written = to_indices};
    return submit_operands(handle, &call, &operands);
}

/* ---- dense and sparse */

static char *dense_element(const struct cusparseDnMatDescr *b, int64_t i, int64_t j)
{
    return (char *)b->values + dense_place(b, 0, i, j) * bytes_of(b->type);
}

static void run_fill(const struct call *call)
{
    const struct operands *on = call->array[0];
    size_t bytes = bytes_of(on->c.type);
    struct walk walk = {.matrix = &on->a};
    for (int64_t i = 0; i < on->c.rows; i++)
        for (int64_t j = 0; j < on->c.columns; j++)
            memset(dense_element(&on->c, i, j), 0, bytes);
    while (next_element(&walk))
        memcpy(dense_element(&on->c, walk.row, walk.column),
               (const char *)on->a.values + (walk.at - 1) * bytes, bytes);
}

static int is_zero(const char *element, int type)
{
    static const char zeros[SCALAR_BYTES];
    return !memcmp(element, zeros, bytes_of(type)) ||
           ((type == CUDA_R_32F || type == CUDA_R_64F) && element_of(element, type, 0) == 0); /* -0 */
}

/* Take what is not zero, by the lines of the sparse matrix; of one that has no room, count it. */
static int64_t take_dense(const struct cusparseDnMatDescr *b, const struct cusparseSpMatDescr *d,
                          int has_room)
{
    int64_t lines = d->is_by_column ? d->columns : d->rows, count = 0;
    int64_t others = d->is_by_column ? d->rows : d->columns;
    size_t bytes = bytes_of(b->type);
    for (int64_t line = 0; line < lines; line++) {
        if (has_room && !d->is_coo)
            set_index(d->major, d->major_type, line, count + d->base);
        for (int64_t other = 0; other < others; other++) {
            const char *from = d->is_by_column ? dense_element(b, other, line)
                                               : dense_element(b, line, other);
            if (is_zero(from, b->type))
                continue;
            if (has_room) {
                if (d->is_coo)
                    set_index(d->major, d->major_type, count, line + d->base);
                set_index(d->minor, d->minor_type, count, other + d->base);
                memcpy((char *)d->values + count * bytes, from, bytes);
            }
            count++;
        }
    }
    if (has_room && !d->is_coo)
        set_index(d->major, d->major_type, lines, count + d->base);
    return count;
}

static void run_take(const struct call *call)
{
    const struct operands *on = call->array[0];
    struct walk walk = {.matrix = &on->d};
    if (!on->d.block) {
        take_dense(&on->b, &on->d, 1);
        return;
    }
    size_t bytes = bytes_of(on->d.type); /* the columns of blocks are given */
    memset(on->d.values, 0, bytes * on->d.nonzeros);
    while (next_element(&walk))
        memcpy((char *)on->d.values + (walk.at - 1) * bytes,
               dense_element(&on->b, walk.row, walk.column), bytes);
}

API cusparseStatus_t cusparseDenseToSparse_analysis(cusparseHandle_t handle,
                                                    cusparseConstDnMatDescr_t b,
                                                    cusparseSpMatDescr_t d,
                                                    cusparseDenseToSparseAlg_t algorithm,
                                                    void *buffer)
{
    if (!d->block)
        d->nonzeros = take_dense(b, d, 0);
    return CUSPARSE_STATUS_SUCCESS;
}

/* ---- elements in order, and the permutation that puts them there */

struct element {
    int line, other, from;
};

static int compare(const void *one, const void *other)
{
    const struct element *a = one, *b = other;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->other != b->other)
        return a->other < b->other ? -1 : 1;
    return a->from < b->from ? -1 : a->from > b->from;
}

/* By the first array, then by the second; the permutation goes along. */
static void sort_elements(int *lines, int *others, int *permutation, int64_t count)
{
    struct element *all = calloc(count + 1, sizeof *all);
    for (int64_t i = 0; all && i < count; i++)
        all[i] = (struct element){lines[i], others[i], permutation ? permutation[i] : 0};
    if (all)
        qsort(all, count, sizeof *all, compare);
    for (int64_t i = 0; all && i < count; i++) {
        lines[i] = all[i].line, others[i] = all[i].other;
        if (permutation)
            permutation[i] = all[i].from;
    }
    free(all);
}

static void run_sort(const struct call *call)
{
    sort_elements(call->array[0], call->array[1], call->array[2], call->size[0]);
}

static void run_sort_lines(const struct call *call)
{
    const int *starts = call->array[0];
    int *indices = call->array[1], *permutation = call->array[2], base = call->option[0];
    int *same = calloc(call->size[0] + 1, sizeof *same);
    for (int64_t i = 0; same && i < call->size[1]; i++) {
        int first = starts[i] - base, count = starts[i + 1] - starts[i];
        sort_elements(same, indices + first, permutation ? permutation + first : NULL, count);
    }
    free(same);
}

static cusparseStatus_t sort(cusparseHandle_t handle, const char *name,
                             void (*run)(const struct call *), const int *lines, int *others,
                             int *permutation, int nonzeros, int rows, int base)
{
    struct call call = {.name = name, .run = run, .array = {(void *)lines, others, permutation},
                        .written = others, .size = {nonzeros, rows}, .option = {base}};
    if (!handle)
        return CUSPARSE_STATUS_NOT_INITIALIZED;
    return submit_call(handle->stream, &call) ? CUSPARSE_STATUS_EXECUTION_FAILED
                                              : CUSPARSE_STATUS_SUCCESS;
}

static void run_number(const struct call *call)
{
    for (int i = 0; i < call->size[0]; i++)
        ((int *)call->written)[i] = i;
}

#include "forwards_libraries_cusparse_convert.h"
