"""Kernel, launch and memory to rows: every thread executed, in arrays over lanes."""
