"""A kernel's name where there is little room: CUDA's libraries have names of several hundred
characters."""

ROOM = 48
"""Characters that a name may have in a table."""


def short_name(name: str, room: int = ROOM) -> str:
    """The name without namespaces, and without a template's arguments, if it is too long with them.

    >>> short_name("reverse<float, 4>")
    'reverse<float, 4>'
    >>> short_name("cub::detail::reduce::DeviceReduceKernel<cub::detail::policy, float, int>")
    'DeviceReduceKernel<...>'
    >>> short_name("thrust::system::cuda::detail::__parallel_for::kernel<4>", 30)
    'kernel<4>'
    """
    if len(name) <= room:
        return name
    bare, angle, rest = name.partition("<")
    last = bare.rpartition("::")[2]
    whole = f"{last}{angle}{rest}"
    if len(whole) > room and angle:
        whole = f"{last}<...>"
    return whole if len(whole) <= room else f"{whole[: room - 3]}..."
