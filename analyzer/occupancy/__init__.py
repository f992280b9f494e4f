"""Occupancy as a person asks for it, as values and as text.

How many blocks fit on an SM is computed in `models/analyses/occupancy.py`.
"""
