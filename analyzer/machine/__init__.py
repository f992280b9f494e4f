"""The machine code of a kernel: its blocks, loops, pipes, and what it issues at least."""
