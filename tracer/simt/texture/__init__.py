"""Textures and surfaces: handles, sampling, filtering, and the instructions that use them.

Plain loads and stores are in `memory`.
"""
