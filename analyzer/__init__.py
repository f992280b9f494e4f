"""Integers in, answers out."""
