"""Occupancy for users, as values and as text.

How many blocks fit on an SM is computed in `models/analyses/occupancy.py`.
"""
