"""HTML pages that need no other file and no network, and their parts.

A part is `Markup`: text that is HTML already. Jinja escapes every other text, and in the texts of
parts `` `x` `` becomes code and `**x**` strong.
"""

import re
from collections.abc import Sequence
from functools import cache
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from lloydformer.plots.axes import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TEMPLATES = Path(__file__).with_name("templates")


def page(title: str, parts: Sequence[Markup | str]) -> str:
    """Return the HTML of a page with these parts; plain strings are escaped.

    Examples
    --------
    >>> from lloydformer.plots import report
    >>> html = report.page("A page", [report.text("Hello")])
    >>> "<p>Hello</p>" in html
    True
    """
    return _environment().get_template("page.html").render(title=title, parts=parts)


def render(template: Path, **values: object) -> str:
    """Return the HTML of a template that extends `page.html`.

    It may import the macros of `parts.html`, include other templates, and add style sheets and
    scripts of this package by `read_asset(name)`. Its name must not be that of a template of this
    package: it would extend itself.
    """
    loader = ChoiceLoader([FileSystemLoader(template.parent), FileSystemLoader(_TEMPLATES)])
    return _environment().overlay(loader=loader).get_template(template.name).render(values)


@cache
def _environment() -> Environment:
    """Return the templates of this package with the filters and tests that they use."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,  # a misspelt name is an error, not an empty text
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["inline"] = inline
    environment.tests["numeric"] = is_numeric
    environment.globals["read_asset"] = read_asset
    # `tojson` escapes "<", so that no text of the data ends the script element that holds it.
    # NaN is not JSON, and a browser would fail to parse it.
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def read_asset(name: str) -> Markup:
    """Return a style sheet or script of this package, which is not a template."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))


def inline(words: str) -> Markup:
    """Return escaped text in which `` `x` `` becomes code and `**x**` strong.

    Markup stays as it is, such as the escaped name of a column, in which these signs mean nothing.
    """
    if isinstance(words, Markup):
        return words
    code = re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(words)))
    return Markup(re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", code))


def is_numeric(words: str) -> bool:
    """Return whether a cell of a table holds a number, as −1.5e-16 or 12%."""
    return re.fullmatch(r"[-−+]?[\d.,]+(e[-+]?\d+)?%?", words) is not None


@cache
def _macros() -> Any:
    """Return the macros of parts.html as functions, which return `Markup`."""
    return _environment().get_template("parts.html").module


def heading(words: str, level: int = 2) -> Markup:
    """Return a heading of level 1 to 6.

    Examples
    --------
    >>> from lloydformer.plots import report
    >>> print(report.heading("Results"))
    <h2>Results</h2>
    """
    return _macros().heading(words, level)


def text(*paragraphs: str, lead: bool = False) -> Markup:
    """Return paragraphs; `lead` sets them larger, for the beginning of a page.

    Examples
    --------
    >>> from lloydformer.plots import report
    >>> print(report.text("One of `many`"))
    <p>One of <code>many</code></p>
    """
    return Markup("\n").join(_macros().paragraph(words, lead) for words in paragraphs)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Markup:
    """Return a table, which scrolls sideways on a narrow screen; numbers have a style of their own.

    Examples
    --------
    >>> from lloydformer.plots import report
    >>> report.table(["k"], [["3"]]).count('class="number"')
    1
    """
    return _macros().table(columns, rows, caption)


def section(*parts: Markup, kind: str = "") -> Markup:
    """Return parts that belong together; `kind` is a class of the style sheet, as `columns`.

    Examples
    --------
    >>> from lloydformer.plots import report
    >>> print(report.section(report.text("One"), kind="columns"))
    <section class="columns">
    <p>One</p>
    </section>
    """
    return _macros().section(parts, kind)


def details(summary: str, *parts: Markup) -> Markup:
    """Return parts that are hidden until the summary is clicked.

    Examples
    --------
    >>> from lloydformer.plots import report
    >>> print(report.details("More", report.text("One")))
    <details><summary>More</summary>
    <p>One</p>
    </details>
    """
    return _macros().details(summary, parts)


def figure(drawing: "Figure", caption: str, alt: str = "") -> Markup:
    """Return a matplotlib figure as inline SVG above its caption.

    Black becomes the colour of the text, for dark pages, and the page chooses font and size.

    Parameters
    ----------
    drawing : matplotlib.figure.Figure
        The figure.
    caption : str
        The caption.
    alt : str, default=""
        Description for readers who cannot see the figure; the caption by default.

    Returns
    -------
    Markup
        The figure.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from lloydformer.plots import report
    >>> drawing = Figure()
    >>> line = drawing.add_subplot().plot([1, 2])
    >>> "<figcaption>A line</figcaption>" in report.figure(drawing, "A line")
    True
    """
    require_matplotlib()
    import matplotlib

    alt = alt or caption
    buffer = StringIO()
    # Ids inside of the SVG are hashes: with a fixed salt the same figure gives the same HTML, and
    # with the description as the salt figures of one page do not share ids.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": alt}):
        drawing.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace("#000000", "currentColor")
    # matplotlib's <style> would hold for the whole page.
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    svg = svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)
    return _macros().figure(Markup(svg), caption)
