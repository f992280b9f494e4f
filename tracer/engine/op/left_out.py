"""Instructions that cutrace leaves out on purpose, and what it says of them."""

from ...ptx.kernel import Instruction

LEFT_OUT: tuple[tuple[str, frozenset[str], str], ...] = (
    ("tcgen05", frozenset(), "tensor memory (compute capability 10.0)"),
    ("st", frozenset({"bulk"}), "bulk stores (compute capability 10.0)"),
    ("wgmma", frozenset({"sp"}), "matrix products with sparse factors"),
    ("mma", frozenset({"block_scale"}), "matrix products with scaled blocks"),
    ("multimem", frozenset(), "memory of several GPUs"),
    ("clusterlaunchcontrol", frozenset(), "clusters of blocks that take over others (10.0)"),
    ("tex", frozenset({"2dms"}), "textures with several samples a texel"),
    ("tex", frozenset({"a2dms"}), "textures with several samples a texel"),
    ("cvt", frozenset({"rs"}), "conversions that round at random"),
    ("cvt", frozenset({"e2m1x2"}), "numbers of 4 and 6 bits (compute capability 10.0)"),
    ("cvt", frozenset({"e2m3x2"}), "numbers of 4 and 6 bits (compute capability 10.0)"),
    ("cvt", frozenset({"e3m2x2"}), "numbers of 4 and 6 bits (compute capability 10.0)"),
    ("cvt", frozenset({"ue8m0x2"}), "numbers that are an exponent only (compute capability 10.0)"),
    ("mma", frozenset({"e2m1"}), "numbers of 4 and 6 bits (compute capability 10.0)"),
    ("mma", frozenset({"e2m3"}), "numbers of 4 and 6 bits (compute capability 10.0)"),
    ("mma", frozenset({"e3m2"}), "numbers of 4 and 6 bits (compute capability 10.0)"),
    ("ldmatrix", frozenset({"m16n16"}), "matrices of 8-bit elements (compute capability 10.0)"),
    ("ldmatrix", frozenset({"m8n16"}), "matrices of 8-bit elements (compute capability 10.0)"),
    ("stmatrix", frozenset({"m16n8"}), "matrices of 8-bit elements (compute capability 10.0)"),
)
"""Opcode, modifiers that it has, and what that is: the message begins `cutrace leaves out`."""

_OPCODES = frozenset(opcode for opcode, _, _ in LEFT_OUT)


def left_out(instruction: Instruction) -> str | None:
    """Return what is left out, None for instructions that cutrace means to run."""
    if instruction.opcode not in _OPCODES:
        return None
    named = {modifier.partition("::")[0] for modifier in instruction.modifiers}
    for opcode, modifiers, what in LEFT_OUT:
        if instruction.opcode == opcode and modifiers <= named:
            return what
    return None
