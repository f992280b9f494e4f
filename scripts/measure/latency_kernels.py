"""The kernels of latencies.py: an instruction in a chain, and what waits for memory."""

from dataclasses import dataclass
from string import Template

CTYPES = {"r": "int", "f": "float", "d": "double", "l": "long long"}


@dataclass(frozen=True)
class Operation:
    """PTX of which %0 is the value handed on and %1 another; `times` it stands in a loop."""

    ptx: str
    letter: str = "r"
    times: int = 64
    first: str = "3"
    other: str = "5"


def _f(ptx: str, times: int = 64, other: str = "1.0001") -> Operation:
    return Operation(ptx, "f", times, "1.5", other)


def _d(ptx: str, times: int = 64) -> Operation:
    return Operation(ptx, "d", times, "1.5", "1.0001")


ARITHMETIC = {
    "add.s32": Operation("add.s32 %0, %0, %1;"),
    "mul.lo.s32": Operation("mul.lo.s32 %0, %0, %1;"),
    "mad.lo.s32": Operation("mad.lo.s32 %0, %0, %1, %1;"),
    "mul.hi.u32": Operation("mul.hi.u32 %0, %0, %1;"),
    "add.s64": Operation("add.s64 %0, %0, %1;", "l"),
    "mul.lo.s64": Operation("mul.lo.s64 %0, %0, %1;", "l"),
    "xor.b32": Operation("xor.b32 %0, %0, %1;"),
    "shl.b32": Operation("{.reg .u32 t; and.b32 t, %0, %1; shl.b32 %0, %1, t;}"),
    "shf.l.wrap.b32": Operation("shf.l.wrap.b32 %0, %0, %1, %1;"),
    "min.s32": Operation("min.s32 %0, %0, %1;"),
    "popc.b32": Operation("popc.b32 %0, %0;"),
    "clz.b32": Operation("clz.b32 %0, %0;"),
    "prmt.b32": Operation("prmt.b32 %0, %0, %1, %0;"),
    "dp4a": Operation("dp4a.s32.s32 %0, %0, %1, %0;"),
    "setp+selp": Operation("{.reg .pred p; setp.lt.s32 p, %0, %1; selp.b32 %0, %1, 7, p;}"),
    "div.s32": Operation("div.s32 %0, %1, %0; or.b32 %0, %0, 1;", times=8),
    "rem.u32": Operation("rem.u32 %0, %1, %0; or.b32 %0, %0, 1;", times=8),
    "div.u64": Operation("div.u64 %0, %1, %0; or.b64 %0, %0, 1;", "l", 8),
    "add.f32": _f("add.f32 %0, %0, %1;"),
    "mul.f32": _f("mul.f32 %0, %0, %1;"),
    "fma.rn.f32": _f("fma.rn.f32 %0, %0, %1, %1;", other="0.5"),
    "min.f32": _f("min.f32 %0, %0, %1;"),
    "fma.rn.f16x2": Operation("fma.rn.f16x2 %0, %0, %1, %1;"),
    "add.f64": _d("add.f64 %0, %0, %1;"),
    "mul.f64": _d("mul.f64 %0, %0, %1;"),
    "fma.rn.f64": Operation("fma.rn.f64 %0, %0, %1, %1;", "d", 64, "1.5", "0.5"),
    "div.rn.f32": _f("div.rn.f32 %0, %0, %1;", 8),
    "div.full.f32": _f("div.full.f32 %0, %0, %1;", 16),
    "div.approx.f32": _f("div.approx.f32 %0, %0, %1;", 16),
    "sqrt.rn.f32": _f("sqrt.rn.f32 %0, %0;", 8),
    "sqrt.approx.f32": _f("sqrt.approx.f32 %0, %0;", 32),
    "rsqrt.approx.f32": _f("rsqrt.approx.f32 %0, %0;"),
    "rcp.approx.f32": _f("rcp.approx.f32 %0, %0;"),
    "rcp.rn.f32": _f("rcp.rn.f32 %0, %0;", 8),
    "ex2.approx.f32": _f("ex2.approx.f32 %0, %0;"),
    "ex2.approx.ftz.f32": _f("ex2.approx.ftz.f32 %0, %0;"),
    "lg2.approx.f32": _f("lg2.approx.f32 %0, %0; abs.f32 %0, %0;"),
    "sin.approx.f32": _f("sin.approx.f32 %0, %0;"),
    "tanh.approx.f32": _f("tanh.approx.f32 %0, %0;"),
    "div.rn.f64": _d("div.rn.f64 %0, %0, %1;", 8),
    "sqrt.rn.f64": _d("sqrt.rn.f64 %0, %0;", 8),
    "rcp.rn.f64": _d("rcp.rn.f64 %0, %0;", 8),
    "cvt.f32+cvt.s32": _f("{.reg .s32 t; cvt.rzi.s32.f32 t, %0; cvt.rn.f32.s32 %0, t;}"),
    "cvt.f64+cvt.f32": _f("{.reg .f64 t; cvt.f64.f32 t, %0; cvt.rn.f32.f64 %0, t;}"),
    "cvt.f64.s32+cvt.s32": Operation("{.reg .f64 t; cvt.rn.f64.s32 t, %0; cvt.rzi.s32.f64 %0, t;}"),
    "shfl.bfly": Operation("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;"),
    "shfl.idx": Operation("shfl.sync.idx.b32 %0, %0, %1, 31, -1;"),
    "vote.ballot": Operation(
        "{.reg .pred p; setp.lt.s32 p, %0, %1; vote.sync.ballot.b32 %0, p, -1;}"
    ),
    "match.any": Operation("match.any.sync.b32 %0, %0, -1;", times=16),
    "redux.add": Operation("redux.sync.add.s32 %0, %0, -1;"),
    "bar.warp.sync": Operation("bar.warp.sync -1;"),
    "membar.gl": Operation("membar.gl;", times=8),
    "membar.cta": Operation("membar.cta;", times=16),
}

_ARITHMETIC = Template("""
#define STEP(x) asm volatile("$ptx" : "+$letter"(x) : "$letter"(other));
extern "C" __global__ void chain(long long *cycles, double *sink, int n)
{
    $ctype a = ($ctype)($first) + n * 0, other = ($ctype)($other);
    for (int warm = 0; warm < 2; warm++) {
        long long begin = clock64();
        #pragma unroll 1
        for (int i = 0; i < n; i++) {
            #pragma unroll
            for (int k = 0; k < $times; k++) { STEP(a) }
        }
        long long end = clock64();
        if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin;
    }
    sink[blockIdx.x * blockDim.x + threadIdx.x] = (double)a;
}
extern "C" __global__ void chains(long long *cycles, double *sink, int n)
{
    $ctype other = ($ctype)($other), a = ($ctype)($first), b = a + 1, c = a + 2, d = a + 3;
    for (int warm = 0; warm < 2; warm++) {
        __syncthreads();
        long long begin = clock64();
        #pragma unroll 1
        for (int i = 0; i < n; i++) {
            #pragma unroll
            for (int k = 0; k < $times; k++) { STEP(a) STEP(b) STEP(c) STEP(d) }
        }
        __syncthreads();
        long long end = clock64();
        if (threadIdx.x == 0) cycles[blockIdx.x] = end - begin;
    }
    sink[blockIdx.x * blockDim.x + threadIdx.x] = (double)a + (double)b + (double)c + (double)d;
}
""")


def arithmetic_source(operation: Operation) -> str:
    """Return the kernels `chain` and `chains` of an instruction."""
    return _ARITHMETIC.substitute(
        ptx=operation.ptx.replace('"', ""),
        letter=operation.letter,
        ctype=CTYPES[operation.letter],
        times=operation.times,
        first=operation.first,
        other=operation.other,
    )


_CHASE = """
extern "C" __global__ void chase_{0}(const char *links, long long *cycles, long long *sink, int n)
{{
    long long at = 0, begin = clock64();
    for (int i = 0; i < n; i++)
        asm volatile("ld.global.{0}.b64 %0, [%1];" : "=l"(at) : "l"(links + at));
    long long end = clock64();
    *cycles = end - begin + (at == 1); *sink = at;
}}
"""
_WAIT = """
extern "C" __global__ void chase_{0}(long long *links, long long *cycles, long long *sink, int n)
{{
    {1}
    long long begin = clock64();
    #pragma unroll 16
    for (int i = 0; i < n; i++) {2}
    long long end = clock64();
    *cycles = end - begin + (at == 77777); *sink = at;
}}
"""
_NEAR = """
extern "C" __global__ void {0}_{1}_{2}(long long *cycles, float *data, int n)
{{
    __shared__ __align__(16) float mine[8192];
    if (data[1] == 5) mine[threadIdx.x] = 1;
    __syncthreads();
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    {3}
    float v[4] = {{0, 0, 0, 0}};
    long long begin = clock64();
    #pragma unroll 1
    for (int i = 0; i < n; i++) {{
        #pragma unroll
        for (int k = 0; k < 16; k++) {4}
    }}
    __syncthreads();
    long long end = clock64();
    if (threadIdx.x == 0) *cycles = end - begin;
    if (v[0] + v[1] + v[2] + v[3] == 5) data[0] = 1;
}}
"""
_ATOMIC = """
extern "C" __global__ void {0}(char *data, int apart, int lanes, int n)
{{
    int lane = threadIdx.x & 31;
    long long warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    if (lane >= lanes) return;
    char *at = data + (apart < 0 ? warp * 256 + lane * 8 : (long long)lane * apart);
    {1} got = 0, more = 1;
    #pragma unroll 4
    for (int i = 0; i < n; i++) asm volatile("{2}" : "+{3}"(got) : "l"(at), "{3}"(more));
    if (got == ({1})-12345) data[0] = 1;
}}
"""
_SHARED_ATOMIC = """
extern "C" __global__ void {0}(long long *cycles, int apart, int n)
{{
    __shared__ char data[1024];
    if (threadIdx.x < 256) ((int *)data)[threadIdx.x] = 0;
    __syncthreads();
    unsigned at = (unsigned)__cvta_generic_to_shared(data) + (threadIdx.x & 31) * apart;
    {1} more = 1;
    long long begin = clock64();
    for (int i = 0; i < n; i++) {2}
    __syncthreads();
    long long end = clock64();
    if (threadIdx.x == 0) *cycles = end - begin;
}}
"""
_READ = """
extern "C" __global__ void read_{0}(const float4 *data, long long n, int times)
{{
    float sum = 0;
    long long all = (long long)gridDim.x * blockDim.x;
    long long first = blockIdx.x * blockDim.x + threadIdx.x;
    for (int t = 0; t < times; t++)
        for (long long i = first; i + {1} * all < n; i += {0} * all) {{
            float4 v[{0}];
            #pragma unroll
            for (int k = 0; k < {0}; k++)
                asm volatile("ld.global.cg.v4.f32 {{%0, %1, %2, %3}}, [%4];"
                    : "=f"(v[k].x), "=f"(v[k].y), "=f"(v[k].z), "=f"(v[k].w)
                    : "l"(data + i + k * all));
            #pragma unroll
            for (int k = 0; k < {0}; k++) sum += v[k].x + v[k].y + v[k].z + v[k].w;
        }}
    if (sum == 12345) ((float *)data)[0] = 1;
}}
"""
_OTHERS = """
__constant__ int table[8192];
extern "C" __global__ void barriers(long long *cycles, int n)
{
    long long begin = clock64();
    #pragma unroll 8
    for (int i = 0; i < n; i++) asm volatile("bar.sync 0;" ::: "memory");
    long long end = clock64();
    if (threadIdx.x == 0) *cycles = end - begin;
}
extern "C" __global__ void constants(long long *cycles, int *sink, int addresses, int n)
{
    int at = (threadIdx.x % addresses) * 4, sum = 0;
    for (int warm = 0; warm < 2; warm++) {
        __syncthreads();
        long long begin = clock64();
        for (int i = 0; i < n; i++) {
            #pragma unroll
            for (int k = 0; k < 8; k++) sum += table[(at + k * 4 + (sum & 0)) & 8191];
        }
        __syncthreads();
        long long end = clock64();
        if (threadIdx.x == 0) *cycles = end - begin;
    }
    sink[threadIdx.x] = sum;
}
extern "C" __global__ void write(float4 *data, long long n)
{
    long long all = (long long)gridDim.x * blockDim.x;
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += all)
        data[i] = make_float4(1, 2, 3, (float)i);
}
extern "C" __global__ void copy(float4 *data, long long n)
{
    long long all = (long long)gridDim.x * blockDim.x;
    #pragma unroll 4
    for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += all)
        data[i + n] = data[i];
}
"""

VECTORS = {
    4: ("b32 %0, [%4]", "f32 [%4], %0"),
    8: ("v2.f32 {{%0, %1}}, [%4]", "v2.f32 [%4], {{%0, %1}}"),
    16: ("v4.f32 {{%0, %1, %2, %3}}, [%4]", "v4.f32 [%4], {{%0, %1, %2, %3}}"),
}


def _near() -> str:
    found = []
    for space in ("global", "shared"):
        for width, texts in VECTORS.items():
            for access, text in zip(("load", "store"), texts, strict=True):
                opcode = ("ld" if access == "load" else "st") + (".volatile" * (space == "shared"))
                cached = ".ca" * (access == "load" and space == "global")
                ptx = f"{opcode}.{space}{cached}.{text};".replace("{{", "{").replace("}}", "}")
                base = f"(warp & 7) * 512 + lane * {width}"
                where = (
                    f"char *at = (char *)data + {base};"
                    if space == "global"
                    else f"unsigned at = (unsigned)__cvta_generic_to_shared(mine) + {base};"
                )
                place = '"l"(at)' if space == "global" else '"r"(at)'
                values = ", ".join(f'"+f"(v[{i}])' for i in range(4))
                body = f'asm volatile("{ptx}" : {values} : {place});'
                found.append(_NEAR.format(access, space, width, where, body))
    return "".join(found)


def _atomics() -> str:
    found = []
    for name, kind, letter in (
        ("add_u32", "int", "r"), ("add_f32", "float", "f"), ("add_u64", "long long", "l"),
        ("add_f64", "double", "d"), ("max_s32", "int", "r"),
    ):  # fmt: skip
        operation, _, suffix = name.partition("_")
        found.append(
            _ATOMIC.format(
                f"red_{name}", kind, f"red.global.{operation}.{suffix} [%1], %2;", letter
            )
        )
    half = "red.global.add.noftz.f16x2 [%1], %2;"
    found.append(_ATOMIC.format("red_add_f16x2", "int", half, "r"))
    for name, kind, letter, ptx in (
        ("atom_add_u32", "int", "r", "atom.global.add.u32 %0, [%1], %2;"),
        ("atom_add_f32", "float", "f", "atom.global.add.f32 %0, [%1], %2;"),
        ("atom_exch", "int", "r", "atom.global.exch.b32 %0, [%1], %2;"),
        ("atom_cas", "int", "r", "atom.global.cas.b32 %0, [%1], %0, %2;"),
    ):
        found.append(_ATOMIC.format(name, kind, ptx, letter))
    add = 'asm volatile("red.shared.add.{0} [%0], %1;" :: "r"(at), "{1}"(more));'
    found.append(_SHARED_ATOMIC.format("shared_add_u32", "int", add.format("u32", "r")))
    found.append(_SHARED_ATOMIC.format("shared_add_f32", "float", add.format("f32", "f")))
    ptx = "atom.shared.cas.b32 %0, [%1], %2, %2;"
    cas = f'{{int got; asm volatile("{ptx}" : "=r"(got) : "r"(at), "r"(more));}}'
    found.append(_SHARED_ATOMIC.format("shared_cas", "int", cas))
    return "".join(found)


def memory_source() -> str:
    """Return the kernels that wait for memory, barriers and atomics."""
    shared = (
        "__shared__ unsigned ring[32]; if (threadIdx.x == 0) for (int i = 0; i < 32; i++)"
        " ring[i] = (unsigned)__cvta_generic_to_shared(ring); unsigned at = ring[0];"
    )
    loads = 'asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at));'
    waits = (
        _WAIT.format("shared", shared, loads),
        _WAIT.format("const", "int at = 0;", "at = table[at];"),
        _WAIT.format(
            "atomic", "long long at = 0;",
            'asm volatile("atom.global.add.u64 %0, [%1], 0;" : "=l"(at) : "l"(links + at));',
        ),
        _WAIT.format(
            "cas", "long long at = 0;",
            'asm volatile("atom.global.cas.b64 %0, [%1], 0, 0;" : "=l"(at) : "l"(links + at));',
        ),
        _WAIT.format(
            "shared_atomic", shared,
            'asm volatile("atom.shared.add.u32 %0, [%0], 0;" : "+r"(at));',
        ),
    )  # fmt: skip
    chases = "".join(_CHASE.format(cache) for cache in ("ca", "cg"))
    reads = "".join(_READ.format(deep, deep - 1) for deep in (1, 4))
    return _OTHERS + chases + "".join(waits) + _near() + _atomics() + reads
