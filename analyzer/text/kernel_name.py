"""Names of kernels in a few words: templates make names of thousands of letters.

A name is a tree: an identifier with template arguments, which are names. `short_name` leaves out
namespaces and what does not fit; `name_apart` leaves out what several kernels have in common.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from ...base.dataclass import dataclass

NAME_WIDTH = 48
"""Maximum characters of a name in a table."""
ELSE = "..."

_CAST = re.compile(r"^\([\w:]+\)(?=\w|-)")
_PAIRS = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Name:
    """`head` without namespaces, its template arguments, and what follows them: `::Params`."""

    head: str
    arguments: tuple["Name", ...] = ()
    tail: str = ""

    def __str__(self) -> str:
        """Return the whole name."""
        inside = f"<{', '.join(map(str, self.arguments))}>" if self.arguments else ""
        return f"{self.head}{inside}{self.tail}"

    @property
    def least(self) -> str:
        """The name with all arguments left out."""
        return f"{self.head}<{ELSE}>{self.tail}" if self.arguments else str(self)


@lru_cache(maxsize=256)
def parse_name(text: str) -> Name:
    """Parse a demangled name; one that is no tree is a leaf.

    >>> str(parse_name("a::kernel<b::Gemm<(c::Kind)0, int>::Params, (x::y)>"))
    'kernel<Gemm<0, int>::Params, (x::y)>'
    """
    text = text.strip()
    opening = text.find("<")
    if opening < 0 or text[:opening].endswith("operator"):
        return Name(_last_part(text))
    pieces, end = _split(text, opening + 1)
    tail = text[end + 1 :]
    if end == len(text) or not re.match(r"[\w$ :~]*$", tail):
        # A name in a template, such as `Policy<4>::kernel<float>`: the last template counts.
        if end < len(text) and tail.startswith("::") and "<" in tail:
            return parse_name(tail[2:])
        return Name(text)
    return Name(_last_part(text[:opening]), tuple(map(parse_name, pieces)), tail)


def _last_part(text: str) -> str:
    """Return the last part of a qualified name; a cast before a number is dropped."""
    text = _CAST.sub("", text)
    return text if "(" in text or "{" in text else text.rpartition("::")[2]


def _split(text: str, begin: int) -> tuple[list[str], int]:
    """Return the arguments from `begin` on, and the place of the closing bracket, or the end."""
    pieces: list[str] = []
    closing, start = [">"], begin
    for place in range(begin, len(text)):
        letter = text[place]
        if letter in _PAIRS:
            closing.append(_PAIRS[letter])
        elif letter == "<" and closing[-1] == ">":
            closing.append(">")
        elif letter == closing[-1]:
            closing.pop()
            if not closing:
                return [*pieces, text[start:place]], place
        elif letter == "," and len(closing) == 1:
            pieces.append(text[start:place])
            start = place + 1
    return pieces, len(text)


def short_name(name: str, width: int = NAME_WIDTH) -> str:
    """Return the name without namespaces and, if it is too long, without some template arguments.

    >>> short_name("reverse<float, 4>")
    'reverse<float, 4>'
    >>> short_name("cub::detail::DeviceReduceKernel<cub::detail::policy<4>, float, int>", 41)
    'DeviceReduceKernel<policy<4>, float, int>'
    >>> short_name("cub::detail::DeviceReduceKernel<cub::detail::policy<4>, float, int>", 36)
    'DeviceReduceKernel<policy<4>, ...>'
    >>> short_name("thrust::system::cuda::detail::__parallel_for::kernel<4>", 30)
    'kernel<4>'
    """
    if len(name) <= width:
        return name
    text = _fit(parse_name(name), width)
    return text if len(text) <= width else f"{text[: width - len(ELSE)]}{ELSE}"


def _fit(name: Name, width: int) -> str:
    """Return as many leading arguments as fit."""
    whole = str(name)
    if len(whole) <= width or not name.arguments:
        return whole
    room = width - len(name.head) - len(name.tail) - len("<>")
    parts: list[str] = []
    for number, argument in enumerate(name.arguments):
        is_last = number == len(name.arguments) - 1
        left = room - sum(len(part) + len(", ") for part in parts)
        left -= 0 if is_last else len(f", {ELSE}")
        if len(argument.least) > left:
            parts.append(ELSE)
            break
        parts.append(_fit(argument, left))
    return f"{name.head}<{', '.join(parts)}>{name.tail}"


def name_apart(name: str, others: Iterable[str], width: int = NAME_WIDTH) -> str:
    """Return a short name that no other name has, longer than `width` if need be.

    >>> one, other = (f"k<Gemm<Tile<128, 64>, Mma<{t}, 4>>, int>" for t in ("float", "half"))
    >>> name_apart(one, [other], 20)
    'k<Gemm<..., Mma<float, ...>>, ...>'
    """
    short = short_name(name, width)
    alike = [other for other in others if other != name and short_name(other, width) == short]
    if not alike:
        return short
    return _differing([parse_name(name), *map(parse_name, alike)])


def _differing(names: Sequence[Name]) -> str:
    """Return the first name with the arguments in which it differs from any other."""
    first, *others = names
    many = len(first.arguments)
    shape = first.head, first.tail, many
    if any((each.head, each.tail, len(each.arguments)) != shape for each in others):
        return first.least
    parts: list[str] = []
    for number in range(many):
        column = [each.arguments[number] for each in names]
        part = ELSE if len(set(column)) == 1 else _differing(column)
        if part != ELSE or parts[-1:] != [ELSE]:
            parts.append(part)
    return f"{first.head}<{', '.join(parts)}>{first.tail}" if parts else str(first)
