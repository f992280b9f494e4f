"""The version of the package: a literal, which setuptools reads without importing it."""

__version__ = "0.1.0"
