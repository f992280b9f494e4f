"""Parse PTX text into a Kernel: typed instructions, control-flow graph, source lines."""
