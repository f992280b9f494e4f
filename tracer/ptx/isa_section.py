"""Where the PTX ISA (8.8) describes an instruction, and the devices that have it, for messages."""

from functools import cache

_SECTIONS = """
9.7.1: sad mul24 mad24 popc clz bfind fns brev bfe bfi szext bmsk dp4a dp2a rem
9.7.2: addc subc madc
9.7.3: testp copysign rcp sqrt rsqrt sin cos lg2 ex2 tanh
9.7.1, 9.7.3 and 9.7.4: add sub mul mad fma div abs neg min max
9.7.6: set setp selp slct
9.7.8: and or xor not cnot lop3 shf shl shr
9.7.9.3: mov
9.7.9.5: shfl
9.7.9.7: prmt
9.7.9.8: ld
9.7.9.10: ldu
9.7.9.11: st
9.7.9.14: multimem
9.7.9.15: prefetch prefetchu
9.7.9.16: applypriority
9.7.9.17: discard
9.7.9.18: createpolicy
9.7.9.19: isspacep
9.7.9.20: cvta
9.7.9.21: cvt
9.7.9.23: mapa
9.7.9.24: getctarank
9.7.9.25: cp
9.7.9.26: tensormap
9.7.10.3: tex
9.7.10.4: tld4
9.7.10.5: txq
9.7.10.6: istypep
9.7.11: suld sust sured suq
9.7.12: bra brx call ret exit
9.7.13.1: bar barrier
9.7.13.4: membar fence
9.7.13.5: atom
9.7.13.7: red
9.7.13.10: vote
9.7.13.11: match
9.7.13.12: activemask
9.7.13.13: redux
9.7.13.14: griddepcontrol
9.7.13.15: elect
9.7.13.16: mbarrier
9.7.13.18: clusterlaunchcontrol
9.7.14.4: wmma
9.7.14.5: mma ldmatrix stmatrix movmatrix
9.7.15: wgmma
9.7.16: tcgen05
9.7.17: stacksave stackrestore alloca
9.7.18 and 9.7.19: vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2
9.7.18 and 9.7.19: vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4
9.7.20: brkpt nanosleep pmevent trap setmaxnreg
"""

_DEVICES = {
    "tcgen05": "10.0, 10.1 and 10.3",
    "wgmma": "9.0 alone",
    "clusterlaunchcontrol": "10.0 and later",
    "block_scale": "12.0 and 12.1",
    "im2col::w": "10.0 and later",
    "im2col::w::128": "10.0, 10.1 and 10.3",
    "swizzle_atomicity": "10.0 and later",
    **dict.fromkeys(("e2m1x2", "e2m3x2", "e3m2x2", "ue8m0x2", "rs"), "10.0 and later"),
    **dict.fromkeys(("m16n16", "m8n16", "m16n8"), "10.0 and later"),
    **dict.fromkeys(("multimem", "mapa", "getctarank", "elect", "setmaxnreg"), "9.0 and later"),
    **dict.fromkeys(("griddepcontrol", "stmatrix", "tensormap", "bulk"), "9.0 and later"),
    **dict.fromkeys(("redux", "createpolicy", "applypriority", "discard"), "8.0 and later"),
    **dict.fromkeys(("ldmatrix", "movmatrix"), "7.5 and later"),
    **dict.fromkeys(("wmma", "mma", "match", "nanosleep"), "7.0 and later"),
    **dict.fromkeys(("2dms", "a2dms"), "3.0 and later"),
}
"""Compute capabilities by opcode or modifier; the first modifier that is here tells."""


@cache
def _sections() -> dict[str, str]:
    found = {}
    for line in _SECTIONS.strip().splitlines():
        section, _, opcodes = line.partition(": ")
        found.update(dict.fromkeys(opcodes.split(), section))
    return found


def isa_note(opcode: str, modifiers: tuple[str, ...]) -> str:
    """Return `; PTX ISA 9.7.10.3, compute capability 3.0 and later`; empty for an opcode that the
    ISA does not have."""
    section = _sections().get(opcode)
    if section is None:
        return ""
    devices = next((_DEVICES[word] for word in (*modifiers, opcode) if word in _DEVICES), "")
    return f"; PTX ISA {section}" + (f", compute capability {devices}" if devices else "")
