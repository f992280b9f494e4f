"""Rates: what one SM can do at best in a cycle of its clock."""

from dataclasses import asdict, dataclass

from ....errors import CutraceError


@dataclass(frozen=True, slots=True)
class Rates:
    """What an SM does in a cycle at most; 0 is not known, or more than it can ever be asked for.

    `issue` are warp instructions, `half` to `special` lanes of an instruction of that precision
    (`special`: reciprocals, roots, sines, powers and logarithms in single precision), `shared`
    passes over the banks, `constant` of the constant cache, `texture` samples; `l1_bytes` and
    `l2_bytes` what these levels move. `atomic` are the operations that the whole chip does on one
    address of global memory, `atomic_real` those with floating-point numbers where they are slower.
    """

    issue: float = 0.0
    half: float = 0.0
    single: float = 0.0
    double: float = 0.0
    special: float = 0.0
    shared: float = 0.0
    constant: float = 0.0
    texture: float = 0.0
    l1_bytes: float = 0.0
    l2_bytes: float = 0.0
    atomic: float = 0.0
    atomic_real: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what goes backwards."""
        for name, rate in asdict(self).items():
            if not 0 <= rate < float("inf"):
                raise CutraceError(f"{name} = {rate}; expected a number from 0 on")
