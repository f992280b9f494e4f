"""Formats: one file each, with `render(document) -> str`, found by listing this folder.

A format's name is its file's.
"""
