// What nvcc gives every CUDA program and NVRTC does not (prelude.py).
#pragma nv_diag_suppress 47
#define __linux__ 1
#define __unix__ 1
#define __NVCC__ 1
#define register
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef decltype((char *)0 - (char *)0) int64_t;
typedef decltype(sizeof(0)) uint64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
typedef int64_t intmax_t;
typedef uint64_t uintmax_t;
typedef int8_t int_least8_t, int_fast8_t;
typedef uint8_t uint_least8_t, uint_fast8_t;
typedef int16_t int_least16_t;
typedef uint16_t uint_least16_t;
typedef int32_t int_least32_t;
typedef uint32_t uint_least32_t;
typedef int64_t int_least64_t;
typedef uint64_t uint_least64_t;
typedef unsigned char u_char;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

#define CHAR_BIT 8
#define SCHAR_MIN (-128)
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define CHAR_MIN SCHAR_MIN
#define CHAR_MAX SCHAR_MAX
#define SHRT_MIN (-32768)
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MIN (-INT_MAX - 1)
#define INT_MAX 2147483647
#define UINT_MAX 4294967295U
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define LLONG_MAX 9223372036854775807LL
#define ULLONG_MAX 18446744073709551615ULL
#define LONG_MAX ((long)(~0UL >> 1))
#define LONG_MIN (-LONG_MAX - 1L)
#define ULONG_MAX (~0UL)
#define INT8_MAX 127
#define INT8_MIN (-128)
#define UINT8_MAX 255
#define INT16_MAX 32767
#define INT16_MIN (-32768)
#define UINT16_MAX 65535
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT32_MAX UINT_MAX
#define INT64_MAX LONG_MAX
#define INT64_MIN LONG_MIN
#define UINT64_MAX ULONG_MAX
#define INTPTR_MAX INT64_MAX
#define INTPTR_MIN INT64_MIN
#define UINTPTR_MAX UINT64_MAX
#define PTRDIFF_MAX INT64_MAX
#define PTRDIFF_MIN INT64_MIN
#define INTMAX_MAX INT64_MAX
#define UINTMAX_MAX UINT64_MAX
#define INT8_C(value) value
#define INT16_C(value) value
#define INT32_C(value) value
#define INT64_C(value) value##L
#define UINT8_C(value) value
#define UINT16_C(value) value
#define UINT32_C(value) value##U
#define UINT64_C(value) value##UL
#define INTMAX_C(value) value##L
#define UINTMAX_C(value) value##UL
#define SIZE_MAX (~(size_t)0)
#define RAND_MAX 2147483647

#define FLT_RADIX 2
#define FLT_MANT_DIG 24
#define FLT_DIG 6
#define FLT_EPSILON 1.19209290e-07F
#define FLT_MIN 1.17549435e-38F
#define FLT_MAX 3.40282347e+38F
#define DBL_MANT_DIG 53
#define DBL_DIG 15
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_MIN 2.2250738585072014e-308
#define DBL_MAX 1.7976931348623157e+308
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN __builtin_bit_cast(float, 0x7fc00000)
#define HUGE_VAL __builtin_bit_cast(double, 0x7ff0000000000000LL)
#define HUGE_VALF INFINITY

#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440

template <class T> __device__ __forceinline__ T __shfl(T value, int lane, int width = 32)
{ return __shfl_sync(__activemask(), value, lane, width); }
template <class T> __device__ __forceinline__ T __shfl_up(T value, unsigned by, int width = 32)
{ return __shfl_up_sync(__activemask(), value, by, width); }
template <class T> __device__ __forceinline__ T __shfl_down(T value, unsigned by, int width = 32)
{ return __shfl_down_sync(__activemask(), value, by, width); }
template <class T> __device__ __forceinline__ T __shfl_xor(T value, int mask, int width = 32)
{ return __shfl_xor_sync(__activemask(), value, mask, width); }

namespace std {
using ::size_t; using ::ptrdiff_t;
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t;
using ::abs; using ::fabs; using ::sqrt; using ::cbrt; using ::hypot; using ::pow;
using ::exp; using ::exp2; using ::expm1; using ::log; using ::log2; using ::log10; using ::log1p;
using ::sin; using ::cos; using ::tan; using ::asin; using ::acos; using ::atan; using ::atan2;
using ::sinh; using ::cosh; using ::tanh; using ::asinh; using ::acosh; using ::atanh;
using ::erf; using ::erfc; using ::tgamma; using ::lgamma;
using ::ceil; using ::floor; using ::trunc; using ::round; using ::rint; using ::nearbyint;
using ::fmod; using ::remainder; using ::fma; using ::fmin; using ::fmax; using ::fdim;
using ::ldexp; using ::frexp; using ::modf; using ::copysign;
using ::isnan; using ::isinf; using ::isfinite; using ::signbit;
using ::memcpy; using ::memset; using ::printf; using ::malloc; using ::free;
template <class T> __device__ constexpr const T &min(const T &a, const T &b)
{ return b < a ? b : a; }
template <class T> __device__ constexpr const T &max(const T &a, const T &b)
{ return a < b ? b : a; }
template <class T> __device__ constexpr void swap(T &a, T &b) { T c = a; a = b; b = c; }
template <class A, class R> struct unary_function
{ typedef A argument_type; typedef R result_type; };
template <class A, class B, class R> struct binary_function
{ typedef A first_argument_type; typedef B second_argument_type; typedef R result_type; };
}
