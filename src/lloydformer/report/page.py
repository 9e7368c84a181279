"""The page: parts one below the other, with everything that they need inside."""

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
    """A piece of a page: its HTML, and the names of the style sheets and scripts that it needs.

    The names are files of this package; a page holds each of them once.
    """

    html: str
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


def page(title: str, parts: Sequence[Part]) -> str:
    """The HTML of a page that needs no other file and asks no network for anything."""
    styles = _once(name for part in parts for name in part.styles)
    scripts = _once(name for part in parts for name in part.scripts)
    return _FRAME.format(
        title=escape(title),
        styles="\n".join(resource(name) for name in ("page.css", *styles)),
        body="\n".join(part.html for part in parts),
        scripts="\n".join(f"<script>\n{resource(name)}</script>" for name in scripts),
    )


def resource(name: str) -> str:
    """The text of a style sheet or script of this package."""
    return files("lloydformer.report").joinpath(name).read_text(encoding="utf-8")


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
