"""The page: its parts in order, with the style sheets and scripts that they need."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>
{styles}
</style>
</head>
<body>
<main>
{body}
</main>
{scripts}
</body>
</html>
"""


@dataclass(frozen=True)
class Part:
    """A part of a page: its HTML, and the style sheets and scripts that it needs.

    A page holds each style sheet and script once.

    Parameters
    ----------
    html : str
        The HTML of the part.
    styles : tuple of str, default=()
        Names of style sheets, files of this package.
    scripts : tuple of str, default=()
        Names of scripts, files of this package.

    See Also
    --------
    page : Puts parts together.

    Examples
    --------
    >>> from lloydformer import report
    >>> report.Part("<hr>").html
    '<hr>'
    """

    html: str
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


def page(title: str, parts: Sequence[Part]) -> str:
    """Return the HTML of a page that needs no other file and no network.

    Parameters
    ----------
    title : str
        The title of the page.
    parts : sequence of Part
        The parts in order.

    Returns
    -------
    str
        The HTML.

    See Also
    --------
    Part : A part of a page.

    Examples
    --------
    >>> from lloydformer import report
    >>> html = report.page("A page", [report.text("Hello")])
    >>> "<p>Hello</p>" in html
    True
    """
    styles = _distinct(name for part in parts for name in part.styles)
    scripts = _distinct(name for part in parts for name in part.scripts)
    return _FRAME.format(
        title=escape(title),
        styles="\n".join(resource(name) for name in ("page.css", *styles)),
        body="\n".join(part.html for part in parts),
        scripts="\n".join(f"<script>\n{resource(name)}</script>" for name in scripts),
    )


def resource(name: str) -> str:
    """Return the text of a file of this package."""
    return files("lloydformer.report").joinpath(name).read_text(encoding="utf-8")


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
