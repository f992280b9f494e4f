/* What programs for CUDA 1 to 4 took from the library cutil of NVIDIA's SDK of then, in a header
   alone: checks of calls, timers, options, comparisons, files of numbers, PGM and PPM images.
   Programs are run by nobody who could press a key, so that CUT_EXIT asks for none. */

#ifndef CUTIL_H
#define CUTIL_H

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <time.h>
#include <vector>

#include <cuda_runtime.h>

enum CUTBoolean { CUTFalse, CUTTrue };

/* Checks, each of which ends the program. */
#define CUTRACE_REQUIRE(holds, ...)                                                              \
    do {                                                                                         \
        if (!(holds)) {                                                                          \
            fprintf(stderr, __VA_ARGS__);                                                        \
            exit(EXIT_FAILURE);                                                                  \
        }                                                                                        \
    } while (0)
#define CUDA_SAFE_CALL_NO_SYNC(call)                                                             \
    do {                                                                                         \
        cudaError_t cut_status = (call);                                                         \
        CUTRACE_REQUIRE(cut_status == cudaSuccess, "Cuda error in file '%s' in line %i : %s.\n", \
                        __FILE__, __LINE__, cudaGetErrorString(cut_status));                     \
    } while (0)
#define CUDA_SAFE_CALL(call)                                                                     \
    do {                                                                                         \
        CUDA_SAFE_CALL_NO_SYNC(call);                                                            \
        CUDA_SAFE_CALL_NO_SYNC(cudaDeviceSynchronize());                                         \
    } while (0)
#define CUT_SAFE_CALL(call)                                                                      \
    CUTRACE_REQUIRE((call) == CUTTrue, "Cut error in file '%s' in line %i.\n", __FILE__, __LINE__)
#define CUT_CHECK_ERROR(message)                                                                 \
    do {                                                                                         \
        cudaError_t cut_status = cudaGetLastError();                                             \
        if (cut_status == cudaSuccess)                                                           \
            cut_status = cudaDeviceSynchronize();                                                \
        CUTRACE_REQUIRE(cut_status == cudaSuccess,                                               \
                        "Cuda error: %s in file '%s' in line %i : %s.\n", message, __FILE__,     \
                        __LINE__, cudaGetErrorString(cut_status));                               \
    } while (0)
#define CU_SAFE_CALL_NO_SYNC(call)                                                               \
    do {                                                                                         \
        int cut_status = (int)(call);                                                            \
        CUTRACE_REQUIRE(!cut_status, "Cuda driver error %x in file '%s' in line %i.\n",          \
                        cut_status, __FILE__, __LINE__);                                         \
    } while (0)
#define CU_SAFE_CALL(call) CU_SAFE_CALL_NO_SYNC(call)
#define CUFFT_SAFE_CALL(call)                                                                    \
    CUTRACE_REQUIRE(!(call), "CUFFT error in file '%s' in line %i.\n", __FILE__, __LINE__)
#define CUT_SAFE_MALLOC(call)                                                                    \
    CUTRACE_REQUIRE(call, "Host malloc failure in file '%s' in line %i\n", __FILE__, __LINE__)
#define CUT_CONDITION(holds) CUT_SAFE_CALL((holds) ? CUTTrue : CUTFalse)
#define CUT_BANK_CHECKER(array, index) array[index]
#define cutilSafeCall(call) CUDA_SAFE_CALL_NO_SYNC(call)
#define cutilSafeCallNoSync(call) CUDA_SAFE_CALL_NO_SYNC(call)
#define cutilCheckError(call) CUT_SAFE_CALL(call)
#define cutilCheckMsg(message) CUT_CHECK_ERROR(message)
#define cutilSafeMalloc(call) CUT_SAFE_MALLOC(call)
#define cufftSafeCall(call) CUFFT_SAFE_CALL(call)
#define cutilCondition(holds) CUT_CONDITION(holds)
#define cutilExit(argc, argv) CUT_EXIT(argc, argv)
#define cutilThreadSynchronize() cudaDeviceSynchronize()

/* Options: -name, --name or --name=value. */
static inline const char *cut_option(int argc, const char **argv, const char *name)
{
    size_t length = strlen(name);
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i] + strspn(argv[i], "-");
        if (word != argv[i] && !strncmp(word, name, length) &&
            (!word[length] || word[length] == '='))
            return word + length;
    }
    return NULL;
}

static inline CUTBoolean cutCheckCmdLineFlag(int argc, const char **argv, const char *name)
{
    return cut_option(argc, argv, name) ? CUTTrue : CUTFalse;
}

static inline CUTBoolean cutGetCmdLineArgumenti(int argc, const char **argv, const char *name,
                                                int *value)
{
    const char *text = cut_option(argc, argv, name);
    return text && sscanf(text, "=%d", value) == 1 ? CUTTrue : CUTFalse;
}

static inline CUTBoolean cutGetCmdLineArgumentf(int argc, const char **argv, const char *name,
                                                float *value)
{
    const char *text = cut_option(argc, argv, name);
    return text && sscanf(text, "=%f", value) == 1 ? CUTTrue : CUTFalse;
}

static inline CUTBoolean cutGetCmdLineArgumentstr(int argc, const char **argv, const char *name,
                                                  char **value)
{
    const char *text = cut_option(argc, argv, name);
    if (!text || *text != '=')
        return CUTFalse;
    *value = strdup(text + 1);
    return CUTTrue;
}

static inline void cut_choose_device(int argc, char **argv)
{
    int count = 0, number = 0;
    cudaDeviceProp properties;
    CUDA_SAFE_CALL_NO_SYNC(cudaGetDeviceCount(&count));
    if (!count) {
        fprintf(stderr, "cutil error: no devices supporting CUDA.\n");
        exit(EXIT_FAILURE);
    }
    cutGetCmdLineArgumenti(argc, (const char **)argv, "device", &number);
    number = number < 0 ? 0 : number >= count ? count - 1 : number;
    CUDA_SAFE_CALL_NO_SYNC(cudaGetDeviceProperties(&properties, number));
    if (!cutCheckCmdLineFlag(argc, (const char **)argv, "quiet"))
        fprintf(stderr, "Using device %d: %s\n", number, properties.name);
    CUDA_SAFE_CALL_NO_SYNC(cudaSetDevice(number));
}
#define CUT_DEVICE_INIT(argc, argv) cut_choose_device(argc, argv)
#define cutilDeviceInit(argc, argv) cut_choose_device(argc, argv)
#define CUT_EXIT(argc, argv) exit(((void)(argc), (void)(argv), EXIT_SUCCESS))

static inline int cutGetMaxGflopsDeviceId()
{
    return 0; /* of those that the program sees */
}

/* Timers, by numbers; milliseconds. */
struct cut_timer {
    bool exists, runs;
    int stops;
    double begin, sum;
};

inline std::vector<cut_timer> &cut_timers()
{
    static std::vector<cut_timer> all(1); /* 0 is none */
    return all;
}

inline cut_timer *cut_timer_of(unsigned number)
{
    std::vector<cut_timer> &all = cut_timers();
    return number < all.size() && all[number].exists ? &all[number] : NULL;
}

static inline double cut_now()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static inline CUTBoolean cutCreateTimer(unsigned *number)
{
    cut_timer fresh = {true, false, 0, 0, 0};
    *number = (unsigned)cut_timers().size();
    cut_timers().push_back(fresh);
    return CUTTrue;
}

static inline CUTBoolean cutDeleteTimer(unsigned number)
{
    cut_timer *timer = cut_timer_of(number);
    if (timer)
        timer->exists = false;
    return timer ? CUTTrue : CUTFalse;
}

static inline CUTBoolean cutStartTimer(unsigned number)
{
    cut_timer *timer = cut_timer_of(number);
    if (!timer)
        return CUTFalse;
    timer->begin = cut_now();
    timer->runs = true;
    return CUTTrue;
}

static inline CUTBoolean cutStopTimer(unsigned number)
{
    cut_timer *timer = cut_timer_of(number);
    if (!timer)
        return CUTFalse;
    timer->sum += timer->runs ? cut_now() - timer->begin : 0;
    timer->stops += timer->runs;
    timer->runs = false;
    return CUTTrue;
}

static inline CUTBoolean cutResetTimer(unsigned number)
{
    cut_timer *timer = cut_timer_of(number);
    if (!timer)
        return CUTFalse;
    timer->sum = timer->stops = 0;
    timer->begin = cut_now();
    return CUTTrue;
}

static inline float cutGetTimerValue(unsigned number)
{
    cut_timer *timer = cut_timer_of(number);
    return timer ? (float)(timer->sum + (timer->runs ? cut_now() - timer->begin : 0)) : -1;
}

static inline float cutGetAverageTimerValue(unsigned number)
{
    cut_timer *timer = cut_timer_of(number);
    return timer && timer->stops ? (float)(timer->sum / timer->stops) : cutGetTimerValue(number);
}

/* Comparisons of a result with what it is to be. */
template <class T>
static inline CUTBoolean cut_is_near(const T *wanted, const T *data, unsigned count, double most)
{
    for (unsigned i = 0; i < count; i++)
        if (!(std::fabs((double)wanted[i] - (double)data[i]) <= most))
            return CUTFalse;
    return CUTTrue;
}

static inline CUTBoolean cutComparef(const float *wanted, const float *data, unsigned count)
{
    return cut_is_near(wanted, data, count, 0);
}

static inline CUTBoolean cutComparei(const int *wanted, const int *data, unsigned count)
{
    return cut_is_near(wanted, data, count, 0);
}

static inline CUTBoolean cutCompareub(const unsigned char *wanted, const unsigned char *data,
                                      unsigned count)
{
    return cut_is_near(wanted, data, count, 0);
}

static inline CUTBoolean cutComparefe(const float *wanted, const float *data, unsigned count,
                                      float most)
{
    return cut_is_near(wanted, data, count, most);
}

static inline CUTBoolean cutCompareube(const unsigned char *wanted, const unsigned char *data,
                                       unsigned count, float most)
{
    return cut_is_near(wanted, data, count, most);
}

static inline CUTBoolean cutComparefet(const float *wanted, const float *data, unsigned count,
                                       float most, float share)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < count; i++)
        wrong += !(std::fabs(wanted[i] - data[i]) <= most);
    return wrong <= share * count ? CUTTrue : CUTFalse;
}

static inline CUTBoolean cutCompareL2fe(const float *wanted, const float *data, unsigned count,
                                        float most)
{
    double error = 0, norm = 0;
    for (unsigned i = 0; i < count; i++) {
        error += ((double)wanted[i] - data[i]) * ((double)wanted[i] - data[i]);
        norm += (double)wanted[i] * wanted[i];
    }
    return norm > 0 && std::sqrt(error / norm) < most ? CUTTrue : CUTFalse;
}

/* Files: looked for beside the program and where its SDK had them. */
static inline char *cutFindFilePath(const char *name, const char *program)
{
    const char *end = program ? strrchr(program, '/') : NULL;
    std::vector<char> path(strlen(name) + (program ? strlen(program) : 0) + 64);
    static const char *const folders[] = {"", "data/", "src/", "../data/"};
    for (int from_program = 0; from_program < 2; from_program++)
        for (const char *folder : folders) {
            int length = from_program && end ? (int)(end - program) + 1 : 0;
            snprintf(path.data(), path.size(), "%.*s%s%s", length, program ? program : "", folder,
                     name);
            if (FILE *file = fopen(path.data(), "r")) {
                fclose(file);
                return strdup(path.data());
            }
        }
    return NULL;
}

static inline void cutFree(void *memory)
{
    free(memory);
}

template <class T>
static inline CUTBoolean cut_read_numbers(const char *name, const char *format, T **data,
                                          unsigned *count)
{
    FILE *file = fopen(name, "r");
    std::vector<T> all;
    if (!file)
        return CUTFalse;
    for (T value; !feof(file);) {
        if (fscanf(file, format, &value) == 1)
            all.push_back(value);
        else if (fgetc(file) != '#' || fscanf(file, "%*[^\n]") == EOF)
            break; /* a comment is passed over */
    }
    fclose(file);
    if (!*data)
        *data = (T *)malloc(all.size() * sizeof(T) + 1);
    memcpy((void *)*data, all.data(), all.size() * sizeof(T));
    *count = (unsigned)all.size();
    return CUTTrue;
}

static inline CUTBoolean cutReadFilef(const char *name, float **data, unsigned *count, bool = false)
{
    return cut_read_numbers(name, "%f", data, count);
}

static inline CUTBoolean cutReadFilei(const char *name, int **data, unsigned *count, bool = false)
{
    return cut_read_numbers(name, "%d", data, count);
}

static inline CUTBoolean cutWriteFilef(const char *name, const float *data, unsigned count,
                                       const float epsilon, bool = false)
{
    FILE *file = fopen(name, "w");
    if (!file)
        return CUTFalse;
    fprintf(file, "# %g\n", epsilon);
    for (unsigned i = 0; i < count; i++)
        fprintf(file, "%.9g ", data[i]);
    return fclose(file) ? CUTFalse : CUTTrue;
}

static inline CUTBoolean cutWriteFilei(const char *name, const int *data, unsigned count,
                                       bool = false)
{
    FILE *file = fopen(name, "w");
    if (!file)
        return CUTFalse;
    for (unsigned i = 0; i < count; i++)
        fprintf(file, "%d ", data[i]);
    return fclose(file) ? CUTFalse : CUTTrue;
}

/* Images of one channel or three, of bytes: the netpbm formats P5 and P6. */
static inline CUTBoolean cut_load_image(const char *name, unsigned channels,
                                        std::vector<unsigned char> &bytes, unsigned *width,
                                        unsigned *height)
{
    FILE *file = fopen(name, "rb");
    char magic = 0;
    unsigned numbers[3], count = 0;
    bool is_good = file && fscanf(file, "P%c", &magic) == 1 && magic == (channels == 1 ? '5' : '6');
    while (is_good && count < 3) {
        if (fscanf(file, " %u", numbers + count) == 1)
            count++;
        else if (fscanf(file, "#%*[^\n]") == EOF)
            is_good = false;
    }
    is_good = is_good && numbers[2] <= 255 && fgetc(file) != EOF &&
              numbers[0] < 1u << 15 && numbers[1] < 1u << 15;
    if (is_good) {
        bytes.resize((size_t)numbers[0] * numbers[1] * channels);
        is_good = fread(bytes.data(), 1, bytes.size(), file) == bytes.size();
        *width = numbers[0], *height = numbers[1];
    }
    if (file)
        fclose(file);
    return is_good ? CUTTrue : CUTFalse;
}

static inline CUTBoolean cut_save_image(const char *name, unsigned channels,
                                        const std::vector<unsigned char> &bytes, unsigned width,
                                        unsigned height)
{
    FILE *file = fopen(name, "wb");
    if (!file)
        return CUTFalse;
    fprintf(file, "P%c\n%u %u\n255\n", channels == 1 ? '5' : '6', width, height);
    bool is_good = fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    return fclose(file) || !is_good ? CUTFalse : CUTTrue;
}

/* `stored` channels of the file are `held` in memory, a fourth as 0. */
template <class T>
static inline CUTBoolean cut_load(const char *name, unsigned stored, unsigned held, float scale,
                                  T **data, unsigned *width, unsigned *height)
{
    std::vector<unsigned char> bytes;
    if (!cut_load_image(name, stored, bytes, width, height))
        return CUTFalse;
    size_t pixels = (size_t)*width * *height;
    if (!*data)
        *data = (T *)malloc(pixels * held * sizeof(T) + 1);
    for (size_t i = 0; i < pixels; i++)
        for (unsigned c = 0; c < held; c++)
            (*data)[i * held + c] = (T)(c < stored ? bytes[i * stored + c] / scale : 0);
    return CUTTrue;
}

template <class T>
static inline CUTBoolean cut_save(const char *name, unsigned stored, unsigned held, float scale,
                                  const T *data, unsigned width, unsigned height)
{
    size_t pixels = (size_t)width * height;
    std::vector<unsigned char> bytes(pixels * stored);
    for (size_t i = 0; i < pixels; i++)
        for (unsigned c = 0; c < stored; c++)
            bytes[i * stored + c] = (unsigned char)(data[i * held + c] * scale);
    return cut_save_image(name, stored, bytes, width, height);
}

#define CUT_IMAGE(name, T, stored, held, scale)                                                  \
    static inline CUTBoolean cutLoad##name(const char *file, T **data, unsigned *width,          \
                                           unsigned *height)                                     \
    {                                                                                            \
        return cut_load(file, stored, held, scale, data, width, height);                         \
    }                                                                                            \
    static inline CUTBoolean cutSave##name(const char *file, T *data, unsigned width,            \
                                           unsigned height)                                      \
    {                                                                                            \
        return cut_save(file, stored, held, scale, (const T *)data, width, height);              \
    }
CUT_IMAGE(PGMub, unsigned char, 1, 1, 1.f)
CUT_IMAGE(PGMf, float, 1, 1, 255.f)
CUT_IMAGE(PPMub, unsigned char, 3, 3, 1.f)
CUT_IMAGE(PPM4ub, unsigned char, 3, 4, 1.f)
#undef CUT_IMAGE

#endif
