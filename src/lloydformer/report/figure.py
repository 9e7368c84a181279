"""A matplotlib figure as a part: inline SVG in the font and colours of the page."""

import re
from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from lloydformer.plots.axes import require_matplotlib
from lloydformer.report.page import Part
from lloydformer.report.parts import inline

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure(drawing: "Figure", caption: str, alt: str = "") -> Part:
    """Return a part with a matplotlib figure above its caption.

    Parameters
    ----------
    drawing : matplotlib.figure.Figure
        The figure. Its black lines take the colour of the page's text.
    caption : str
        The caption; see `inline` for its marks.
    alt : str, default=""
        Description for readers who cannot see the figure; the caption by default.

    Returns
    -------
    Part
        The part.

    See Also
    --------
    lloydformer.plots : Functions that draw on axes.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from lloydformer import report
    >>> drawing = Figure()
    >>> line = drawing.add_subplot().plot([1, 2])
    >>> "<figcaption>A line</figcaption>" in report.figure(drawing, "A line").html
    True
    """
    return Part(
        f"<figure>\n{_svg(drawing, alt or caption)}\n"
        f"<figcaption>{inline(caption)}</figcaption>\n</figure>"
    )


def _svg(drawing: "Figure", alt: str) -> str:
    """Return the figure as SVG; black becomes the colour of the text, for dark pages."""
    require_matplotlib()
    import matplotlib

    buffer = StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": alt}):
        drawing.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace("#000000", "currentColor")
    svg = re.sub(r"<(metadata|style)\b.*?</\1>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)
