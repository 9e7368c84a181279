"""Self-contained HTML pages, rendered by Jinja from the files in `templates/`.

May import `circuits` and the other modules of `plots`. Begin with `pages.py`: `page` assembles
parts (headings, tables, figures), `render` fills a template that extends `page.html`.
"""

from lloydformer.plots.report.pages import (
    details,
    figure,
    heading,
    page,
    render,
    section,
    table,
    text,
)

__all__ = ["details", "figure", "heading", "page", "render", "section", "table", "text"]
