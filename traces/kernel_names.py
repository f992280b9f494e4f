"""The names of a kernel by which it is chosen, as Nsight Compute's --kernel-name-base says."""

from ..base.errors import CutraceError, nearest

BASES = ("function", "demangled", "mangled")


def names_by(base: str, demangled: str, mangled: str) -> tuple[str, ...]:
    """Return the name of a base, or those of any if `base` is empty.

    >>> names_by("function", "ns::scale<float, 4>", "_ZN2ns5scaleIfLi4EEEvPf")
    ('scale',)
    """
    if base not in ("", *BASES):
        raise CutraceError(
            f"--kernel-name-base {base}: expected {', '.join(BASES)}{nearest(base, BASES)}"
        )
    names = {
        "function": (demangled.partition("<")[0].partition("(")[0].rpartition("::")[2],),
        "demangled": (demangled,),
        "mangled": (mangled,),
    }
    return names.get(base, (demangled, mangled))
