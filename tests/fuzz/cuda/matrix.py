"""Statements that a whole warp runs on matrices: products, loads and stores of rows, transposes.

Elements are small whole numbers, so that sums are exact in any order.
"""

from collections.abc import Callable

from fuzz.cuda.change import place
from fuzz.cuda.scope import Scope
from fuzz.cuda.tree import Stmt

FRAGMENTS = """\
__device__ __forceinline__ unsigned small_f16(unsigned x)
{
    return (x & 4 ? 0xBC00C000C200C400ull : 0x420040003C000000ull) >> 16 * (x & 3) & 0xFFFF;
}
__device__ __forceinline__ unsigned small_bf16(unsigned x)
{
    return (x & 4 ? 0xBF80C000C040C080ull : 0x404040003F800000ull) >> 16 * (x & 3) & 0xFFFF;
}
__device__ __forceinline__ unsigned pair_f16(unsigned x)
{
    return small_f16(x) | small_f16(x >> 7) << 16;
}
__device__ __forceinline__ unsigned pair_bf16(unsigned x)
{
    return small_bf16(x) | small_bf16(x >> 7) << 16;
}
__device__ __forceinline__ unsigned one_tf32(unsigned x) { return small_bf16(x >> 3) << 16; }
__device__ __forceinline__ unsigned any_bits(unsigned x) { return x; }
#define PRODUCT(kind, C, element) \\
    __device__ __forceinline__ C product_##kind(unsigned x, unsigned y, C c, unsigned which) \\
    { \\
        unsigned a[4], b[2]; \\
        C d[4]; \\
        for (int k = 0; k < 4; k++) { \\
            a[k] = element(x * (2 * k + 1)); \\
            d[k] = c + k; \\
        } \\
        for (int k = 0; k < 2; k++) b[k] = element(y * (2 * k + 3)); \\
        mma_##kind(d, a, b); \\
        return which & 2 ? which & 1 ? d[3] : d[2] : which & 1 ? d[1] : d[0]; \\
    }
PRODUCT(f16, float, pair_f16)
PRODUCT(bf16, float, pair_bf16)
PRODUCT(tf32, float, one_tf32)
PRODUCT(s8, int, any_bits)
PRODUCT(u8, int, any_bits)
PRODUCT(s4, int, any_bits)
PRODUCT(and, int, any_bits)
PRODUCT(xor, int, any_bits)
__device__ __forceinline__ double product_f64(unsigned x, unsigned y, double c, unsigned which)
{
    double d[2] = { c, c + 1 };
    mma_f64(d, (double)(int)(x & 255) - 99, (double)(int)(y & 127) - 50);
    return d[which & 1];
}
"""
"""Products of fragments that are made of two words a lane."""
KINDS = {
    **{kind: "f32" for kind in ("f16", "bf16", "tf32")},
    **{kind: "i32" for kind in ("s8", "u8", "s4", "and", "xor")},
    "f64": "f64",
}
"""Element types of products, and the types of their sums."""
MOST_WARPS = 10


def product(scope: Scope) -> Stmt | None:
    """A product of two matrices that lie in registers."""
    kind = scope.dice.pick(tuple(KINDS))
    target = place(scope, (KINDS[kind],))
    if not target:
        return None
    start = {"f32": "(float)({2} & 1023)", "i32": "(int){2}", "f64": "(double)({2} & 1023)"}
    form = f"{target.form} = product_{kind}({{0}}, {{1}}, {start[KINDS[kind]]}, {{3}});"
    return _full_warps(scope, form, 4)


def turn(scope: Scope) -> Stmt | None:
    """A transpose of an 8 by 8 matrix in registers."""
    target = place(scope, ("u32",))
    return _full_warps(scope, f"{target.form} = transpose({{0}});", 1) if target else None


def rows(scope: Scope) -> Stmt | None:
    """Rows of matrices from shared memory to registers, or the other way."""
    target, name = place(scope, ("u32",)), _tile(scope, "u32", 128)
    if not target or not name:
        return None
    r, k, how = scope.fresh("r"), scope.fresh("k"), scope.dice.pick(("rows", "columns"))
    row = f"&{name}[t / 32][(lane ^ {scope.dice.below(32)}) * 4]"
    fill = (
        f"for (int {k} = lane; {k} < 128; {k} += 32) "
        f"{name}[t / 32][{k}] = {{0}} * (unsigned){k} + (unsigned)lane;\n__syncwarp(0xffffffffu);\n"
    )
    if scope.dice.chance(50):
        one = scope.dice.pick(("load_one", "load_two"))
        act = (
            f"{target.form} ^= {one}({row});\nunsigned {r}[4];\nload_{how}({r}, {row});\n"
            f"{target.form} ^= {r}[0] + 3 * {r}[1] + 5 * {r}[2] + 7 * {r}[3];"
        )
    else:
        act = (
            f"unsigned {r}[4] = {{ {{1}}, {{2}}, {{3}}, (unsigned)lane }};\n"
            f"store_{how}({r}, {row});\n__syncwarp(0xffffffffu);\n"
            f"{target.form} ^= {name}[t / 32][{{1}} & 127];"
        )
    form = f"__syncwarp(0xffffffffu);\n{fill}{act}\n__syncwarp(0xffffffffu);"
    return _full_warps(scope, form, 4)


def tiles(scope: Scope) -> Stmt | None:
    """A product of matrices of 16 by 16 in shared memory (WMMA)."""
    target, k = place(scope, ("f32",)), scope.fresh("k")
    a, b, c = (_tile(scope, type_, n) for type_, n in (("u32", 128), ("u32", 128), ("f32", 256)))
    if not target or not a or not b or not c:
        return None
    form = (
        f"__syncwarp(0xffffffffu);\nfor (int {k} = lane; {k} < 256; {k} += 32) {{\n"
        f"    {a}[t / 32][{k} & 127] = pair_f16({{0}} * ({k} & 127u) + (unsigned)lane);\n"
        f"    {b}[t / 32][{k} & 127] = pair_f16({{1}} ^ (unsigned){k} & 127);\n"
        f"    {c}[t / 32][{k}] = (float)({{2}} & 63);\n}}\n__syncwarp(0xffffffffu);\n"
        f"wmma_f16({a}[t / 32], {b}[t / 32], {c}[t / 32]);\n__syncwarp(0xffffffffu);\n"
        f"{target.form} = {c}[t / 32][{{3}} & 255];\n__syncwarp(0xffffffffu);"
    )
    return _full_warps(scope, form, 4)


def _tile(scope: Scope, type_: str, words: int) -> str | None:
    """A new shared array with a row a warp."""
    return scope.shared(type_, f"[{MOST_WARPS}][{words}]", 4 * MOST_WARPS * words, 128)


def _full_warps(scope: Scope, form: str, parts: int) -> Stmt:
    """A statement of words for warps without a lane too few, or for some of them."""
    taken = scope.dice.pick(("", "", " && (t / 32 & 1)", " && t >= 32", " && (t / 32 + bx) % 3"))
    sync = scope.dice.pick(("", "__syncwarp(0xffffffffu);\n"))
    inside = (Stmt(sync + form, tuple(scope.expr("u32", 1) for _ in range(parts))),)
    return Stmt(f"if (wn == 32{taken}) {{\n    <0>\n}}", (), (inside,))


MAKERS: tuple[Callable[[Scope], Stmt | None], ...] = (product, product, product, turn, rows, tiles)
