"""Kernel in, trace out."""
