"""Collisions: what becomes of an atomic whose lanes share an address, by what the code says.

The assembler combines the lanes of a 32-bit integer atomic on an address that it can tell to be
one for the whole warp, and lets one lane do the work. In shared memory it has an instruction of its
own for adding one. Found on an H200 (docs/validation.md).

An address is one for the whole warp if it is computed from nothing but parameters, constants, the
block's index, and values loaded from such addresses. A register that differs between lanes only
because they came by different branches is taken for one value.
"""

import re
from collections.abc import Mapping, Sequence, Set

import pyarrow as pa

Instruction = Mapping[str, object]
"""A row of `traces.schema.INSTRUCTIONS`."""

_REGISTER = re.compile(r"%[A-Za-z_$][\w$]*(?:\.[xyz])?")
_OWN = re.compile(r"%(tid|laneid|warpid|lanemask_\w+|clock\w*|smid)\b")
"""Special registers that lanes or warps have for themselves."""
_VARYING = frozenset({"atom", "shfl", "tex", "tld4", "call", "ldmatrix", "suld", "mma", "wmma"})
_NO_RESULT = frozenset({"st", "red", "bra", "brx", "bar", "barrier", "ret", "exit", "trap", "cp"})
_ELECTABLE = frozenset({"add", "min", "max", "and", "or", "xor"})
COUNTS = {"add": ("1",), "inc": ("-1", "4294967295", "0xffffffff")}
"""Operations that add one, with such a last operand: `inc` begins anew beyond it."""

Register = tuple[str, str]
"""Function and name."""


def find_collisions(instructions: pa.Table) -> Sequence[str]:
    """Return for each instruction a key of `seam.COLLISIONS`, or `""` if it is no atomic."""
    columns = ["function", "opcode", "mnemonic", "space", "type", "predicate", "text"]
    rows = instructions.select([*columns, "result_read"]).to_pylist()
    if not any(row["opcode"] in ("atom", "red") for row in rows):
        return [""] * len(rows)
    varying = _spread(rows)
    return [_collision(row, varying) for row in rows]


def _collision(row: Instruction, varying: Set[Register]) -> str:
    """Return how lanes on one address are served."""
    if row["opcode"] not in ("atom", "red"):
        return ""
    operations = set(str(row["mnemonic"]).split("."))
    if "cas" in operations:
        return "compared"
    word = row["type"] in ("u32", "s32", "b32")
    unread = row["opcode"] == "red" or not row["result_read"]
    operands = _operands(row)
    counts = any(name in operations and operands[-1].strip() in one for name, one in COUNTS.items())
    if word and unread and counts and row["space"] == "shared":
        return "counted"
    address = next((operand for operand in operands if "[" in operand), None)
    own = {(str(row["function"]), name) for name in _registers(address or "")}
    one = address is not None and varying.isdisjoint(own)
    electable = operations & (_ELECTABLE if unread else {"add"})
    return "elected" if word and one and electable else "serial"


def _spread(rows: Sequence[Instruction]) -> Set[Register]:
    """Return the registers whose lanes may differ."""
    varying: set[Register] = set()
    steps = [_flow(row) for row in rows]
    grown = True
    while grown:
        before = len(varying)
        for results, sources, differs in steps:
            if differs or not varying.isdisjoint(sources):
                varying.update(results)
        grown = len(varying) > before
    return varying


def _flow(row: Instruction) -> tuple[Set[Register], Set[Register], bool]:
    """Return what an instruction writes, what it reads, and whether lanes differ by themselves."""
    opcode, function = str(row["opcode"]), str(row["function"])
    operands = _operands(row)
    written = [] if opcode in _NO_RESULT or not operands else _registers(operands.pop(0))
    read = [*_registers(str(row["predicate"])), *(n for o in operands for n in _registers(o))]
    own = opcode in _VARYING or any(_OWN.match(name) for name in read)
    return {(function, n) for n in written}, {(function, n) for n in read}, own


def _operands(row: Instruction) -> list[str]:
    """Split the operands of an instruction's text."""
    text = re.sub(r"^@!?\S+\s+", "", str(row["text"])).removesuffix(";")
    _, _, rest = text.replace("\t", " ").partition(" ")
    return re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,])+", rest)


def _registers(text: str) -> list[str]:
    return _REGISTER.findall(text)
