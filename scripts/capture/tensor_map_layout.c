/* Tensor maps as NVIDIA's driver encodes them: each parameter alone through its range, then all at
   random. nvcc tensor_map_layout.c -lcuda && ./a.out > maps.csv; the columns are those of
   tests/validate/tensor_map_layout.csv.gz. */

#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TILED, IM2COL, MOST = 5, FLOAT16 = 6, FLOAT32 = 7 };

struct call {
    int kind;
    uint64_t type, rank, address, extents[MOST], strides[MOST - 1], box[MOST], steps[MOST];
    uint64_t interleave, swizzle, promotion, fill;
    int lower[3], upper[3];
    uint32_t channels, pixels;
};

static uint64_t state = 88172645463325252ull;

static uint64_t random_below(uint64_t n)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state >> 11) % n;
}

static void list(const uint64_t *values, int count)
{
    for (int i = 0; i < count; i++)
        printf(",%llu", (unsigned long long)values[i]);
}

static void encode(const struct call *call)
{
    CUtensorMap map __attribute__((aligned(64)));
    uint32_t box[MOST], steps[MOST];
    memset(&map, 0xAA, sizeof map);
    for (int i = 0; i < MOST; i++)
        box[i] = call->box[i], steps[i] = call->steps[i];
    void *address = (void *)call->address;
    CUresult status;
    if (call->kind == TILED)
        status = cuTensorMapEncodeTiled(&map, call->type, call->rank, address, call->extents,
                                        call->strides, box, steps, call->interleave,
                                        call->swizzle, call->promotion, call->fill);
    else
        status = cuTensorMapEncodeIm2col(&map, call->type, call->rank, address, call->extents,
                                         call->strides, call->lower, call->upper, call->channels,
                                         call->pixels, steps, call->interleave, call->swizzle,
                                         call->promotion, call->fill);
    printf("%d", call->kind);
    list(&call->type, 3 + MOST + MOST - 1 + MOST + MOST + 4);
    for (int i = 0; i < 3; i++)
        printf(",%d", call->lower[i]);
    for (int i = 0; i < 3; i++)
        printf(",%d", call->upper[i]);
    printf(",%u,%u,%d", call->channels, call->pixels, status);
    for (int i = 0; i < 16; i++)
        printf(",%016llx", ((unsigned long long *)&map)[i]);
    printf("\n");
}

static struct call plain(int kind, int rank, int type)
{
    struct call call = {kind, type, rank, 0x7f1234560000, .channels = 16, .pixels = 8};
    for (int i = 0; i < rank; i++) {
        call.extents[i] = 64;
        call.box[i] = i ? 8 : 16;
        call.steps[i] = 1;
        if (i)
            call.strides[i - 1] = 1024ull << 6 * (i - 1);
    }
    return call;
}

#define WITH(member, value) \
    do { \
        struct call call = plain(kind, rank, FLOAT16); \
        call.member = (value); \
        encode(&call); \
    } while (0)

static void one_at_a_time(int kind, int rank)
{
    for (int type = 0; type < 20; type++)
        WITH(type, type);
    for (int value = 0; value < 8; value++) {
        WITH(promotion, value & 3);
        WITH(swizzle, value);
        WITH(interleave, value & 3);
        struct call call = plain(kind, rank, FLOAT32);
        call.fill = value & 1;
        encode(&call);
    }
    for (int bit = 4; bit < 57; bit++)
        WITH(address, 1ull << bit);
    for (int i = 0; i < rank; i++) {
        for (int bit = 0; bit < 33; bit++) {
            WITH(extents[i], 1ull << bit);
            WITH(extents[i], (1ull << bit) + 1);
        }
        for (int bit = 0; i && bit < 42; bit++) {
            WITH(strides[i - 1], 1ull << bit);
            WITH(strides[i - 1], 3ull << bit);
        }
        for (int bit = 0; bit < 9; bit++) {
            WITH(box[i], 1 << bit);
            WITH(box[i], (1 << bit) + 1);
        }
        for (int value = 1; value < 10; value++)
            WITH(steps[i], value);
    }
    for (int i = 0; i < 3 && kind == IM2COL; i++)
        for (int value = -130; value < 130; value += 3) {
            WITH(lower[i], value);
            WITH(upper[i], value);
        }
    for (int value = 1; kind == IM2COL && value < 1100; value = 2 * value + 1) {
        WITH(channels, value);
        WITH(pixels, value);
    }
}

static void at_random(int kind, int rank)
{
    struct call call = plain(kind, rank, random_below(16));
    call.address = random_below(1ull << 50) & ~15ull;
    call.promotion = random_below(4);
    call.fill = random_below(2);
    call.swizzle = random_below(5);
    call.interleave = random_below(4) ? 0 : random_below(3);
    for (int i = 0; i < rank; i++) {
        call.extents[i] = 1 + random_below(1ull << (1 + random_below(31)));
        call.box[i] = 1 + random_below(1 << (1 + random_below(7)));
        call.steps[i] = random_below(3) ? 1 : 1 + random_below(8);
        if (i)
            call.strides[i - 1] = random_below(1ull << (5 + random_below(34))) & ~15ull;
    }
    for (int i = 0; i < 3; i++) {
        call.lower[i] = (int)random_below(16) - 8;
        call.upper[i] = (int)random_below(16) - 8;
    }
    call.channels = 1 + random_below(256);
    call.pixels = 1 + random_below(1024);
    encode(&call);
}

int main(void)
{
    CUdevice device;
    CUcontext context;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device))
        return 1;
    cuCtxSetCurrent(context);
    for (int kind = TILED; kind <= IM2COL; kind++)
        for (int rank = kind == IM2COL ? 3 : 1; rank <= MOST; rank++) {
            one_at_a_time(kind, rank);
            for (int i = 0; i < 300; i++)
                at_random(kind, rank);
        }
    return 0;
}
