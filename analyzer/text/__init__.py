"""Sentences and text columns shared by several reports, and writing of report files.

This package counts nothing and selects no counters.
"""
