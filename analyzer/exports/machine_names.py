"""Machine names: the SASS instruction nearest to a PTX instruction, for simulators that ask for it.

What becomes of PTX in an assembler is not guessed at: each instruction is one, of its class, space,
width and cache operator. Sources: as traces/foreign/sass.py.
"""

from collections.abc import Mapping

from ...traces.schema import STRONG_LOADS, Space

_OPERATIONS = {
    ("single", "add"): "FADD",
    ("single", "mul"): "FMUL",
    ("single", "fma"): "FFMA",
    ("single", "special"): "MUFU.RCP",
    ("double", "add"): "DADD",
    ("double", "mul"): "DMUL",
    ("double", "fma"): "DFMA",
    ("double", "special"): "MUFU.RCP64H",
    ("half", "add"): "HADD2",
    ("half", "mul"): "HMUL2",
    ("half", "fma"): "HFMA2",
    ("half", "special"): "MUFU.EX2.F16",
}
_CLASSES = {
    "single": "FSETP",
    "double": "DSETP",
    "half": "HSETP2",
    "integer": "IADD3",
    "conversion": "F2F",
    "exchange": "SHFL.IDX",
    "other": "MOV",
    "memory": "CCTL",
}
_OPCODES = {
    **dict.fromkeys(("ret", "exit"), "EXIT"),
    **{"bra": "BRA", "brx": "BRX", "call": "CALL.REL", "trap": "BPT.TRAP"},
    **{
        "membar": "MEMBAR.SC.GPU",
        "fence": "MEMBAR.SC.GPU",
        "vote": "VOTE.ANY",
        "match": "MATCH.ANY",
    },
    **{"redux": "REDUX", "mma": "HMMA.16816.F32", "tex": "TEX", "tld4": "TLD4", "suld": "SULD"},
    **{"sust": "SUST", "sured": "SURED", "prefetch": "CCTL.PF2", "prefetchu": "CCTL.PF1"},
}
_SPACES = {
    Space.GLOBAL: {"load": "LDG.E", "store": "STG.E", "atomic": "ATOMG.E", "reduction": "RED.E"},
    Space.SHARED: {"load": "LDS", "store": "STS", "atomic": "ATOMS", "reduction": "ATOMS"},
    Space.LOCAL: {"load": "LDL", "store": "STL"},
    Space.CONST: {"load": "LDC"},
}
_GENERIC = {"load": "LD.E", "store": "ST.E", "atomic": "ATOM.E", "reduction": "ATOM.E"}
_WIDTHS = {1: ".U8", 2: ".U16", 4: "", 8: ".64", 16: ".128", 32: ".256"}
_CACHES = {"nc": ".CONSTANT", "cs": ".EF", "lu": ".LU", "cg": ".CG", "cv": ".CV", "wt": ".WT"}
_SCOPES = {"cta": ".CTA", "cluster": ".CLUSTER", "gpu": ".GPU", "sys": ".SYS", "": ".SYS"}


def machine_name(row: Mapping[str, object]) -> str:
    """Return the mnemonic of a row of INSTRUCTIONS; a machine's own stays as it is."""
    opcode = str(row["opcode"])
    if opcode.isupper():
        return str(row["mnemonic"])
    if row["access"] and opcode not in ("tex", "tld4", "suld", "sust", "sured"):
        return _access_name(row, opcode)
    if row["barrier"] is not None:
        return "BAR.ARV" if row["operation"] == "arrive" else "BAR.SYNC.DEFER_BLOCKING"
    kind, operation = str(row["class"]), str(row["operation"])
    known = _OPCODES.get(opcode) or _OPERATIONS.get((kind, operation))
    return known or _CLASSES.get(kind, "NOP")


def _access_name(row: Mapping[str, object], opcode: str) -> str:
    if opcode in ("ldmatrix", "stmatrix"):
        count = next((f".{n}" for n in "421" if f".x{n}" in str(row["mnemonic"])), "")
        return f"{'LDSM' if opcode == 'ldmatrix' else 'STSM'}.16.M88{count}"
    access, width = str(row["access"]), _WIDTHS.get(int(str(row["bytes"])), "")
    if access == "copy":
        return f"LDGSTS.E.BYPASS{width}"
    reach = int(str(row["reads"])) | int(str(row["writes"]))
    own = [space for space in _SPACES if reach == 1 << space]
    name = (_SPACES[own[0]] if own else _GENERIC).get(access, "NOP")
    if access in ("atomic", "reduction"):
        how = ".POPC.INC" if row["collision"] == "counted" else f".{str(row['operation']).upper()}"
        return f"{name}{how}{width}{_strength(row) if own != [Space.SHARED] else ''}"
    return f"{name}{width}{_CACHES.get(str(row['cache']), '')}{_strength(row)}"


def _strength(row: Mapping[str, object]) -> str:
    if row["order"] in STRONG_LOADS or row["order"] in ("acq_rel", "release", "sc"):
        return f".STRONG{_SCOPES[str(row['scope'])]}"
    return ""
