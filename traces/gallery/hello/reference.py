"""NumPy reference of the kernel, which prints and computes nothing."""


def hello() -> None:
    """Leave all arrays as they are."""
