"""What random expressions are made of: C templates by the type of their result.

Each is defined for all values of its parts, by C++ and by CUDA alike: signed sums are taken in
unsigned, shifts and divisors are held in range, floats are cut off by intrinsics that saturate,
and the bits of a float are looked at only where it is a number.
"""

from typing import TypeAlias

from fuzz.cuda.tree import C_NAMES

Form: TypeAlias = tuple[str, tuple[str, ...]]
INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
FLOATS = ("f32", "f64")
TYPES = (*INTEGERS, *FLOATS, "b")

PRELUDE = """\
__device__ __forceinline__ int bits(float x) { return x == x ? __float_as_int(x) : 0x7fffffff; }
__device__ __forceinline__ long long bits(double x)
{
    return x == x ? __double_as_longlong(x) : 0x7fffffffffffffffLL;
}
__device__ __forceinline__ float number(float x) { return x == x ? x : 1.5f; }
__device__ __forceinline__ double number(double x) { return x == x ? x : -2.5; }
__device__ __forceinline__ int cut(float x)
{
    return x != x ? 0 : x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -7 : (int)x;
}
"""
"""The bits of a float, and a float, without what a NaN carries: its sign and payload are open."""


def _signed(name: str, wide: str) -> list[Form]:
    c, u, two = C_NAMES[name], C_NAMES[wide], (name, name)
    most = "31" if name == "i32" else "63"
    return [
        *((f"({c})(({u}){{0}} {sign} ({u}){{1}})", two) for sign in ("+", "-", "*")),
        *((f"({{0}} {sign} {{1}})", two) for sign in ("&", "|", "^")),
        (f"({c})(({u}){{0}} << ({{1}} & {most}))", (name, "u32")),
        (f"({{0}} >> ({{1}} & {most}))", (name, "u32")),
        ("({0} / (({1} & 15) + 1))", two),
        ("({0} % (({1} & 31) + 1))", two),
        ("({0} / -(({1} & 15) + 2))", two),
        (f"({c})(0 - ({u}){{0}})", (name,)),
        ("(~{0})", (name,)),
        ("min({0}, {1})", two),
        ("max({0}, {1})", two),
    ]


def _unsigned(name: str) -> list[Form]:
    two, one = (name, name), "1u" if name == "u32" else "1ull"
    most = "31" if name == "u32" else "63"
    return [
        *((f"({{0}} {sign} {{1}})", two) for sign in ("+", "-", "*", "&", "|", "^")),
        (f"({{0}} << ({{1}} & {most}))", (name, "u32")),
        (f"({{0}} >> ({{1}} & {most}))", (name, "u32")),
        (f"({{0}} / ({{1}} | {one}))", two),
        (f"({{0}} % ({{1}} | {one}))", two),
        (f"({{0}} / (({{1}} & 7) + {one}))", two),
        ("(~{0})", (name,)),
        ("min({0}, {1})", two),
        ("max({0}, {1})", two),
    ]


def _narrow(name: str) -> list[Form]:
    c = C_NAMES[name]
    two = (name, name)
    return [
        (f"({c})({{0}} + {{1}})", two),
        (f"({c})({{0}} - {{1}})", two),
        (f"({c})((unsigned){{0}} * (unsigned){{1}})", two),
        (f"({c})({{0}} ^ {{1}})", two),
        (f"({c})({{0}} >> ({{1}} & 7))", (name, "u32")),
        (f"({c})((unsigned){{0}} << ({{1}} & 15))", (name, "u32")),
        (f"({c})({{0}} / (({{1}} & 7) + 1))", two),
        (f"({c})(-({{0}}))", (name,)),
        (f"({c}){{0}}", ("i32",)),
        (f"({c}){{0}}", ("u64",)),
        (f"({c})__float2int_rz({{0}})", ("f32",)),
    ]


def _casts(name: str) -> list[Form]:
    return [(f"({C_NAMES[name]}){{0}}", (other,)) for other in INTEGERS if other != name]


def _floating(name: str, tail: str) -> list[Form]:
    two = (name, name)
    return [
        *((f"({{0}} {sign} {{1}})", two) for sign in ("+", "-", "*", "+", "-", "*", "/")),
        (f"fma{tail}({{0}}, {{1}}, {{2}})", (name,) * 3),
        *((f"fmin{tail}({{0}}, {{1}})", two) for _ in range(2)),
        *((f"fmax{tail}({{0}}, {{1}})", two) for _ in range(2)),
        *((f"fabs{tail}({{0}})", (name,)) for _ in range(2)),
        *(("(-({0}))", (name,)) for _ in range(2)),
        (f"copysign{tail}({{0}}, number({{1}}))", two),
        (f"sqrt{tail}({{0}})", (name,)),
        *((f"{what}{tail}({{0}})", (name,)) for what in ("floor", "ceil", "trunc", "rint")),
        *((f"({C_NAMES[name]}){{0}}", (other,)) for other in INTEGERS),
    ]


_WORD_FORMS: list[Form] = [
    *((f"{name}({{0}})", ("u32",)) for name in ("__brev", "(unsigned)__popc", "(unsigned)__ffs")),
    ("(unsigned)__clz((int){0})", ("u32",)),
    ("__byte_perm({0}, {1}, {2} & 0x7777)", ("u32",) * 3),
    *(
        (f"__funnelshift_{way}({{0}}, {{1}}, {{2}})", ("u32",) * 3)
        for way in ("l", "r", "lc", "rc")
    ),
    ("__umulhi({0}, {1})", ("u32",) * 2),
    ("__umul24({0}, {1})", ("u32",) * 2),
    ("__usad({0}, {1}, {2})", ("u32",) * 3),
    ("__uhadd({0}, {1})", ("u32",) * 2),
    ("__float2uint_rz({0})", ("f32",)),
    ("__double2uint_rz(number({0}))", ("f64",)),
    ("(unsigned)bits({0})", ("f32",)),
    ("({0} + {1})", ("u32", "i32")),
    ("({0} * {1})", ("i32", "u32")),
    ("({0} ^ {1})", ("u32", "i16")),
]
_INT_FORMS: list[Form] = [
    ("abs(max({0}, -2147483647))", ("i32",)),
    ("__mulhi({0}, {1})", ("i32",) * 2),
    ("__mul24({0}, {1})", ("i32",) * 2),
    ("__hadd({0}, {1})", ("i32",) * 2),
    ("__rhadd({0}, {1})", ("i32",) * 2),
    ("__dp4a({0}, {1}, {2})", ("i32",) * 3),
    ("(int)__sad({0}, {1}, {2})", ("i32", "i32", "u32")),
    *((f"__float2int_{way}({{0}})", ("f32",)) for way in ("rz", "rn", "rd", "ru")),
    ("__double2int_rz(number({0}))", ("f64",)),
    ("bits({0})", ("f32",)),
    *(("cut({0})", ("f32",)) for _ in range(2)),
    ("(int)({0} - {1})", ("i32", "u32")),
    ("({0} * {1})", ("i16", "i16")),
    ("({0} - {1})", ("u8", "i16")),
    ("(int)({0})", ("b",)),
    ("__double2hiint(number({0}))", ("f64",)),
]
_LONG_FORMS: list[Form] = [
    ("__mul64hi({0}, {1})", ("i64",) * 2),
    ("__float2ll_rz(number({0}))", ("f32",)),
    ("__double2ll_rz(number({0}))", ("f64",)),
    ("bits({0})", ("f64",)),
    ("((long long){0} * {1})", ("i32", "i32")),
    ("({0} ^ {1})", ("i64", "u32")),
    ("({0} & {1})", ("i32", "i64")),
]
_LONG_WORD_FORMS: list[Form] = [
    ("__umul64hi({0}, {1})", ("u64",) * 2),
    ("__brevll({0})", ("u64",)),
    ("(unsigned long long)__popcll({0})", ("u64",)),
    ("(unsigned long long)__clzll((long long){0})", ("u64",)),
    ("(unsigned long long)__ffsll((long long){0})", ("u64",)),
    ("((unsigned long long){0} * {1})", ("u32", "u32")),
    ("((unsigned long long){0} << 32 | {1})", ("u32", "u32")),
    ("__float2ull_rz(number({0}))", ("f32",)),
]
_FLOAT_FORMS: list[Form] = [
    ("(float){0}", ("f64",)),
    *((f"(float)((double){{0}} {sign} (double){{1}})", ("f32", "f32")) for sign in "+-*/"),
    ("({0} * {1})", ("f32", "i32")),
    ("({0} + {1})", ("u32", "f32")),
    ("__int_as_float({0})", ("i32",)),
    ("__saturatef({0})", ("f32",)),
    *((f"__f{what}_{way}({{0}}, {{1}})", ("f32",) * 2) for what in ("add", "mul")
      for way in ("rz", "ru", "rd")),
    ("__int2float_rz({0})", ("i32",)),
    ("__uint2float_rd({0})", ("u32",)),
    ("__double2float_rz({0})", ("f64",)),
    ("__fsqrt_rn(fabsf({0}))", ("f32",)),
    ("__fmaf_rn({0}, {1}, {2})", ("f32",) * 3),
]  # fmt: skip
_DOUBLE_FORMS: list[Form] = [
    *(("(double){0}", ("f32",)) for _ in range(3)),
    ("__longlong_as_double({0})", ("i64",)),
    ("__dadd_rz({0}, {1})", ("f64",) * 2),
    ("__hiloint2double({0}, {1})", ("i32",) * 2),
]
_TRUTHS: list[Form] = [
    *(
        (f"({{0}} {sign} {{1}})", (name, name))
        for sign in ("<", "<=", ">", ">=", "==", "!=")
        for name in ("i32", "i32", "u32", "i64", "u64", "f32", "f32", "f64", "i16", "u8")
    ),
    *(("(({0} & 1) != 0)", (name,)) for name in ("i32", "u32", "u64") for _ in range(4)),
    *(("(({0} & 3) == 1)", (name,)) for name in ("i32", "u32") for _ in range(3)),
    *(
        (f"({{0}} {sign} {{1}})", pair)
        for sign in ("<", ">=", "==")
        for pair in (("i32", "u32"), ("u32", "i64"), ("f32", "i32"), ("f64", "f32"), ("i16", "u16"))
    ),
    *(("({0} && {1})", ("b", "b")) for _ in range(6)),
    *(("({0} || {1})", ("b", "b")) for _ in range(6)),
    *(("(!{0})", ("b",)) for _ in range(4)),
    *(("({0} ^ {1})", ("b", "b")) for _ in range(2)),
    *(("({0} != {0})", (name,)) for name in FLOATS),
]

FORMS: dict[str, list[Form]] = {
    **{name: _narrow(name) for name in ("i8", "u8", "i16", "u16")},
    "i32": _signed("i32", "u32") * 2 + _casts("i32") + _INT_FORMS,
    "u32": _unsigned("u32") * 2 + _casts("u32") + _WORD_FORMS,
    "i64": _signed("i64", "u64") + _casts("i64") + _LONG_FORMS,
    "u64": _unsigned("u64") + _casts("u64") + _LONG_WORD_FORMS,
    "f32": _floating("f32", "f") * 2 + _FLOAT_FORMS,
    "f64": _floating("f64", "") + _DOUBLE_FORMS,
    "b": _TRUTHS,
}

LITERALS: dict[str, tuple[str, ...]] = {
    "i8": ("(signed char)-128", "(signed char)127", "(signed char)3"),
    "u8": ("(unsigned char)255", "(unsigned char)128", "(unsigned char)7"),
    "i16": ("(short)-32768", "(short)32767", "(short)-5"),
    "u16": ("(unsigned short)65535", "(unsigned short)32768", "(unsigned short)9"),
    "i32": (
        "0",
        "1",
        "-1",
        "2",
        "7",
        "31",
        "100",
        "(-2147483647 - 1)",
        "2147483647",
        "-68",
        "0xff",
    ),
    "u32": ("0u", "1u", "3u", "31u", "32u", "4294967295u", "2147483648u", "0x9e3779b9u", "17u"),
    "i64": ("0ll", "1ll", "-1ll", "4294967296ll", "(-9223372036854775807ll - 1)", "-33ll"),
    "u64": ("0ull", "1ull", "18446744073709551615ull", "4294967295ull", "0x123456789abcdefull"),
    "f32": (
        *("0.0f", "-0.0f", "1.0f", "-1.0f", "2.0f", "0.5f", "3.25f", "-7.75f", "1e-40f", "1e38f"),
        *("__int_as_float(0x7f800000)", "__int_as_float(0xff800000)", "__int_as_float(0x7fc00000)"),
        *("16777216.0f", "1.1754944e-38f", "2147483648.0f", "0.1f"),
    ),
    "f64": (
        *("0.0", "-0.0", "1.0", "-1.0", "2.5", "1e-310", "1e308", "0.1", "-4294967296.5"),
        "__longlong_as_double(0x7ff0000000000000ll)",
        "__longlong_as_double(0xfff0000000000000ull)",
    ),
    "b": ("true", "false"),
}
ZERO = {
    **{name: "0" for name in INTEGERS}, "u32": "0u", "i64": "0ll", "u64": "0ull",
    "f32": "0.0f", "f64": "0.0", "b": "false",
}  # fmt: skip
"""The simplest expression of each type."""
