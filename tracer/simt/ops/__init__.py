"""What each PTX instruction computes: one file a family, one table row an opcode."""
