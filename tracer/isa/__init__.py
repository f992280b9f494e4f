"""Static facts of an instruction that a trace carries, so that no reader parses a mnemonic.

These facts follow from an instruction and its kernel alone: class, operation, state spaces, memory
order, floating-point operations. `simt/ops` computes values; `ptx/opcodes.py` holds the properties
of an opcode that the parser needs. Nothing here depends on a device or a launch.
"""
