"""One instruction as a kernel: a line of a table becomes PTX that loads, computes and stores.

A line is `MNEMONIC : RESULTS <- SOURCES ~ BOUND`, where everything after the mnemonic may be left
out: the types then follow from the opcode. Braces expand: `{add,sub}.{u32,s32}` is four cases. A
line with `$` is the text of one or more instructions, with `$d0` the first result, `$s0` the first
source, `$m` an address of 64 bytes of global memory for each thread, `$t0` to `$t7` 32-bit and
`$w0` to `$w7` 64-bit registers to spare.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

REGISTER = {"pred": "pred", "n": "b32", "b128": "b128"}
WIDE = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}
SCRATCH = 64
ALIASES = {
    **{"n": "u32", "lane": "u32", "turn": "s32", "angle": "f32", "e4m3x2": "b16", "e5m2x2": "b16"},
    **{"e2m1x2": "b8", "e2m3x2": "b16", "e3m2x2": "b16", "ue8m0x2": "b16", "e2m1x4": "b16"},
    **{f"{kind}x4": "b32" for kind in ("e4m3", "e5m2", "e2m3", "e3m2")},
    **{"m_e4m3": "b32", "m_e5m2": "b32", "m_tf32": "tf32", "m_f32": "f32"},
    **{"m_f16x2": "f16x2", "m_bf16x2": "bf16x2"},
}
"""Types that only say which values a source takes; `n` is a number of bits, `m_` a matrix."""

BY_SIGNATURE = {
    "T <- T T": "add sub mul mul24 div rem min max and or xor copysign",
    "T <- T T T": "mad mad24 fma sad",
    "T <- T": "abs neg not cnot brev sqrt rcp rsqrt lg2 ex2 tanh",
    "T <- angle": "sin cos",
    "u32 <- T": "popc clz bfind",
    "T <- T n": "shl shr szext",
    "U <- T": "cvt",
    "U <- T T": "set",
    "pred <- T T": "setp",
}
SIGNATURES = {
    **{opcode: types for types, opcodes in BY_SIGNATURE.items() for opcode in opcodes.split()},
    "mul.wide": "W <- T T",
    "mad.wide": "W <- T T W",
    "fns": "b32 <- b32 lane turn",
    "bfe": "T <- T n n",
    "bfi": "T <- T T n n",
    "bmsk": "b32 <- n n",
    "shf": "b32 <- b32 b32 n",
    "prmt": "b32 <- b32 b32 b32",
    "dp4a": "T <- U T T",
    "dp2a": "T <- U T T",
    "testp": "pred <- T",
    "selp": "T <- T T pred",
    "slct": "U <- U U T",
}
"""What an opcode (or opcode and modifier) takes and gives: T its last type, U its first, W the
type twice as wide as T."""

_TYPE = re.compile(
    r"^([usb](8|16|32|64|128)|b?f16(x2)?|[us]16x2|t?f32|f64|e[45]m[23](x[24])?|e[23]m[123]x[24]|ue8m0x2|pred)$"
)


@dataclass(frozen=True)
class Case:
    """An instruction, the types of its results and sources, and how far it may be off."""

    name: str
    text: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    bound: str = ""


def read_cases(text: str) -> Iterator[Case]:
    """Yield the cases of a table; `#` starts a comment."""
    for line in text.splitlines():
        line = line.partition("# ")[0].strip()
        if line:
            yield from map(read_case, expand(line))


def expand(line: str) -> Iterator[str]:
    """Yield the line for every choice in its braces, the last one fastest."""
    parts = re.split(r"\{([^{}$]*,[^{}$]*)\}", line)
    choices = [part.split(",") if k % 2 else [part] for k, part in enumerate(parts)]
    for chosen in itertools.product(*choices):
        yield "".join(chosen)


def read_case(line: str) -> Case:
    """Read one line without braces."""
    rest, _, bound = line.partition(" ~ ")
    name, _, signature = rest.partition(" : ")
    name = name.strip()
    results, sources = types_of(name, signature.strip())
    text = name if "$" in name else _written(name, results, sources)
    return Case(name, text, _flat(results), _flat(s for s in sources if s[0] != "#"), bound.strip())


def types_of(name: str, signature: str) -> tuple[list[str], list[str]]:
    """Return the types of results and sources, given or by the opcode; `f32*4` is a vector."""
    opcode, *modifiers = name.split()[0].split(".")
    if not signature:
        wide = f"{opcode}.wide" if "wide" in modifiers else opcode
        signature = SIGNATURES[wide]
    types = [m for m in modifiers if _TYPE.match(m)] or ["b32"]
    names = {"T": types[-1], "U": types[0], "W": WIDE.get(types[-1], "")}

    def read(side: str) -> list[str]:
        return [names.get(word, word) for word in side.split()]

    results, _, sources = signature.partition("<-")
    return read(results), read(sources)


def _flat(types: Sequence[str] | Iterator[str]) -> tuple[str, ...]:
    flat: list[str] = []
    for kind in types:
        base, _, count = kind.partition("*")
        flat += [base] * int(count or 1)
    return tuple(flat)


def _written(name: str, results: list[str], sources: list[str]) -> str:
    """Write the instruction with its operands: results, then sources; `#5` stands as it is."""
    to = "|".join(_operands("d", results))
    return f"{name} {', '.join([to, *_operands('s', sources)])};"


def _operands(letter: str, types: list[str]) -> list[str]:
    operands: list[str] = []
    number = 0
    for kind in types:
        if kind[0] == "#":
            operands.append(kind[1:])
            continue
        count = int(kind.partition("*")[2] or 1)
        names = [f"${letter}{number + k}" for k in range(count)]
        operands.append(f"{{{', '.join(names)}}}" if "*" in kind else names[0])
        number += count
    return operands


def bits_of(kind: str) -> int:
    """Bits of one value of a type in memory; a predicate is stored as a 32-bit 0 or 1."""
    kind = ALIASES.get(kind, kind)
    if kind in ("pred", "f16x2", "bf16x2", "u16x2", "s16x2", "tf32"):
        return 32
    return 16 if kind == "bf16" else int(re.sub(r"\D", "", kind))


def dtype_of(kind: str) -> np.dtype[Any]:
    """The NumPy type of a type's bits: unsigned, or 16 bytes for b128."""
    bits = bits_of(kind)
    return np.dtype("V16") if bits == 128 else np.dtype(f"u{bits // 8}")


def kernel_text(case: Case, name: str) -> str:
    """Write a kernel `name(sources..., results..., scratch)`: a pointer each, an element a lane."""
    sources = "\n".join(_load(k, kind) for k, kind in enumerate(case.sources))
    results = "\n".join(_store(k, kind, len(case.sources)) for k, kind in enumerate(case.results))
    count = len(case.sources) + len(case.results) + 1
    parameters = ", ".join(f".param .u64 p{k}" for k in range(count))
    return f""".visible .entry {name}({parameters})
{{
.reg .u32 %i<4>;
.reg .u64 %a<2>;
.reg .u64 %m;
.reg .b32 %t<8>;
.reg .b64 %w<8>;
{_declare("s", case.sources)}
{_declare("d", case.results)}
mov.u32 %i0, %ctaid.x;
mov.u32 %i1, %ntid.x;
mov.u32 %i2, %tid.x;
mad.lo.u32 %i0, %i0, %i1, %i2;
ld.param.u64 %m, [p{count - 1}];
mad.wide.u32 %m, %i0, {SCRATCH}, %m;
{sources}
{_body(case)}
{results}
ret;
}}
"""


def bare_kernel_text(cases: Sequence[Case], name: str) -> str:
    """Write a kernel `name(scratch)` of several cases, each in a scope, without sources."""
    scopes = "\n".join(
        f"{{\n{_declare('s', case.sources)}\n{_declare('d', case.results)}\n{_body(case)}\n}}"
        for case in cases
    )
    return f""".visible .entry {name}(.param .u64 p0)
{{
.reg .u32 %i<4>;
.reg .u64 %m;
.reg .b32 %t<8>;
.reg .b64 %w<8>;
mov.u32 %i2, %tid.x;
ld.param.u64 %m, [p0];
{scopes}
ret;
}}
"""


def _body(case: Case) -> str:
    return re.sub(r"\$([dstwm])(\d*)", r"%\1\2", case.text).rstrip(";") + ";"


def _declare(letter: str, types: tuple[str, ...]) -> str:
    lines = []
    for k, kind in enumerate(types):
        register = REGISTER.get(kind, f"b{max(bits_of(kind), 16)}")
        if kind in ("u8", "s8", "b8"):
            register = "b32"
        lines.append(f".reg .{register} %{letter}{k};")
    return "\n".join(lines)


def _address(number: int, kind: str) -> str:
    return f"ld.param.u64 %a0, [p{number}];\nmad.wide.u32 %a0, %i0, {bits_of(kind) // 8}, %a0;\n"


def _load(number: int, kind: str) -> str:
    address = _address(number, kind)
    if kind == "pred":
        return f"{address}ld.global.u32 %i3, [%a0];\nsetp.ne.u32 %s{number}, %i3, 0;"
    if kind == "b128":
        return f"{address}ld.global.b128 %s{number}, [%a0];"
    element = kind if kind in ("s8", "u8") else f"b{bits_of(kind)}"
    return f"{address}ld.global.{element} %s{number}, [%a0];"


def _store(number: int, kind: str, before: int) -> str:
    if kind in ("u8", "s8"):
        address = _address(number + before, "u32")
        return f"{address}st.global.b32 [%a0], %d{number};"
    address = _address(number + before, kind)
    if kind == "pred":
        return f"{address}selp.u32 %i3, 1, 0, %d{number};\nst.global.u32 [%a0], %i3;"
    return f"{address}st.global.b{bits_of(kind)} [%a0], %d{number};"


def stored_dtype(kind: str) -> np.dtype[Any]:
    """The NumPy type of a stored result; 8-bit ones are stored as their whole 32-bit register."""
    return np.dtype("u4") if kind in ("u8", "s8") else dtype_of(kind)
