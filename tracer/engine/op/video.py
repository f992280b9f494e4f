"""Video instructions: integers of any part of a register, clamped and accumulated (ISA 9.7.17)."""

from .rule import Family

FAMILY = Family("video", {})
