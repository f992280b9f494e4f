"""Checks of a trace against FORMAT.md, a file for each kind of promise.

A check reads and reports; it repairs nothing, and knows no hardware.
"""
