"""A card with the profile of a cluster: its colour, a sentence, and its most striking columns."""

import re
from collections.abc import Sequence
from html import escape

from lloydformer.report.page import Part
from lloydformer.report.parts import inline

_WIDEST = 3.0
"""The z-score that fills its half of the bar."""


def profile(
    title: str, colour: str, sentence: str, rows: Sequence[tuple[str, str, str, float]]
) -> Part:
    """Return the card; the means of `rows` are in the cluster and of all rows.

    Parameters
    ----------
    title : str
        The name of the cluster.
    colour : str
        Its colour, as `#0072B2`.
    sentence : str
        What sets it apart; see `inline` for its marks.
    rows : sequence of (str, str, str, float)
        For each column: its name, its mean in the cluster, its mean in all rows, its z-score.

    Returns
    -------
    Part
        The part.

    See Also
    --------
    table : A table of texts.

    Examples
    --------
    >>> from lloydformer import report
    >>> card = report.profile("Cluster 0", "#0072B2", "9 rows", [("age", "71", "45", 1.5)])
    >>> "left:50.0%;width:25.0%" in card.html
    True
    """
    if not re.fullmatch(r"#[0-9A-Fa-f]{6}", colour):
        raise ValueError(f"colour: found {colour!r}; pass one as #0072B2")
    head = "".join(
        f'<th scope="col">{name}</th>' for name in ("column", "mean here", "mean of all", "z-score")
    )
    body = "\n".join(_row(*row) for row in rows)
    table = (
        f'<div class="wide" tabindex="0"><table><thead><tr>{head}<th></th></tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )
    return Part(
        f'<article class="profile" style="border-left-color:{colour}"><h3>{inline(title)}</h3>\n'
        f"<p>{inline(sentence)}</p>\n{table if rows else ''}</article>",
        ("profile.css",),
    )


def _row(column: str, here: str, overall: str, z: float) -> str:
    numbers = "".join(f'<td class="number">{escape(v)}</td>' for v in (here, overall, f"{z:+.2f}"))
    width = min(abs(z), _WIDEST) / _WIDEST * 50
    left = 50 - width if z < 0 else 50
    kind = ' class="low"' if z < 0 else ""
    bar = f'<span class="track"><i{kind} style="left:{left:.1f}%;width:{width:.1f}%"></i></span>'
    return f'<tr><td>{inline(column)}</td>{numbers}<td class="z">{bar}</td></tr>'
