"""GitHub's workflow commands: an error annotation at the line of each failure."""

from ..document import Document


def render(document: Document) -> str:
    """Return a line per failed check, those that could not run last."""
    lines = [f"::notice title=cutrace budget::{_escape(text)}" for text in document.notices]
    for each in document.failures:
        place = f"file={_escape(each.file, True)},line={each.line}," if each.line else ""
        lines.append(f"::error {place}title=cutrace {each.kind}::{_escape(each.message)}")
    return "\n".join(lines)


def _escape(text: str, is_property: bool = False) -> str:
    """Escape text for GitHub's runner: in a property, `:` and `,` are escaped as well.

    >>> _escape("100 %\\nof a,b"), _escape("C:a,b", True)
    ('100 %25%0Aof a,b', 'C%3Aa%2Cb')
    """
    for raw, escaped in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
        text = text.replace(raw, escaped)
    if is_property:
        text = text.replace(":", "%3A").replace(",", "%2C")
    return text
