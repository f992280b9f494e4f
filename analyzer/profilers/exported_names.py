"""Kernel names and the choice of counters in files of nvprof and Nsight Compute."""

from collections.abc import Sequence

from ...traces.schema import Launch
from ..counting.vocabulary import OURS, Capability, Counter, find_counters, vocabularies

ENGINE_STREAM = "7"
"""What profilers call the default stream."""


def demangled(launch: Launch) -> str:
    """`reverse(int*, const int*)`: the C name with the parameters' types, as profilers print it."""
    types = (argument.type.replace(" *", "*") for argument in launch.arguments)
    return f"{launch.name}({', '.join(types)})"


def chosen_counters(
    vocabulary: str, capability: Capability, names: Sequence[str]
) -> tuple[Counter, ...]:
    """The counters to export: those named, else the profiler's, else cutrace's own."""
    if names:
        return tuple(c for c in find_counters(names) if c.exists_on(capability))
    every = {v.name: v for v in vocabularies()}
    own = every[vocabulary].of(capability) if vocabulary in every else ()
    return own or every[OURS].of(capability)
