"""What an instruction is: facts that a trace carries, so that no reader parses a mnemonic.

Here belong facts that follow from an instruction and its kernel alone: class, operation, state
spaces, memory order, floating-point operations. What a value becomes is in `engine/op`; what the
parser needs of an opcode is in `ptx/opcodes.py`. Nothing here knows a device or a launch.
"""
