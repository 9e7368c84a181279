"""The parts of a page. All text is escaped; see `inline` for marks."""

import json
import re
from collections.abc import Sequence
from html import escape

from lloydformer.report.page import Part


def heading(words: str, level: int = 2) -> Part:
    """Return a heading.

    Parameters
    ----------
    words : str
        The text; see `inline` for its marks.
    level : int, default=2
        The level, from 1 to 6.

    Returns
    -------
    Part
        The part.

    See Also
    --------
    text : Paragraphs.

    Examples
    --------
    >>> from lloydformer import report
    >>> report.heading("Results").html
    '<h2>Results</h2>'
    """
    return Part(f"<h{level}>{inline(words)}</h{level}>")


def text(*paragraphs: str, lead: bool = False) -> Part:
    """Return paragraphs.

    Parameters
    ----------
    *paragraphs : str
        The paragraphs; see `inline` for their marks.
    lead : bool, default=False
        Whether they are set larger, for the beginning of a page.

    Returns
    -------
    Part
        The part.

    See Also
    --------
    heading : A heading.

    Examples
    --------
    >>> from lloydformer import report
    >>> report.text("One of `many`").html
    '<p>One of <code>many</code></p>'
    """
    kind = ' class="lead"' if lead else ""
    return Part("\n".join(f"<p{kind}>{inline(p)}</p>" for p in paragraphs))


def code(lines: str) -> Part:
    """Return lines of code without any change but escaping.

    Parameters
    ----------
    lines : str
        The code.

    Returns
    -------
    Part
        The part.

    See Also
    --------
    text : Paragraphs.

    Examples
    --------
    >>> from lloydformer import report
    >>> report.code("a < b").html
    '<pre><code>a &lt; b</code></pre>'
    """
    return Part(f"<pre><code>{escape(lines)}</code></pre>")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Part:
    """Return a table, which scrolls sideways on a narrow screen.

    Parameters
    ----------
    columns : sequence of str
        The names of the columns.
    rows : sequence of sequence of str
        The cells of each row. Numbers are aligned to the right.
    caption : str, default=""
        The caption.

    Returns
    -------
    Part
        The part.

    See Also
    --------
    section : Parts that belong together.

    Examples
    --------
    >>> from lloydformer import report
    >>> report.table(["k"], [["3"]]).html.count('class="number"')
    1
    """
    head = "".join(f'<th scope="col">{inline(column)}</th>' for column in columns)
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    title = f"<caption>{inline(caption)}</caption>" if caption else ""
    return Part(
        f'<div class="wide" tabindex="0"><table>{title}<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def section(*parts: Part, kind: str = "") -> Part:
    """Return parts that belong together as one part.

    Parameters
    ----------
    *parts : Part
        The parts.
    kind : str, default=""
        A class of the style sheet, for example `columns`.

    Returns
    -------
    Part
        The part.

    See Also
    --------
    details : Parts that are hidden until opened.

    Examples
    --------
    >>> from lloydformer import report
    >>> print(report.section(report.text("One"), kind="columns").html)
    <section class="columns">
    <p>One</p>
    </section>
    """
    named = f' class="{escape(kind)}"' if kind else ""
    return _wrapped(f"<section{named}>", parts, "</section>")


def details(summary: str, *parts: Part) -> Part:
    """Return parts that are hidden until the summary is clicked.

    Parameters
    ----------
    summary : str
        The text that is always shown.
    *parts : Part
        The parts.

    Returns
    -------
    Part
        The part.

    See Also
    --------
    section : Parts that are always shown.

    Examples
    --------
    >>> from lloydformer import report
    >>> print(report.details("More", report.text("One")).html)
    <details><summary>More</summary>
    <p>One</p>
    </details>
    """
    return _wrapped(f"<details><summary>{inline(summary)}</summary>", parts, "</details>")


def widget(name: str, html: str, data: object = None) -> Part:
    """Return raw HTML with the style sheet `name.css` and the script `name.js`.

    The script finds the widget as `[data-widget="name"]`, and its data as JSON in its last child.

    Parameters
    ----------
    name : str
        Name of the widget and of its files in this package.
    html : str
        The HTML inside of the widget; it is not escaped.
    data : object, default=None
        Data for the script, as JSON.

    Returns
    -------
    Part
        The part.

    See Also
    --------
    page : Puts parts together.

    Examples
    --------
    >>> from lloydformer import report
    >>> report.widget("stepper", "", {"n": 3}).scripts
    ('stepper.js',)
    """
    inside = html if data is None else f"{html}\n{embedded(data)}"
    return Part(
        f'<div class="{name}" data-widget="{name}">\n{inside}\n</div>',
        (f"{name}.css",),
        (f"{name}.js",),
    )


def embedded(data: object) -> str:
    """Return JSON in a script element, escaped so that no text can end the element."""
    safe = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return f'<script type="application/json">{safe}</script>'


_SIGNS = str.maketrans({"`": "\ue000", "*": "\ue001"})
_BACK = str.maketrans({"\ue000": "`", "\ue001": "*"})


def literal(words: str) -> str:
    """Return a text whose backticks and asterisks are no marks, such as the name of a column.

    Parameters
    ----------
    words : str
        The text.

    Returns
    -------
    str
        The text for other parts.

    See Also
    --------
    text : Paragraphs.

    Examples
    --------
    >>> from lloydformer import report
    >>> report.text(f"**{report.literal('a*b`c')}**").html
    '<p><strong>a*b`c</strong></p>'
    """
    return words.translate(_SIGNS)


def inline(words: str) -> str:
    """Return escaped text in which `` `x` `` becomes code and `**x**` strong."""
    code = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(words))
    strong = re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", code)
    return strong.translate(_BACK)


def _wrapped(before: str, parts: Sequence[Part], after: str) -> Part:
    return Part(
        "\n".join([before, *(part.html for part in parts), after]),
        tuple(name for part in parts for name in part.styles),
        tuple(name for part in parts for name in part.scripts),
    )


def _cell(words: str) -> str:
    number = re.fullmatch(r"[-−+]?[\d.,]+(e[-+]?\d+)?%?", words)
    return f'<td class="number">{words}</td>' if number else f"<td>{inline(words)}</td>"
