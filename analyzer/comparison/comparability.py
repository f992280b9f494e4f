"""Comparability: whether two variants do the same work, as far as a trace tells.

Variants of a kernel have the same name or take the same types of arguments. A comparison warns
where neither holds, and where an integer argument of both differs.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from ...traces.schema import Launch
from ..profile import Profile


def tell_differences(profiles: Mapping[str, Profile], base: int) -> Iterator[str]:
    """Yield what speaks against comparing variants with the baseline, once for each pair."""
    names = list(profiles)
    launched = [[p.of(n)[0].launch for n in p.numbers] for p in profiles.values()]
    for name, launches in zip(names, launched, strict=True):
        if name != names[base]:
            yield from _tell_pair((names[base], name), (launched[base], launches))


def _tell_pair(
    names: tuple[str, str], launched: tuple[list[Launch], list[Launch]]
) -> Iterator[str]:
    """Yield the first doubt of each kind about two variants."""
    pairs = list(zip_longest(*launched))
    for number, pair in enumerate(pairs):
        if all(pair) and not _is_same_work(*pair):
            told = " and ".join(
                f"{name} launches {launch.signature or launch.kernel}"
                for name, launch in zip(names, pair, strict=True)
            )
            yield f"launch {number}: different kernels, {told}: do they do the same work?"
            return
    for number, pair in enumerate(pairs):
        if all(pair) and (other := _other_numbers(*pair)):
            told = ", ".join(f"{name}={a} and {b}" for name, a, b in other)
            yield f"launch {number}: {names[0]} and {names[1]} have other numbers, {told}"
            return


def _is_same_work(one: Launch, other: Launch) -> bool:
    return _name(one) == _name(other) or _types(one) == _types(other)


def _name(launch: Launch) -> str:
    """The kernel's name without template arguments."""
    return launch.name.partition("<")[0]


def _types(launch: Launch) -> Sequence[str]:
    """The types of the arguments, sorted."""
    return sorted(argument.type for argument in launch.arguments)


def _other_numbers(one: Launch, other: Launch) -> list[tuple[str, int, int]]:
    """Integers that both take by one name, and that differ."""
    known = {a.name: a.value for a in one.arguments if isinstance(a.value, int)}
    return [
        (a.name, known[a.name], a.value)
        for a in other.arguments
        if isinstance(a.value, int) and known.get(a.name, a.value) != a.value
    ]
