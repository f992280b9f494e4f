/* What a program and its recorder say to one another: every message, in one place.

   The program asks and waits for the answer, or tells and goes on. A message is a head (its kind,
   and how many bytes follow), then its fields in order, little-endian and side by side: `I` has 32
   bits, `Q` 64, `s` is a number of bytes (32 bits) and these bytes. An answer has a cudaError_t in
   the place of the kind, and no fields unless that is 0. The recorder (wire.py) reads this list. */

#ifndef CUTRACE_WIRE_H
#define CUTRACE_WIRE_H

#include <stddef.h>
#include <stdint.h>

/* MESSAGE(name, number, fields of the question, fields of the answer): "-" is told, not asked.

   HELLO     process, checksum of this file -> first address and bytes of the arena; where in its
             file constants and texels begin; the facts of the device, 64 bits each; its name
   MODULE    what the compiler embedded; the file that has it, if any -> number of the module
   FUNCTION  module, name -> number of the function; bytes of shared, constant and local memory,
             most threads a block, capability its PTX is for, whether it is launched in clusters
             only, the cluster and the block that it demands, along each axis, or zeros; offset and
             bytes of each parameter, 32 bits each
   KERNELS   module -> names of its kernels, each with a zero behind it
   REGISTERS function -> registers a thread
   SYMBOL    module, name -> address, bytes
   ALLOCATE  bytes, alignment, name (or none); the program's calls that led to it: addresses, 64
             bits each, the innermost first, that of the file's mapping, the file; where it lies
             (`enum place`) -> address
   FREE      address
   RESERVE   bytes, alignment -> address of a range in which there is no memory yet
   UNRESERVE address of a reserved range
   MAP       address in a reserved range, bytes of memory to put there; FREE takes it away
   COPIED    direction (cudaMemcpyKind; 0: a set), bytes, address on the device
   LAUNCH    function, grid, block, cluster, dynamic shared bytes, flags (1: cooperative, 2:
             it may not wait for the program, from 256 on what it prefers of L1), the parameters' bytes side by side; the program's
             calls that led to it, as of ALLOCATE; names of the NVTX ranges in which it lies, the
             innermost first, each with a zero behind it -> what the kernel printed
   ARRAY     channel bits x y z w, kind (cudaChannelFormatKind), width, height, depth, flags
             -> number of the array, its offset in the file, bytes from row to row, of a texel
   DROP      number of an array
   TEXTURE   1: array, 2: linear, 3: pitched, 4: levels; array (the first level's) or address;
             channel bits and kind; width, height, bytes from row to row; the cudaTextureDesc; the
             cudaResourceViewDesc if there is one; of levels the arrays (32 bits each) -> handle
   SURFACE   number of an array -> handle
   RELEASE   handle of a texture
   FITS      function, threads a block, dynamic shared bytes -> blocks on an SM
   LIMIT     number (cudaLimit), value
   LIBRARY   name of a library's call that the program computed itself, an address that it wrote
   COUNT     1: have launches counted and not recorded, 0: no more -> picoseconds that the device
             needs at least for those
   CLOCK     -> picoseconds that all launches before it take, as estimated
   PHASE     what becomes of the launches that follow: 0: recorded, 1: run only, 2: left out
             -> launches since the phase before it began
   NAME      address of an array, its name */
#define MESSAGES(MESSAGE) \
    MESSAGE(HELLO, 1, "II", "QQQQss") \
    MESSAGE(MODULE, 2, "ss", "I") \
    MESSAGE(FUNCTION, 3, "Is", "IIIIIIIIIIIIIs") \
    MESSAGE(KERNELS, 35, "I", "s") \
    MESSAGE(REGISTERS, 15, "I", "I") \
    MESSAGE(SYMBOL, 4, "Is", "QQ") \
    MESSAGE(ALLOCATE, 5, "QQssQsI", "Q") \
    MESSAGE(FREE, 6, "Q", "") \
    MESSAGE(RESERVE, 17, "QQ", "Q") \
    MESSAGE(UNRESERVE, 18, "Q", "") \
    MESSAGE(MAP, 19, "QQ", "") \
    MESSAGE(COPIED, 7, "IQQ", "-") \
    MESSAGE(LAUNCH, 8, "IIIIIIIIIIIIssQss", "s") \
    MESSAGE(ARRAY, 9, "IIIIIQQQI", "IQQI") \
    MESSAGE(DROP, 10, "I", "") \
    MESSAGE(TEXTURE, 11, "IQIIIIIQQQsss", "Q") \
    MESSAGE(SURFACE, 12, "I", "Q") \
    MESSAGE(RELEASE, 13, "Q", "") \
    MESSAGE(FITS, 14, "III", "I") \
    MESSAGE(LIMIT, 16, "IQ", "-") \
    MESSAGE(LIBRARY, 31, "sQ", "-") \
    MESSAGE(COUNT, 30, "I", "Q") \
    MESSAGE(CLOCK, 32, "", "Q") \
    MESSAGE(PHASE, 33, "I", "Q") \
    MESSAGE(NAME, 34, "Qs", "-")

/* What the program may ask of its device, in the order of HELLO's answer. */
#define FACTS(FACT) \
    FACT(major) \
    FACT(minor) \
    FACT(processors) \
    FACT(threads_per_block) \
    FACT(block_x) \
    FACT(block_y) \
    FACT(block_z) \
    FACT(grid_x) \
    FACT(grid_y) \
    FACT(grid_z) \
    FACT(warps_per_sm) \
    FACT(blocks_per_sm) \
    FACT(registers_per_sm) \
    FACT(registers_per_block) \
    FACT(shared_per_sm) \
    FACT(shared_per_block) \
    FACT(shared_reserved) \
    FACT(constant_bytes) \
    FACT(memory_bytes) \
    FACT(memory_kilohertz) \
    FACT(bus_bits) \
    FACT(l2_bytes) \
    FACT(kilohertz) \
    FACT(single_to_double)

enum kind {
#define MESSAGE(name, number, question, answer) name = number,
    MESSAGES(MESSAGE)
#undef MESSAGE
};

struct facts {
#define FACT(name) int64_t name;
    FACTS(FACT)
#undef FACT
};

/* A question being written, then its answer being read; the fields are checked against the list. */
struct message {
    enum kind kind;
    const char *fields;
    char *data;
    size_t bytes, room, at;
};

struct message question(enum kind kind);
void put32(struct message *message, uint32_t value);
void put64(struct message *message, uint64_t value);
void put_bytes(struct message *message, const void *data, size_t bytes);
void put_text(struct message *message, const char *text);

/* Send it and wait; return the answer's error. What is not read yet goes with close_message. */
int ask(struct message *message);
void tell(struct message *message);
uint32_t take32(struct message *message);
uint64_t take64(struct message *message);
const void *take_bytes(struct message *message, size_t *bytes);
void close_message(struct message *message);

#endif
