"""One PTX text of several: what files that were compiled with -rdc=true bring, linked.

Text by text the compilers number files, constants of strings and the like from the start, declare
what another text defines, and define templates anew: so numbers are moved, names that are a text's
own get its number, and of several definitions the first stays.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ...lazy_dataclass import dataclass

_WHOLE_LINES = (".version", ".target", ".address_size", ".file")
_LINKAGE = re.compile(r"^\.(visible|weak|common|extern)\s+")
_FUNCTION = re.compile(r"^(?:\.\w+\s+)*?\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)")
_VARIABLE = re.compile(
    r"^(?:\.\w+\s+)*?\.(?:global|const|shared)\b[^=;]*?([\w$]+)\s*(?:\[[^=;]*)?[=;]"
)
_FILE = re.compile(r"(\.file\s+|\.loc\s+|\binlined_at\s+)(\d+)")
_LABEL = re.compile(r"\$L__info_string")


@dataclass(frozen=True, slots=True)
class _Statement:
    """A directive outside of functions: `name` is what it declares or defines, if anything."""

    text: str
    linkage: str
    name: str
    is_function: bool

    @property
    def is_declaration(self) -> bool:
        """Whether what it names is defined elsewhere."""
        return self.linkage == "extern" or (self.is_function and self.text.rstrip().endswith(";"))


def link_texts(texts: Sequence[str]) -> str:
    """Join PTX texts into one that an assembler takes."""
    if len(texts) == 1:
        return texts[0]
    parts = [list(_statements(_renumbered(text, n))) for n, text in enumerate(texts)]
    own = Counter(each.name for part in parts for each in part if each.name and not each.linkage)
    clashing = {name for name, count in own.items() if count > 1}
    parts = [[_renamed(each, clashing, n) for each in part] for n, part in enumerate(parts)]
    statements = [each for part in parts for each in part]
    head = [each for each in parts[0] if each.text.startswith(_WHOLE_LINES[:3])]
    named = list(_once([each for each in statements if each.name]))
    rest = [each for each in statements if not each.name and not each.text.startswith(_WHOLE_LINES)]
    files = [each for each in statements if each.text.startswith(".file")]
    ordered = [
        *(head + [each for each in named if each.is_function and each.is_declaration]),
        *(each for each in named if not each.is_function),
        *(each for each in named if each.is_function and not each.is_declaration),
        *(files + rest),
    ]
    return _comments(texts[0]) + "\n".join(each.text for each in ordered) + "\n"


def _comments(text: str) -> str:
    """The lines before the first directive, which name the compiler."""
    return text[: text.index(".version")]


def _statements(text: str) -> Iterator[_Statement]:
    lines: list[str] = []
    depth = 0
    for line in text.splitlines():
        code = line.partition("//")[0].strip()
        if not lines and not code:
            continue
        lines.append(line)
        depth += code.count("{") - code.count("}")
        ends = code.endswith((";", "}")) or (len(lines) == 1 and code.startswith(_WHOLE_LINES))
        if depth == 0 and ends:
            yield _statement("\n".join(lines).strip())
            lines = []


def _statement(text: str) -> _Statement:
    linkage = _LINKAGE.match(text)
    function, variable = _FUNCTION.match(text), _VARIABLE.match(text)
    found = function or variable
    return _Statement(
        text, linkage[1] if linkage else "", found[1] if found else "", function is not None
    )


def _renumbered(text: str, number: int) -> str:
    """Move the numbers of files, and the labels of a text's strings for debuggers."""
    moved = _FILE.sub(lambda found: f"{found[1]}{int(found[2]) + 100_000 * number}", text)
    return _LABEL.sub(f"$L__info_string_{number}_", moved)


def _renamed(statement: _Statement, names: set[str], number: int) -> _Statement:
    """Give names of a text's own its number."""
    text = statement.text
    for name in names:
        if name in text:
            text = re.sub(rf"(?<![\w$]){re.escape(name)}(?![\w$])", f"{name}${number}", text)
    return _statement(text)


def _once(statements: Sequence[_Statement]) -> Iterator[_Statement]:
    """Yield each definition once; a declaration of what is defined has the linkage of that."""
    defined = {each.name: each for each in reversed(statements) if not each.is_declaration}
    declared: set[str] = set()
    for each in statements:
        found = defined.get(each.name)
        if found is each:
            yield each
        elif each.is_declaration and each.name not in declared:
            declared.add(each.name)
            if found is None:
                yield each
            elif each.is_function:
                linkage = f".{found.linkage} " if found.linkage else ""
                yield _statement(linkage + _LINKAGE.sub("", each.text))
