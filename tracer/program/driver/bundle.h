/* What linkers put together: pieces of code one after the other, which the recorder links. One piece
   of text is left as it is, so that it is what any driver loads. */

#ifndef CUTRACE_BUNDLE_H
#define CUTRACE_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

#define BUNDLE_MAGIC 0x52545543u

struct bundle_head {
    uint32_t magic, count;
    uint64_t bytes; /* of all that follows: for each piece its bytes, 64 bits, and the piece */
};

struct bundle {
    char *data;
    size_t bytes;
};

void add_piece(struct bundle *bundle, const void *data, size_t bytes);
const void *bundle_data(const struct bundle *bundle, size_t *bytes);
void free_bundle(struct bundle *bundle);

/* Whether it is NVIDIA's library for launches by kernels, whose calls are the recorder's. */
int is_device_runtime(const char *name);

#endif
