"""The parts that a page is put together from. All text is escaped; see `inline` for marks."""

import json
import re
from collections.abc import Sequence
from html import escape

from lloydformer.report.page import Part


def heading(words: str, level: int = 2) -> Part:
    """A heading of level 1 to 6."""
    return Part(f"<h{level}>{inline(words)}</h{level}>")


def text(*paragraphs: str, lead: bool = False) -> Part:
    """Paragraphs; `lead` sets them larger, for the first words of a page."""
    kind = ' class="lead"' if lead else ""
    return Part("\n".join(f"<p{kind}>{inline(p)}</p>" for p in paragraphs))


def code(lines: str) -> Part:
    """Lines of code, as they are."""
    return Part(f"<pre><code>{escape(lines)}</code></pre>")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Part:
    """A table; on a narrow screen it scrolls sideways and the page does not."""
    head = "".join(f'<th scope="col">{inline(column)}</th>' for column in columns)
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    said = f"<caption>{inline(caption)}</caption>" if caption else ""
    return Part(
        f'<div class="wide" tabindex="0"><table>{said}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def section(*parts: Part, kind: str = "") -> Part:
    """Parts that belong together; `kind` is a class of the style sheet, such as `columns`."""
    named = f' class="{escape(kind)}"' if kind else ""
    return _around(f"<section{named}>", parts, "</section>")


def details(summary: str, *parts: Part) -> Part:
    """Parts that are folded away until their summary is opened."""
    return _around(f"<details><summary>{inline(summary)}</summary>", parts, "</details>")


def widget(name: str, html: str, data: object = None) -> Part:
    """Raw HTML that the files `name.css` and `name.js` of this package bring to life.

    The script finds it as `[data-widget="name"]`, and its data as JSON in its last child.
    """
    inside = html if data is None else f"{html}\n{embedded(data)}"
    return Part(
        f'<div class="{name}" data-widget="{name}">\n{inside}\n</div>',
        (f"{name}.css",),
        (f"{name}.js",),
    )


def embedded(data: object) -> str:
    """JSON inside a page: no text in it can end the element that holds it."""
    safe = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json">{safe}</script>'


def inline(words: str) -> str:
    """Escaped text, in which `` `so` `` becomes code and `**so**` strong."""
    code = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", code)


def _around(before: str, parts: Sequence[Part], after: str) -> Part:
    return Part(
        "\n".join([before, *(part.html for part in parts), after]),
        tuple(name for part in parts for name in part.styles),
        tuple(name for part in parts for name in part.scripts),
    )


def _cell(words: str) -> str:
    number = re.fullmatch(r"[-−+]?[\d.,]+(e[-+]?\d+)?%?", words)
    return f'<td class="number">{words}</td>' if number else f"<td>{inline(words)}</td>"
