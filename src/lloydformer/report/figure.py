"""A matplotlib figure as a part: inline SVG that takes the page's font and colours."""

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
    """The figure above its caption; `alt` says what is seen to those who do not see it."""
    return Part(
        f"<figure>\n{_svg(drawing, alt or caption)}\n"
        f"<figcaption>{inline(caption)}</figcaption>\n</figure>"
    )


def _svg(drawing: "Figure", alt: str) -> str:
    """What was black follows the text of the page, so that it is seen in the dark as well."""
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
