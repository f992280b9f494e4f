"""Memory in machine code: loads, stores, atomics, copies past the registers, matrices."""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...base.errors import KernelFault
from ...traces.schema import Space
from ..simt.access.cluster import SPAN, START
from ..simt.memory.memory import WINDOWS
from .constant import SHARED_WINDOW
from .cubin import Code, Instruction
from .lift import Handler, Lifter
from .operand import Operand, registers

_TERM = re.compile(r"(U?R)(Z|\d+)((?:\.\w+)*)|(-?0x[0-9a-f]+)")
_WIDTHS = {
    **{"U8": ("u8", 1), "S8": ("s8", 1), "U16": ("u16", 1), "S16": ("s16", 1)},
    **{"64": ("b32", 2), "128": ("b32", 4), "256": ("b32", 8)},
}
SCOPES = {"CTA": "cta", "SM": "cta", "GPU": "gpu", "SYS": "sys", "VC": "sys"}
_SPACES = {"G": ".global", "S": ".shared", "L": ".local", "": ""}
_HINTS = ("EF", "EL", "LU", "EU", "NA", "E", "U", "LTC64B", "LTC128B", "LTC256B", "PRIVATE",
          "ENL2")  # fmt: skip
"""Modifiers that say how a cache keeps a line, or that an address has 64 bits."""


def address_of(lifter: Lifter, operand: Operand, space: str) -> str:
    """Return an address in brackets: a register of 64 or, in shared and local memory, 32 bits.

    `space` is "" for a generic address, "cluster" for shared memory of any block of a cluster.
    """
    if operand.kind != "[":
        raise lifter.refuse(f"expected an address, found `{operand.text}`")
    inner = operand.text[operand.text.rindex("[") + 1 : -1]
    wide = space in ("global", "")
    base, offset, terms = "", 0, []
    for term in inner.replace("+-", "+~").split("+"):
        match = _TERM.fullmatch(term.replace("~", "-"))
        if match is None:
            raise lifter.refuse(f"cutrace does not know the address `{operand.text}`")
        if match[4]:
            offset += int(match[4], 16)
        elif match[2] != "Z":
            terms.append((match[1], int(match[2]), match[3].lstrip(".")))
    for number, (prefix, register, suffix) in enumerate(terms):
        one = Operand("R", f"{prefix}{register}", number=register)
        if suffix in ("X4", "X8", "X16") and not wide:
            value = lifter.compute("mul.lo.u32", f"%{one.text}", suffix[1:])
        elif not wide and suffix == "":
            value = f"%{one.text}"
        elif wide and suffix == "U32":
            value = lifter.compute("cvt.u64.u32", f"%{one.text}", kind="d")
        elif wide and suffix in ("64", ""):
            value = lifter.wide(one)
        else:
            raise lifter.refuse(f"cutrace does not know the address `{operand.text}`")
        is_known = terms[0][2] in ("U32", "64") or terms[0][0] != "R"
        if number and wide and suffix == "" and not is_known:
            raise lifter.refuse(f"cutrace does not know the address `{operand.text}`")
        if base:
            value = lifter.compute(
                f"add.u{64 if wide else 32}", base, value, kind="d" if wide else "r"
            )
        base = value
    if space == "shared" and lifter.is_clustered and base:
        base = lifter.compute("and.b32", base, str(SPAN - 1))  # above is the block's rank
    if space == "cluster" and lifter.is_clustered:
        offset += START
    if space in ("shared", "cluster"):
        offset += lifter.displacement
    if space == "" and base:
        base = _generic(lifter, base, offset)
        offset = 0
    return f"[{base}+{offset}]" if base else f"[{offset}]"


def _generic(lifter: Lifter, base: str, offset: int) -> str:
    """Return a generic address, in the engine's own window if it is one of shared memory."""
    low, high = lifter.new(), lifter.new()
    place = lifter.compute("add.s64", base, str(offset), kind="d")
    lifter.emit("mov.b64", f"{{{low}, {high}}}", place, guarded=False)
    is_shared = lifter.compute("setp.eq.u32", high, str(SHARED_WINDOW), kind="p")
    shared = lifter.compute("cvt.u64.u32", low, kind="d")
    first = WINDOWS[Space.SHARED][0] + START * lifter.is_clustered + lifter.displacement
    window = lifter.compute("add.s64", shared, str(first), kind="d")
    return lifter.compute("selp.b64", window, place, is_shared, kind="d")


def _order(lifter: Lifter, store: bool = False) -> str:
    """Return the memory order of a load or a store."""
    if lifter.has("CONSTANT"):
        lifter.take(*SCOPES)
        return ".nc"
    strong = lifter.has("STRONG")
    scope = lifter.take(*SCOPES)
    if lifter.has("MMIO"):
        return ".mmio.relaxed.sys"
    return f".relaxed.{SCOPES[scope[0]]}" if strong and scope else ""


def vector_of(names: list[str], always: bool = False) -> str:
    """Return registers as one operand; a single one has no braces unless `always` is set."""
    return names[0] if len(names) == 1 and not always else f"{{{', '.join(names)}}}"


_WIDE = 8
"""Words of an access of 256 bits, in two operands: of a load the upper half is the first."""


def _results(lifter: Lifter, to: Operand, count: int) -> list[str]:
    return [lifter.new() for _ in range(count)] if to.is_zero else registers(to, count)


def _load(space: str) -> Handler:
    """Return the function of LDG, LDS, LDL or LD."""

    def lift(lifter: Lifter) -> None:
        lifter.take(*_HINTS)
        order = _order(lifter)
        kind, count = _width(lifter)
        *wide, to, place = lifter.require(3) if count == _WIDE else lifter.require(2, 3)[:2]
        condition = lifter.operands[2:] if count < _WIDE else []
        name = f".{space}" if space else ""
        order = order if space in ("global", "") else ""
        if order == ".nc" and not space:
            order = ""
        address = address_of(lifter, place, space)
        names = [name for each in (to, *wide) for name in _results(lifter, each, min(count, 4))]
        vector = f".v{count}" if count > 1 else ""
        relaxed = order if order != ".nc" else ""
        tail = ".nc" if order == ".nc" else ""
        form = f"ld{relaxed}{name}{tail}{vector}.{kind}"
        if not condition:
            lifter.emit(form, vector_of(names), address, guarded=True)
            return
        # Where it is false the result is zero; the address may be in the registers of the result.
        loads, output = lifter.both(lifter.predicate(condition[0])), [lifter.new() for _ in names]
        for each in output:
            lifter.emit("mov.b32", each, "0")
        lifter.lines.append((f"@{loads} {form} {vector_of(output)}, {address};", lifter.now))
        for each, value in zip(names, output, strict=True):
            lifter.emit("mov.b32", each, value, guarded=True)

    return lift


def _width(lifter: Lifter) -> tuple[str, int]:
    widths = lifter.take(*_WIDTHS)
    if len(widths) > 1:
        raise lifter.refuse("cutrace does not know these modifiers")
    return _WIDTHS[widths[0]] if widths else ("b32", 1)


def _store(space: str) -> Handler:
    """Return the function of STG, STS, STL or ST."""

    def lift(lifter: Lifter) -> None:
        lifter.take(*_HINTS)
        order = _order(lifter, store=True)
        kind, count = _width(lifter)
        place, value, *wide = lifter.require(3 if count == _WIDE else 2)
        name = f".{space}" if space else ""
        order = order if space in ("global", "") else ""
        address = address_of(lifter, place, space)
        lifter.refuse_if(any(each.kind != "R" or each.is_zero or each.suffix for each in wide))
        if value.is_zero:
            lifter.refuse_if(wide)
            names = ["0"] * count
        else:
            if value.kind != "R" or value.suffix:
                raise lifter.refuse("cutrace does not know this form")
            names = registers(value, min(count, 4))
            names += [name for each in wide for name in registers(each, 4)]
            if lifter.has_mbarriers and count > 1 and space in ("shared", ""):
                pairs = zip(names[::2], names[1::2], strict=True)
                names = [word for pair in pairs for word in _mbarrier_pair(lifter, *pair)]
        vector = f".v{count}" if count > 1 else ""
        lifter.emit(f"st{order}{name}{vector}.{kind}", address, vector_of(names), guarded=True)

    return lift


COUNT = 1 << 20
"""Counts of an mbarrier rise to this; the engine's fall from their number."""


def _mbarrier_pair(lifter: Lifter, low: str, high: str) -> tuple[str, str]:
    """Return a pair of words to store: the engine's mbarrier in place of the chip's initial one,
    which code for 10.0 and newer may store like any other words.

    Bits 1 to 20 and 43 to 62 both have 2^20 - n, for n arrivals, bit 63 the phase, and all others
    are 0. The engine has n in bits 0 to 19 and 20 to 39, and the phase in bit 61.
    """
    other = lifter.compute("xor.b32", lifter.compute("shl.b32", low, "10"), high)
    other = lifter.compute("shl.b32", other, "1")  # without the phase
    is_second = lifter.compute("setp.eq.u32", other, "0", kind="p")
    low_fields = lifter.compute("and.b32", low, str(~(COUNT - 2) & 0xFFFFFFFF))
    initial = lifter.compute("setp.eq.and.u32", low_fields, str(COUNT), is_second, kind="p")
    number = lifter.compute("sub.u32", str(COUNT), lifter.compute("shr.u32", low, "1"))
    both = lifter.compute("or.b32", lifter.compute("shl.b32", number, "20"), number)
    phase = lifter.compute("and.b32", high, "0x80000000")
    phase = lifter.compute("shr.u32", phase, "2")
    upper = lifter.compute("or.b32", lifter.compute("shr.u32", number, "12"), phase)
    first = lifter.compute("selp.b32", both, low, initial)
    return first, lifter.compute("selp.b32", upper, high, initial)


_UPDATES = {
    name: name.lower() for name in ("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH")
}
KINDS = {
    **{"32": "u32", "U32": "u32", "S32": "s32", "64": "u64", "U64": "u64", "S64": "s64"},
    **{"F32": "f32", "F64": "f64", "F16x2": "f16x2", "BF16_V2": "bf16x2", "BF16x2": "bf16x2"},
}
_VECTORS = {
    **{"F32x2": ("f32", 2), "F32x4": ("f32", 4)},
    **{f"{name}x{2 * n}": (f"{name.lower()}x2", n) for name in ("F16", "BF16") for n in (2, 4)},
}
"""Updates of several elements: their type, and the registers that they take."""


def _atomic(space: str, reduces: bool = False) -> Handler:
    """Return the function of ATOMG, ATOMS, ATOM, RED and REDG."""

    def lift(lifter: Lifter) -> None:
        lifter.take("E", "STRONG", "FTZ", "RN", *SCOPES)
        name = f".{space}" if space else ""
        if lifter.has("POPC"):  # lanes at one address are counted in one go
            lifter.refuse_if(not lifter.has("INC"))
            lifter.take("32")
            to, place = lifter.require(2)
            lifter.emit(
                f"atom{name}.add.u32",
                lifter.to(to),
                address_of(lifter, place, space),
                "1",
                guarded=True,
            )
            return
        if lifter.has("CAST"):
            _spin(lifter, name, space)
            return
        is_swap = lifter.has("CAS")
        operation = "cas" if is_swap else lifter.one(_UPDATES)
        if (vector := [m for m in lifter.modifiers if m in _VECTORS]) or lifter.has("128"):
            _update_several(lifter, name, space, operation, vector, reduces)
            return
        kind = lifter.one(KINDS, "u32")
        size = 8 if kind.endswith("64") else 4
        if operation in ("and", "or", "xor", "exch", "cas"):
            kind = f"b{8 * size}"
        if kind in ("f16x2", "bf16x2"):
            operation = f"{operation}.noftz"
        operands = lifter.require(*((2,) if reduces else (4,) if is_swap and space == "shared" else
                               (3, 4, 5)))  # fmt: skip
        status: Operand | None = None
        if operands[0].kind == "P":
            status = operands[0] if operands[0].number >= 0 else None
            operands = operands[1:]
        target = None if reduces else operands[0]
        place, *values = operands if reduces else operands[1:]
        address = address_of(lifter, place, space)
        if status is not None:  # an address of another space: no access, and the predicate is false
            _only_global(lifter, status, address)
        read = [lifter.wide(v) if size == 8 else _plain(lifter, v) for v in values]
        if target is None:
            lifter.emit(f"red{name}.{operation}.{kind}", address, *read, guarded=True)
        elif size == 8:
            output = lifter.new("d")
            lifter.emit(f"atom{name}.{operation}.{kind}", output, address, *read, guarded=True)
            lifter.put_wide(target, output)
        else:
            lifter.emit(
                f"atom{name}.{operation}.{kind}", lifter.to(target), address, *read, guarded=True
            )

    return lift


def _update_several(
    lifter: Lifter, name: str, space: str, operation: str, vector: list[str], reduces: bool
) -> None:
    """Lift an update of a vector, or of 128 bits."""
    lifter.take(*vector)
    *first, place = lifter.require(2, 4, 5)[: 1 if reduces else 3]
    values = lifter.operands[1 if reduces else 3 :]
    lifter.refuse_if(first and (first[0].kind != "P" or first[0].number >= 0))
    address = address_of(lifter, place, space)
    verb = "red" if reduces else "atom"
    to = first[1] if first else None
    if vector:
        kind, count = _VECTORS[vector[0]]
        form = f"{verb}{name}.v{count}.{kind}.{operation}{'.noftz' * ('x2' in kind)}"
        results = [] if to is None else [
            vector_of([lifter.new() for _ in range(count)] if to.is_zero else registers(to, count))
        ]  # fmt: skip
        lifter.emit(form, *results, address, vector_of(registers(values[0], count)), guarded=True)
        return
    wide = []
    for each in values:
        pairs = _as_registers(lifter, [lifter.wide(_next_register(each, n)) for n in (0, 2)])
        wide.append(lifter.compute("mov.b128", vector_of(pairs), kind="q"))
    output = lifter.new("q")
    lifter.emit(f"atom{name}.{operation}.b128", output, address, *wide, guarded=True)
    if to is not None and not to.is_zero:
        halves = [lifter.new("d"), lifter.new("d")]
        lifter.emit("mov.b128", f"{{{', '.join(halves)}}}", output, guarded=False)
        for n, half in zip((0, 2), halves, strict=True):
            lifter.put_wide(_next_register(to, n), half)


def _next_register(operand: Operand, words: int) -> Operand:
    if operand.is_zero:
        return operand
    number = operand.number + words
    return replace(operand, text=f"R{number}", number=number)


def _as_registers(lifter: Lifter, values: list[str]) -> list[str]:
    return [v if v[0] == "%" else lifter.compute("mov.b64", v, kind="d") for v in values]


def _only_global(lifter: Lifter, status: Operand, address: str) -> None:
    """Guard the instruction by whether a lane's address is global; put that into `status`."""
    place = lifter.new("d")
    base, _, offset = address.strip("[]").partition("+")
    lifter.emit("add.s64", place, base, offset or "0")
    inside = lifter.compute("isspacep.global", place, kind="p")
    lifter.emit("mov.pred", lifter.to(status), inside)
    lifter.set_guard(lifter.both(inside))


def _plain(lifter: Lifter, operand: Operand) -> str:
    if operand.is_zero:
        return lifter.compute("mov.b32", "0")
    return lifter.word(operand)


def _spin(lifter: Lifter, name: str, space: str) -> None:
    """Lift ATOMS.CAST.SPIN: a compare and swap that says whether it swapped."""
    lifter.take("SPIN")
    size = 8 if lifter.has("64") else 4
    to, place, expected, value = lifter.require(4)
    address = address_of(lifter, place, space)
    read = lifter.wide if size == 8 else (lambda o: _plain(lifter, o))
    old, same = lifter.new("d" if size == 8 else "r"), lifter.new("p")
    first = read(expected)
    lifter.emit(f"atom{name}.cas.b{8 * size}", old, address, first, read(value), guarded=True)
    lifter.emit(f"setp.eq.u{8 * size}", same, old, first)
    if to.kind == "P":
        lifter.emit("mov.pred", lifter.to(to), same)
    else:
        lifter.emit("selp.u32", lifter.to(to), "1", "0", same)
        if size == 8:
            lifter.emit("mov.b32", registers(to, 2)[1], "0")


def copy_async(lifter: Lifter) -> None:
    """LDGSTS: from global to shared memory, past the registers."""
    lifter.take("E", "LTC64B", "LTC128B", "LTC256B", "CONSTANT")  # CONSTANT: nothing writes there
    fills = lifter.has("ZFILL")
    bypass = lifter.has("BYPASS")
    size = lifter.one({"128": "16", "64": "8"}, "4")
    if fault := refuse_copy(lifter.code, lifter.now):
        raise fault
    # From 9.0 on a descriptor may be a separate operand before the address.
    lifter.operands = [o for o in lifter.operands if o.kind != "#" or o.text[:5] != "desc["]
    to, place, *condition = lifter.require(2, 3)
    target, source = address_of(lifter, to, "shared"), address_of(lifter, place, "global")
    operands = [target, source, size]
    if fills:
        source, count = _partly(lifter, source, int(size))
        operands = [target, source, size, count]
        if condition:
            operands[3] = lifter.number_if(condition[0], count)
    elif condition and lifter.truth(condition[0]) is not True:
        operands.append(lifter.number_if(condition[0], size))
    way = "cg" if bypass and size == "16" else "ca"
    lifter.emit(f"cp.async.{way}.shared.global", *operands, guarded=True)


_DESCRIPTOR = re.compile(r"desc\[UR(\d+)\]")
_UNIFORM = re.compile(r"UR(\d+)")


def refuse_copy(code: Code, copy: Instruction) -> KernelFault | None:
    """Return the fault of a copy whose descriptor is in uniform registers that nothing sets.

    ptxas 13.0 to 13.5 loses the number of the registers that hold a base and a policy of the cache
    (`cp.async` with `.L2::cache_hint`), and encodes UR0 to UR2.
    """
    match = next(filter(None, map(_DESCRIPTOR.match, copy.operands)), None)
    first = int(match[1]) if match else 0
    written = (_UNIFORM.fullmatch(each.operands[0]) for each in code.instructions if each.operands)
    if match is None or any(m and first - 2 <= int(m[1]) <= first + 1 for m in written):
        return None
    why = "an H100 stops here for an illegal instruction: nothing sets"
    fault = code.refuse(copy, f"{why} UR{first} and UR{first + 1}")
    return KernelFault(str(fault), "illegal")


_BASED = 0xDAE
"""The opcode of LDGSTS with a base and a descriptor in uniform registers."""


def has_based_copies(text: bytes) -> bool:
    """Return whether machine code has copies that `refuse_copy` may refuse."""
    return bool((np.frombuffer(text, "<u8")[::2] & 0xFFF == _BASED).any())


def _partly(lifter: Lifter, address: str, size: int) -> tuple[str, str]:
    """Return where a copy reads, and how many bytes: the lowest bits of its address are those that
    it leaves out."""
    base, _, offset = address.strip("[]").partition("+")
    place = lifter.compute("add.s64", base, offset or "0", kind="d")
    low = lifter.compute("and.b32", lifter.compute("cvt.u32.u64", place), str(size - 1))
    start = lifter.compute("and.b64", place, str(-size), kind="d")
    return f"[{start}]", lifter.compute("sub.u32", str(size), low)


def close_group(lifter: Lifter) -> None:
    """LDGDEPBAR: the copies so far are a group."""
    lifter.require(0)
    lifter.emit("cp.async.commit_group")


def wait_scoreboard(lifter: Lifter) -> None:
    """DEPBAR: of SB0 it waits for copies."""
    operands = lifter.now.operands
    if lifter.has("LE") and operands[0] == "SB0" and len(operands) == 2:
        lifter.emit("cp.async.wait_group", str(int(operands[1], 16)))
    else:
        lifter.emit("nanosleep.u32", "0")


def move_matrix(lifter: Lifter) -> None:
    """LDSM and STSM: matrices from and to shared memory."""
    loads = lifter.opcode == "LDSM"
    layout = lifter.one({"M88": "", "MT88": ".trans"})
    count = int(lifter.one({"2": "2", "4": "4"}, "1"))
    lifter.take("16")
    first, second = lifter.require(2)
    value, place = (first, second) if loads else (second, first)
    lifter.refuse_if(value.kind != "R" or value.is_zero or value.suffix)
    words = f"{{{', '.join(registers(value, count))}}}"
    operands = [words, address_of(lifter, place, "shared")]
    form = f"sync.aligned.m8n8.x{count}{layout}.shared.b16"
    lifter.emit(f"{'ld' if loads else 'st'}matrix.{form}", *operands[:: 1 if loads else -1],
           guarded=True)  # fmt: skip


def ask_space(lifter: Lifter) -> None:
    """QSPC: whether a generic address is one of a space."""
    lifter.take("E")
    space = lifter.one({"S": "shared", "L": "local", "G": "global"})
    to, _, place = lifter.require(3)
    inner = address_of(lifter, place, "")
    lifter.emit(f"isspacep.{space}", lifter.to(to), inner[1 : inner.rindex("+")])


HANDLERS: Mapping[str, Handler] = {
    "LDG": _load("global"),
    "LDS": _load("shared"),
    "LDL": _load("local"),
    "LD": _load(""),
    "STG": _store("global"),
    "STS": _store("shared"),
    "STL": _store("local"),
    "ST": _store(""),
    "ATOMG": _atomic("global"),
    "ATOMS": _atomic("shared"),
    "ATOM": _atomic(""),
    "RED": _atomic("global", reduces=True),
    "REDG": _atomic("global", reduces=True),
    "LDGSTS": copy_async,
    "LDGDEPBAR": close_group,
    "DEPBAR": wait_scoreboard,
    **dict.fromkeys(("LDSM", "STSM"), move_matrix),
    "QSPC": ask_space,
}
