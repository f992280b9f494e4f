"""SVG elements: escaped text, boxes, and short coordinates."""

from html import escape

from ...base.sanitize import sanitize

LETTER = 6.6
"""Width of a letter of the page's drawings, at most on average."""


def text(
    x: float, y: float, words: str, style: str = "", anchor: str = "start", most: float = 0
) -> str:
    """Return a line of text; `style` is a class of the page's style sheet.

    Text that may be wider than `most`, unless that is 0, is condensed to that width.
    """
    is_long = most and LETTER * len(words) > most
    width = f' textLength="{short(most)}" lengthAdjust="spacingAndGlyphs"' if is_long else ""
    return (
        f'<text x="{short(x)}" y="{short(y)}" class="{style}" text-anchor="{anchor}"{width}>'
        f"{escape(sanitize(words))}</text>"
    )


def box(x: float, y: float, width: float, height: float, style: str, round_: float = 6) -> str:
    """Return a rectangle with round corners."""
    return (
        f'<rect x="{short(x)}" y="{short(y)}" width="{short(width)}" height="{short(height)}"'
        f' rx="{short(round_)}" class="{style}"/>'
    )


def short(value: float) -> str:
    """Format a coordinate to a tenth.

    >>> short(12.0), short(0.25), short(-0.01)
    ('12', '0.2', '0')
    """
    digits = f"{value:.1f}".removesuffix(".0")
    return "0" if digits == "-0" else digits


def count_bytes(number: int) -> str:
    """Format the size of a memory with three digits or more; exact below 10 000.

    Sizes are in binary units, KiB; traffic is in decimal ones (`traffic_text`), as rates are.

    >>> count_bytes(9216), count_bytes(294912), count_bytes(5 << 30)
    ('9216 B', '288 KiB', '5 GiB')
    """
    if number < 10_000:
        return f"{number} B"
    value, unit = float(number), "B"
    for name in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 1000:
            break
        value, unit = value / 1024, name
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
