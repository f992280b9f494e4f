/* Programs and libraries that have NVIDIA's runtime in themselves, as nvcc links it by default. Its
   functions call the driver by tables that NVIDIA does not document; so, before anything of the file
   runs, those that it names (`.symtab`) are made to jump to ours. In a file that is stripped of names
   the runtime is found by its text (program/static_runtime.py). What is not found stays as it is,
   and is told so when it asks for the tables. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interpose.h"
#include "runtime.h"

#if defined(__x86_64__)
/* jmp *0(%rip), and the address behind it */
static const unsigned char jump[] = {0xff, 0x25, 0, 0, 0, 0};
#elif defined(__aarch64__)
/* ldr x16, 8; br x16, and the address behind them */
static const unsigned char jump[] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6};
#else
#error "cutrace records programs on x86-64 and AArch64"
#endif

struct code {
    unsigned char jump[sizeof jump];
    void *to;
} __attribute__((packed));

struct object {
    const unsigned char *file;
    size_t bytes;
    char *base; /* where it is loaded, minus the addresses that it has in its file */
    const struct dl_phdr_info *loaded;
};

/* exports.h has each function of our runtime: EXPORT(name, function, version of CUDA that means this
   by the name; 0 for all others). */
#define EXPORT(name, function, version) extern void export_##version##_##name(void) __asm__(#function);
#include "exports.h"
#undef EXPORT

static const struct export {
    const char *name;
    int version;
    void *function;
} exports[] = {
#define EXPORT(name, function, version) {#name, version, (void *)export_##version##_##name},
#include "exports.h"
#undef EXPORT
};

static int redirect(char *place, void *to)
{
    struct code code;
    uintptr_t page = sysconf(_SC_PAGESIZE), first = (uintptr_t)place & ~(page - 1);
    size_t bytes = (uintptr_t)place + sizeof code - first;
    memcpy(code.jump, jump, sizeof jump);
    code.to = to;
    if (mprotect((void *)first, bytes, PROT_READ | PROT_WRITE | PROT_EXEC))
        return -1;
    memcpy(place, &code, sizeof code);
    __builtin___clear_cache(place, place + sizeof code);
    return mprotect((void *)first, bytes, PROT_READ | PROT_EXEC);
}

/* The program's own runtime is the one of all that have none. */
static void note_library(const struct object *object)
{
    if (!*object->loaded->dlpi_name)
        return;
    for (int i = 0; i < object->loaded->dlpi_phnum; i++) {
        const ElfW(Phdr) *own = object->loaded->dlpi_phdr + i;
        uintptr_t start = (uintptr_t)object->base + own->p_vaddr;
        if (own->p_type == PT_LOAD && own->p_flags & PF_X)
            note_runtime(start, start + own->p_memsz);
    }
}

static int is_runtime(const char *name)
{
    return !strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6);
}

/* Ours of a name, and of that version where it means another thing there; they are sorted. */
static void *find_own(const char *name, int version)
{
    size_t low = 0, high = sizeof exports / sizeof *exports;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(exports[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    void *found = NULL;
    for (; low < sizeof exports / sizeof *exports && !strcmp(exports[low].name, name); low++)
        if (!exports[low].version || exports[low].version == version)
            found = exports[low].function;
    return found;
}

/* By names that a version has and others have not: cuda_runtime_api.h of 11.8, 12.9 and 13.0. */
static int find_version(const Elf64_Sym *symbols, size_t count, const char *names)
{
    int has_properties = 0, has_threads = 0;
    for (size_t i = 0; i < count; i++) {
        has_properties |= !strcmp(names + symbols[i].st_name, "cudaGetDeviceProperties_v2");
        has_threads |= !strcmp(names + symbols[i].st_name, "cudaThreadSynchronize");
    }
    return has_properties ? 12 : has_threads ? 11 : 13;
}

static void redirect_all(const struct object *object, const Elf64_Sym *symbols, size_t count,
                         const char *names)
{
    int version = find_version(symbols, count, names);
    if (version == 11) {
        fprintf(stderr, "cutrace: this program has the runtime of CUDA 11 or older in itself, which "
                        "is not recorded: build it with CUDA 12 or 13\n");
        return;
    }
    note_library(object);
    for (size_t i = 0; i < count; i++) {
        const char *name = names + symbols[i].st_name;
        if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC || symbols[i].st_shndx == SHN_UNDEF ||
            !is_runtime(name))
            continue;
        void *own = find_own(name, version);
        if (own && redirect(object->base + symbols[i].st_value, own))
            fprintf(stderr, "cutrace: this machine does not let %s be replaced\n", name);
    }
}

static int is_inside(const struct object *object, uint64_t offset, uint64_t bytes)
{
    return offset <= object->bytes && bytes <= object->bytes - offset;
}

/* A process that runs already may have NVIDIA's shared runtime, too, which exports its names. */
static int has_names(const Elf64_Shdr *section)
{
    return section->sh_type == SHT_SYMTAB || (is_within && section->sh_type == SHT_DYNSYM);
}

/* static_runtimes.h has the texts of the runtime's versions. */
struct probe {
    uint32_t offset, bytes;
    uint64_t word, hash;
};

struct function_place {
    const char *name;
    uint32_t offset;
};

#define RUNTIME(version, major, bytes)
#define PROBE(offset, bytes, word, hash) {offset, bytes, word, hash},
#define PLACE(name, offset)
#define END
static const struct probe probes[] = {
#include "static_runtimes.h"
};
#undef PROBE
#undef PLACE
#undef END
#define PROBE(offset, bytes, word, hash)
#define PLACE(name, offset) {#name, offset},
#define END {NULL, 0},
static const struct function_place places[] = {
#include "static_runtimes.h"
};
#undef RUNTIME
#undef PLACE
#undef END
#define RUNTIME(version, major, bytes) {major, bytes},
#define PLACE(name, offset)
#define END
static const struct {
    int major;
    size_t bytes;
} runtimes[] = {
#include "static_runtimes.h"
};
enum { RUNTIMES = sizeof runtimes / sizeof *runtimes, STEP = 16,
       PROBES = sizeof probes / sizeof *probes / RUNTIMES };

static uint64_t word_at(const unsigned char *data)
{
    uint64_t word;
    memcpy(&word, data, sizeof word);
    return word;
}

static int is_there(const struct probe *probe, const unsigned char *text)
{
    uint64_t hash = 0xcbf29ce484222325u;
    if (word_at(text + probe->offset) != probe->word)
        return 0;
    for (size_t at = 0; at < probe->bytes; at += sizeof hash)
        hash = (hash ^ word_at(text + probe->offset + at)) * 0x100000001b3u;
    return hash == probe->hash;
}

static const struct function_place *places_of(int runtime)
{
    const struct function_place *first = places;
    for (; runtime; first++)
        runtime -= !first->name;
    return first;
}

static void redirect_places(const struct object *object, const Elf64_Shdr *text, size_t start,
                            int runtime)
{
    note_library(object);
    for (const struct function_place *each = places_of(runtime); each->name; each++) {
        void *own = find_own(each->name, runtimes[runtime].major);
        if (own && redirect(object->base + text->sh_addr + start + each->offset, own))
            fprintf(stderr, "cutrace: this machine does not let %s be replaced\n", each->name);
    }
}

/* A linker puts the runtime last, mostly. */
static void search_text(const struct object *object, const Elf64_Shdr *section)
{
    const unsigned char *text = object->file + section->sh_offset;
    size_t end = section->sh_size & ~(size_t)(STEP - 1);
    for (size_t at = end < STEP ? 0 : end - STEP; at; at -= STEP) {
        uint64_t word = word_at(text + at);
        for (int n = 0; n < RUNTIMES; n++) {
            const struct probe *probe = probes + n * PROBES;
            if (word != probe->word || at < probe->offset ||
                runtimes[n].bytes > section->sh_size - (at - probe->offset))
                continue;
            int found = 0;
            while (found < PROBES && is_there(probe + found, text + at - probe->offset))
                found++;
            if (found == PROBES) {
                redirect_places(object, section, at - probe->offset, n);
                return;
            }
        }
    }
}

static const Elf64_Shdr *section_named(const struct object *object, const char *name)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)object->file;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(object->file + head->e_shoff);
    if (head->e_shstrndx >= head->e_shnum)
        return NULL;
    const Elf64_Shdr *names = sections + head->e_shstrndx;
    if (!is_inside(object, names->sh_offset, names->sh_size))
        return NULL;
    for (unsigned i = 0; i < head->e_shnum; i++) {
        const Elf64_Shdr *own = sections + i;
        if (own->sh_name < names->sh_size && own->sh_type != SHT_NOBITS &&
            is_inside(object, own->sh_offset, own->sh_size) &&
            !strcmp((const char *)object->file + names->sh_offset + own->sh_name, name))
            return own;
    }
    return NULL;
}

/* Every version of the runtime takes this from the system, and few other files do. */
static void search_stripped(const struct object *object)
{
    static const char rare[] = "\0mkfifo";
    const Elf64_Shdr *names = section_named(object, ".dynstr"), *text = section_named(object, ".text");
    if (names && text && text->sh_addr % STEP == 0 &&
        memmem(object->file + names->sh_offset, names->sh_size, rare, sizeof rare))
        search_text(object, text);
}

/* Whether the runtime is in it: then its registration of code has a name there. */
static void search(const struct object *object)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)object->file;
    if (!is_inside(object, 0, sizeof *head) || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(Elf64_Shdr) ||
        !is_inside(object, head->e_shoff, head->e_shnum * sizeof(Elf64_Shdr)))
        return;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(object->file + head->e_shoff);
    for (unsigned i = 0; i < head->e_shnum; i++) {
        const Elf64_Shdr *own = sections + i;
        if (!has_names(own) || own->sh_link >= head->e_shnum)
            continue;
        const Elf64_Shdr *text = sections + own->sh_link;
        if (is_inside(object, own->sh_offset, own->sh_size) &&
            is_inside(object, text->sh_offset, text->sh_size) &&
            memmem(object->file + text->sh_offset, text->sh_size, "__cudaRegisterFatBinary", 24)) {
            redirect_all(object, (const Elf64_Sym *)(object->file + own->sh_offset),
                         own->sh_size / sizeof(Elf64_Sym),
                         (const char *)object->file + text->sh_offset);
            return;
        }
    }
    search_stripped(object);
}

/* What was looked at, of which nothing is looked at again; libraries come one by one. */
static int is_new(const void *base)
{
    static const void **seen;
    static size_t count;
    for (size_t i = 0; i < count; i++)
        if (seen[i] == base)
            return 0;
    seen = realloc(seen, (count + 1) * sizeof *seen);
    seen[count++] = base;
    return 1;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    if (!is_new((void *)info->dlpi_addr))
        return 0;
    struct stat status;
    int file = open(*info->dlpi_name ? info->dlpi_name : "/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) || !status.st_size) {
        if (file >= 0)
            close(file);
        return 0;
    }
    void *mapped = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (mapped == MAP_FAILED)
        return 0;
    struct object object = {mapped, status.st_size, (char *)info->dlpi_addr, info};
    search(&object);
    munmap(mapped, status.st_size);
    return 0;
}

static int is_recorded(char **environment)
{
    for (; environment && *environment; environment++)
        if (!strncmp(*environment, "CUTRACE_RECORDER=", 17))
            return 1;
    return 0;
}

void redirect_new_libraries(void)
{
    if (is_within || is_recorded(environ))
        dl_iterate_phdr(visit, NULL);
}

/* The system's loader calls an empty function, which is meant for debuggers, when it has mapped a
   library and all that it needs, and has run nothing of them yet. It is made to jump here. */
static void on_change(void)
{
    if (_r_debug.r_state == RT_CONSISTENT)
        redirect_new_libraries();
}

/* Whether the function ends before the jump does, and nothing but padding follows. */
static int is_empty(const unsigned char *code)
{
#if defined(__x86_64__)
    static const unsigned char mark[] = {0xf3, 0x0f, 0x1e, 0xfa}, padding[] = "\x66\x2e\x0f\x1f\x84\x80"
                                                                              "\x40\x44\x00\x90\xcc";
    size_t at = memcmp(code, mark, sizeof mark) ? 0 : sizeof mark;
    if ((uintptr_t)code % STEP || code[at] != 0xc3)
        return 0;
    while (++at < sizeof(struct code))
        if (!memchr(padding, code[at], sizeof padding - 1))
            return 0;
#else
    static const uint32_t mark = 0xd503245f, back = 0xd65f03c0, padding = 0xd503201f;
    const uint32_t *word = (const uint32_t *)code, *end = word + sizeof(struct code) / sizeof *word;
    word += *word == mark;
    if ((uintptr_t)code % STEP || *word != back)
        return 0;
    while (++word < end)
        if (*word && *word != padding)
            return 0;
#endif
    return 1;
}

void watch_loader(void)
{
    unsigned char *place = (unsigned char *)_r_debug.r_brk;
    if (place && is_empty(place))
        redirect((char *)place, (void *)on_change);
}

/* The linker's option `initfirst` has this run before all that the program's own files start with,
   and before the system's library is ready for more than this. */
__attribute__((constructor)) static void start(int count, char **words, char **environment)
{
    (void)count, (void)words;
    Dl_info own;
    if (!is_recorded(environment) || !dladdr((void *)start, &own))
        return;
    is_new(own.dli_fbase);
    dl_iterate_phdr(visit, NULL);
    watch_loader();
}
