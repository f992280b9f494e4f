"""Launch lines in a source's comments: `// cutrace: scale<<<4, 256>>>(a:f32[1024], 2)`."""

import re

from ....lazy_dataclass import dataclass

_COMMENT = re.compile(r"\s*//\s*cutrace:\s*(?P<launch>.*?)\s*$")
_NEXT = re.compile(r"\s*//\s*(?P<more>.*?)\s*$")


@dataclass(frozen=True, slots=True)
class LaunchComment:
    """The launch line of a comment, and the source line on which it starts, from 1."""

    line: int
    text: str


def find_launch_comments(source: str) -> tuple[LaunchComment, ...]:
    """Return the source's launch comments in order.

    A comment whose last parenthesis is still open goes on in the comment on the next line.
    """
    lines = source.splitlines()
    found = []
    for number, line in enumerate(lines):
        if start := _COMMENT.match(line):
            found.append(LaunchComment(number + 1, _join(start["launch"], lines[number + 1 :])))
    return tuple(found)


def _join(text: str, following: list[str]) -> str:
    for line in following:
        more = _NEXT.match(line)
        if not more or text.count("(") <= text.count(")"):
            break
        text = f"{text} {more['more']}"
    return text
