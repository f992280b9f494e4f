/* Code that a program loads while it runs, and what is in it. The runtime's libraries and the
   driver's libraries and modules are the same here; a kernel has the same handle in all of them. */

#include <elf.h>
#include <stdio.h>

#include "../driver/bundle.h"
#include "runtime.h"

#define ELF_MAGIC 0x464c457fu

static size_t elf_bytes(const Elf64_Ehdr *head)
{
    size_t sections = head->e_shoff + (size_t)head->e_shnum * head->e_shentsize;
    size_t parts = head->e_phoff + (size_t)head->e_phnum * head->e_phentsize;
    size_t most = sections > parts ? sections : parts;
    return most > sizeof *head ? most : sizeof *head;
}

cudaError_t load_image(struct module **module, const void *data, const char *file)
{
    cudaError_t status = begin();
    uint32_t magic;
    if (status || !data)
        return status ? status : cudaErrorInvalidValue;
    memcpy(&magic, data, sizeof magic);
    if (magic == WRAPPER_MAGIC)
        return load_image(module, ((const struct wrapper *)data)->image, file);
    size_t bytes = strlen(data);
    if (magic == IMAGE_MAGIC)
        bytes = image_bytes(data);
    else if (magic == BUNDLE_MAGIC)
        bytes = sizeof(struct bundle_head) + ((const struct bundle_head *)data)->bytes;
    else if (magic == ELF_MAGIC) /* machine code, which ends with its table of sections or parts */
        bytes = elf_bytes(data);
    *module = load_module(data, bytes, file, &status);
    return status;
}

char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *data = size < 0 ? NULL : calloc(1, size + 1);
    *bytes = size;
    if (data && fread(data, 1, *bytes, file) != *bytes) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

cudaError_t load_file(struct module **module, const char *path)
{
    size_t bytes;
    char *data = read_file(path, &bytes);
    if (!data)
        return cudaErrorFileNotFound;
    cudaError_t status = load_image(module, data, path);
    free(data);
    return status;
}

cudaError_t find_kernel(void **kernel, void *module, const char *name)
{
    cudaError_t status = begin();
    if (!status)
        *kernel = function_named(module, name, &status);
    return status;
}

cudaError_t find_global(void **address, size_t *bytes, void *module, const char *name)
{
    void *place = NULL;
    size_t size = 0;
    cudaError_t status = begin();
    if (!status)
        status = symbol_named(module, name, &place, &size);
    if (!status && address)
        *address = place;
    if (!status && bytes)
        *bytes = size;
    return status;
}

cudaError_t list_kernels(unsigned *count, void **kernels, unsigned most, void *module)
{
    cudaError_t status = begin();
    if (status)
        return status;
    if (!module)
        return cudaErrorInvalidResourceHandle;
    struct message message = question(KERNELS);
    put32(&message, ((struct module *)module)->number);
    status = ask(&message);
    size_t bytes = 0;
    const char *names = status ? NULL : take_bytes(&message, &bytes);
    unsigned found = 0;
    for (size_t i = 0; i < bytes && !status; i += strlen(names + i) + 1, found++)
        if (found < most)
            kernels[found] = function_named(module, names + i, &status);
    if (count)
        *count = found;
    close_message(&message);
    return status;
}
