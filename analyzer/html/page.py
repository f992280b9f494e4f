"""Render the page: the content in the templates, never larger than MOST bytes."""

from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template
from jinja2.loaders import FunctionLoader
from markupsafe import Markup

from ...base.claim import whole_file
from ...base.errors import CutraceError
from ...base.sanitize import sanitize
from ...models.replay.interface.options import ReplayOptions
from ..text.svg import count_bytes
from .gather import Gatherer, Subject
from .value import Bounds, Report, Served

MOST = 3_000_000
"""Maximum size of a page in bytes: excess content is left out, with a note on the page."""
TABS = (
    *(("summary", "Summary"), ("source", "Source"), ("flow", "Memory flow")),
    *(("accesses", "Accesses"), ("occupancy", "Occupancy"), ("counters", "Counters")),
)
VARIANTS = ("variants", "Variants")
"""The first tab of a page on several traces; "Kernels", the last but one, of a page on one."""
WIDE = Bounds()
MARK = "cutrace-report-1"
"""Signature of a page, so that only a report is overwritten by a report."""


def render(
    subjects: Sequence[Subject],
    options: ReplayOptions,
    command: str,
    bounds: Bounds = WIDE,
) -> str:
    """Return the page on some traces; `options` are those of the replay behind the profiles.

    `command` is the command line that regenerates the page. If the page would be too large, the
    bounds are halved. Raises `CutraceError` if not even a few lines of each part fit.
    """
    return fill(gather(subjects, options, command, bounds))


def gather(
    subjects: Sequence[Subject],
    options: ReplayOptions,
    command: str,
    bounds: Bounds = WIDE,
) -> Report:
    """Return the content of a page, reduced until it fits."""
    while True:
        report = Gatherer(options, bounds).gather(subjects, command)
        text = fill(report)
        if len(text.encode()) <= MOST:
            return report
        if bounds == bounds.smaller():
            raise CutraceError(
                f"the report would have {len(text)} bytes, {MOST} at most; give fewer traces"
            )
        bounds = bounds.smaller()


def fill(report: Report, served: Served | None = None) -> str:
    """Fill the templates with content; `served` if the page follows its source live."""
    scripts = [read("script.js"), *([read("serve.js")] if served else [])]
    several = bool(report.comparisons or report.remarks)
    text = template("page.html").render(
        report=report,
        tabs=_tabs(len(report.variants) > 1, several),
        several=several,
        mark=MARK,
        style=Markup(read("style.css")),
        scripts=[Markup(script) for script in scripts],
        hashes=[b64encode(sha256(s.encode()).digest()).decode() for s in scripts],
        served=served,
    )
    return text.encode(errors="replace").decode()  # drawings may have lone surrogates


def _tabs(has_variants: bool, is_compared: bool) -> list[tuple[str, str]]:
    if not is_compared:
        return [*TABS]
    return [VARIANTS, *TABS] if has_variants else [*TABS[:-1], (VARIANTS[0], "Kernels"), TABS[-1]]


@cache
def read(name: str) -> str:
    """Return the text of a template file."""
    resource = files(__package__) / "templates" / name
    return resource.read_text(encoding="utf-8").replace("\r\n", "\n")


def template(name: str) -> Template:
    """Return a template of the folder."""
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    """Return an environment that escapes every text except drawings made by cutrace."""
    environment = Environment(
        loader=FunctionLoader(read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_finalize,
    )
    environment.filters |= {"bytes": count_bytes, "digits": digits, "percent": percent}
    return environment


def _finalize(value: object) -> object:
    """Escape control characters in texts from outside."""
    return sanitize(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def digits(text: str) -> Markup:
    """Return a number with thousands separators that copying omits."""
    whole, point, fraction = text.partition(".")
    head, *tail = whole.replace(",", "").split(" ")
    if not head.isdecimal() or len(head) < 4:
        return Markup.escape(text.replace(",", "") if head.isdecimal() else text)
    first = len(head) % 3 or 3
    groups = [head[:first], *(head[n : n + 3] for n in range(first, len(head), 3))]
    spaced = Markup('<span class="t"></span>').join(groups)
    return spaced + " ".join(("", *tail)) + point + fraction


def percent(part: float) -> str:
    """Format a share as a percentage without superfluous digits.

    >>> percent(0.8889), percent(0.0012), percent(1)
    ('89 %', '0.12 %', '100 %')
    """
    return f"{100 * part:.0f} %" if part >= 0.1 or not part else f"{100 * part:.2g} %"


HEAD = 1000
"""Number of leading characters that contain the signature."""


def check_output(path: Path) -> None:
    """Raise `CutraceError` if the path cannot or should not be written."""
    if path.is_dir():
        raise CutraceError(f"{path}: a folder; name a file, say {path / 'report.html'}")
    if not path.parent.is_dir():
        raise CutraceError(f"{path}: cannot write it: there is no folder {path.parent}")
    if not path.exists():
        return
    if not path.is_file():
        raise CutraceError(f"{path}: exists and is no file; name another with -o")
    with path.open(encoding="utf-8", errors="replace") as file:
        if f'content="{MARK.rpartition("-")[0]}' not in file.read(HEAD):
            raise CutraceError(
                f"{path}: exists and is no report of cutrace; remove it, or name another with -o"
            )


def write_page(path: Path, text: str) -> None:
    """Write the page atomically."""
    try:
        with whole_file(path) as part:
            part.write_text(text, encoding="utf-8", newline="\n")
            check_output(path)  # it may have been replaced since the first check
    except OSError as error:
        raise CutraceError(f"{path}: cannot write it: {error.strerror or error}") from error
