"""Texture and surface references as C++ classes, for the programs that declare some.

NVRTC 12 no longer has them. Here a reference holds the handle of an object (see
texture_reference.py), and the functions that took a reference pass the handle on.
"""

from pathlib import Path

REFERENCE_CLASSES = Path(__file__).with_name("reference_class.cuh").read_text("utf-8")
