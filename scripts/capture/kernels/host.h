// What the host programs of this folder share: arrays of the same numbers in each run, and a line for each result.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

inline void check(int failure, const char *what) {
    if (failure) printf("%s: %d\n", what, failure), exit(1);
}

inline unsigned mixed(unsigned x) {
    x = (x ^ 61) ^ x >> 16, x *= 9, x ^= x >> 4, x *= 0x27d4eb2d;
    return x ^ x >> 15;
}

template <class T>
T *device_copy(const std::vector<T> &values) {
    T *out;
    check(cudaMalloc(&out, values.size() * sizeof(T) + 16), "cudaMalloc");
    check(cudaMemcpy(out, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
    return out;
}

// Numbers from -scale to scale.
template <class T>
T *numbers(size_t many, float scale = 1.f) {
    std::vector<T> values(many);
    for (size_t i = 0; i < many; ++i) values[i] = T(scale * (float(mixed(i + 7 * many) % 2001) / 1000.f - 1.f));
    return device_copy(values);
}

template <class T>
T *zeros(size_t many) {
    T *out;
    check(cudaMalloc(&out, many * sizeof(T) + 16), "cudaMalloc");
    check(cudaMemset(out, 0, many * sizeof(T)), "cudaMemset");
    return out;
}

// Integers below `below`.
template <class T>
T *integers(size_t many, unsigned below) {
    std::vector<T> values(many);
    for (size_t i = 0; i < many; ++i) values[i] = T(mixed(i) % below);
    return device_copy(values);
}

// 0, step, 2 * step, ...
template <class T>
T *counting(size_t many, int step = 1) {
    std::vector<T> values(many);
    for (size_t i = 0; i < many; ++i) values[i] = T(i * step);
    return device_copy(values);
}

template <class T>
void print_sum(const char *name, const T *out, size_t many) {
    check(cudaDeviceSynchronize(), name);
    std::vector<T> values(many);
    check(cudaMemcpy(values.data(), out, many * sizeof(T), cudaMemcpyDeviceToHost), name);
    double sum = 0, absolute = 0;
    for (T value : values) sum += double(float(value)), absolute += std::fabs(double(float(value)));
    printf("%s: %.4g %.4g\n", name, sum, absolute);
}
