/* A process that opens this library while it runs (cutrace.recording) looked up the system's dlsym
   when it started. So that it comes by interpose.c, too, the addresses that its files keep of dlsym
   are rewritten: now, and for each library that Python loads from then on. So are the addresses of
   functions of NVIDIA's compilers, where a package has looked for them already. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "interpose.h"
#include "runtime.h"

#if defined(__x86_64__)
enum { CALLED = R_X86_64_JUMP_SLOT, KEPT = R_X86_64_GLOB_DAT };
#else
enum { CALLED = R_AARCH64_JUMP_SLOT, KEPT = R_AARCH64_GLOB_DAT };
#endif

/* The tables of a loaded file that say which names stand where. */
struct names {
    const Elf64_Sym *symbols;
    const char *text;
    const Elf64_Rela *called, *kept;
    size_t called_bytes, kept_bytes;
};

/* The system's loader has made addresses of most offsets in it. */
static const void *table_at(const struct dl_phdr_info *info, const Elf64_Dyn *entry)
{
    uintptr_t place = entry->d_un.d_ptr;
    return (const void *)(place < info->dlpi_addr ? info->dlpi_addr + place : place);
}

static struct names read_names(const struct dl_phdr_info *info, const Elf64_Dyn *entry)
{
    struct names names = {0};
    for (; entry->d_tag != DT_NULL; entry++)
        switch (entry->d_tag) {
        case DT_SYMTAB: names.symbols = table_at(info, entry); break;
        case DT_STRTAB: names.text = table_at(info, entry); break;
        case DT_JMPREL: names.called = table_at(info, entry); break;
        case DT_RELA: names.kept = table_at(info, entry); break;
        case DT_PLTRELSZ: names.called_bytes = entry->d_un.d_val; break;
        case DT_RELASZ: names.kept_bytes = entry->d_un.d_val; break;
        }
    return names;
}

/* What the loader made read-only after it had filled it in stays so. */
static int is_sealed(const struct dl_phdr_info *info, uintptr_t place)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *part = info->dlpi_phdr + i;
        uintptr_t first = info->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_RELRO && place >= first && place - first < part->p_memsz)
            return 1;
    }
    return 0;
}

static void write_address(const struct dl_phdr_info *info, void **place, void *address)
{
    uintptr_t size = sysconf(_SC_PAGESIZE), page = (uintptr_t)place & ~(size - 1);
    if (*place == address || mprotect((void *)page, size, PROT_READ | PROT_WRITE))
        return;
    *place = address;
    if (is_sealed(info, (uintptr_t)place))
        mprotect((void *)page, size, PROT_READ);
}

static void bind_names(const struct dl_phdr_info *info, const struct names *names, const Elf64_Rela *first,
                       size_t bytes)
{
    for (const Elf64_Rela *each = first; each < first + bytes / sizeof *each; each++) {
        unsigned type = ELF64_R_TYPE(each->r_info);
        const Elf64_Sym *symbol = names->symbols + ELF64_R_SYM(each->r_info);
        if ((type == CALLED || type == KEPT) && !strcmp(names->text + symbol->st_name, "dlsym"))
            write_address(info, (void **)(info->dlpi_addr + each->r_offset), (void *)dlsym);
    }
}

static int visit(struct dl_phdr_info *info, size_t size, void *own)
{
    (void)size;
    if ((void *)info->dlpi_addr == own || strstr(info->dlpi_name, "linux-vdso"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        uintptr_t place = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        struct names names = read_names(info, (const Elf64_Dyn *)place);
        if (names.symbols && names.text && names.called)
            bind_names(info, &names, names.called, names.called_bytes);
        if (names.symbols && names.text && names.kept)
            bind_names(info, &names, names.kept, names.kept_bytes);
    }
    return 0;
}

static int visit_compiler(struct dl_phdr_info *info, size_t size, void *found)
{
    (void)size;
    if (strstr(info->dlpi_name, "libnvrtc.so") || strstr(info->dlpi_name, "libnvJitLink.so")) {
        find_theirs(info->dlpi_name);
        *(int *)found = 1;
    }
    return 0;
}

static void replace_kept(const struct dl_phdr_info *info, const Elf64_Phdr *part)
{
    char *first = (char *)info->dlpi_addr + part->p_vaddr, *end = first + part->p_memsz;
    first += -(uintptr_t)first % sizeof(void *);
    for (void **place = (void **)first; (char *)(place + 1) <= end; place++) {
        void *ours = ours_for(*place);
        if (ours)
            write_address(info, place, ours);
    }
}

/* Variables of all files but our own, which keeps their addresses. */
static int visit_data(struct dl_phdr_info *info, size_t size, void *own)
{
    (void)size;
    if ((void *)info->dlpi_addr == own)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *part = info->dlpi_phdr + i;
        if (part->p_type == PT_LOAD && part->p_flags & PF_W)
            replace_kept(info, part);
    }
    return 0;
}

static void search_new_libraries(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    Dl_info own;
    pthread_mutex_lock(&lock);
    redirect_new_libraries();
    if (is_within && dladdr((void *)search_new_libraries, &own))
        dl_iterate_phdr(visit, own.dli_fbase);
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void start(void)
{
    on_python_module = search_new_libraries;
}

/* What cutrace.recording calls when it has opened this library. */
API void _cutrace_bind(void)
{
    int has_compiler = 0;
    Dl_info own;
    is_within = 1;
    watch_loader();
    search_new_libraries();
    dl_iterate_phdr(visit_compiler, &has_compiler);
    if (has_compiler && dladdr((void *)_cutrace_bind, &own))
        dl_iterate_phdr(visit_data, own.dli_fbase);
}
