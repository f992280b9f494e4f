"""NVRTC: calls of the compiler, its messages, and what is made of its PTX.

The source is not read here; that is `syntax`.
"""
