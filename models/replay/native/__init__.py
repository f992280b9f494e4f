"""Loops as machine code, for launches with enough rows to pay for it."""
