"""Occupancy for users, as values and as text.

`models/analyses/occupancy.py` computes how many blocks fit on an SM.
"""
