"""Self-contained HTML pages, assembled from parts."""

from lloydformer.report.figure import figure
from lloydformer.report.page import Part, page
from lloydformer.report.parts import (
    code,
    details,
    heading,
    literal,
    section,
    table,
    text,
    widget,
)
from lloydformer.report.profile import profile

__all__ = [
    "Part",
    "code",
    "details",
    "figure",
    "heading",
    "literal",
    "page",
    "profile",
    "section",
    "table",
    "text",
    "widget",
]
