"""PTX text to a Kernel: typed instructions, control-flow graph, source lines."""
