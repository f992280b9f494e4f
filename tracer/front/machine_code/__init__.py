"""Machine code: what ptxas made of a kernel's accesses, read from the cubin's own tables.

Belongs here: sections, the line table, and what an instruction does to memory. Does not: what
becomes of counts (models), and how PTX is parsed.
"""
