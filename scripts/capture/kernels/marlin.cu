// Marlin's product: rows and the size of a group as arguments.
#include "host.h"

#include "marlin_cuda_kernel.cu"

int main(int many, char **words) {
    int m = many > 1 ? atoi(words[1]) : 16, group = many > 2 ? atoi(words[2]) : 128, n = 256, k = 512;
    auto *a = numbers<__half>(m * k);
    auto *b = integers<int>(k * n / 8, 1u << 31);
    auto *scales = numbers<__half>((group < 0 ? 1 : k / group) * n, .01f);
    auto *c = zeros<__half>(m * n);
    int status = marlin_cuda(a, b, c, scales, m, n, k, zeros<int>(n / 128 * 16), group);
    printf("status %d\n", status);
    print_sum("marlin", c, m * n);
}
