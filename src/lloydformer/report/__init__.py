"""Self-contained HTML pages, assembled from parts."""

from lloydformer.report.figure import figure
from lloydformer.report.page import Part, page
from lloydformer.report.parts import code, details, heading, section, table, text, widget

__all__ = [
    "Part",
    "code",
    "details",
    "figure",
    "heading",
    "page",
    "section",
    "table",
    "text",
    "widget",
]
