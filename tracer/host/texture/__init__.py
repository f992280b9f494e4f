"""Textures and surfaces as a host sees them: objects, references, arrays read as texels.

Sampling itself is the engine's.
"""
