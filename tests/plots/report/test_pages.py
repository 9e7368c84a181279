"""Pages are assembled from parts, and need no other file."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from lloydformer.plots import report
from lloydformer.plots.report.pages import inline

VOID = {"meta", "link", "input", "br", "hr"}


class Nesting(HTMLParser):
    """Checks that elements are closed in the right place."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def figure() -> Markup:
    drawing = Figure()
    drawing.add_subplot().plot([1, 2])
    return report.figure(drawing, "a `line` & more")


@pytest.fixture(scope="module")
def page(figure: Markup) -> str:
    words = "a < b & `c`"
    parts = [
        report.heading(words, level=1),
        report.text(words, words, lead=True),
        report.table(["name", "value"], [[words, "-1.5e-16"]], caption=words),
        report.section(figure, kind="columns"),
        report.details(words, report.text("if a < b: pass")),
        Markup("<hr>"),
        "<b> & text",
    ]
    return report.page("x < y", parts)


def test_elements_are_nested(page: str) -> None:
    nesting = Nesting()
    nesting.feed(page)
    assert nesting.open == []


def test_text_is_escaped_everywhere(page: str) -> None:
    assert "<title>x &lt; y</title>" in page
    assert page.count("a &lt; b &amp; <code>c</code>") == 6
    assert "a < b" not in re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)


def test_marks_of_inline_text() -> None:
    assert inline("`a<b` is **so**") == "<code>a&lt;b</code> is <strong>so</strong>"
    assert inline(escape("`a<b` is **so**")) == "`a&lt;b` is **so**"


def test_a_page_needs_no_network(page: str) -> None:
    assert "default-src 'none'" in page
    names = re.findall(r"https?://[^\s\"']+", page)
    assert {name for name in names if not name.startswith("http://www.w3.org/")} == set()
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)


def test_a_text_among_the_parts_is_escaped(page: str) -> None:
    assert "<hr>\n&lt;b&gt; &amp; text\n</main>" in page


def test_a_template_extends_the_page_and_uses_its_parts(tmp_path: Path) -> None:
    template = tmp_path / "own.html"
    template.write_text(
        '{% extends "page.html" %}{% import "parts.html" as parts %}'
        '{% block styles %}{{ read_asset("stepper.css") }}{% endblock %}'
        '{% block main %}{{ parts.heading(words) }}{% include "stepper.html" %}{% endblock %}'
        '{% block scripts %}<script>{{ read_asset("stepper.js") }}</script>{% endblock %}'
    )
    html = report.render(template, title="own", words="a < `b`", n_layers=3)
    assert "<h2>a &lt; <code>b</code></h2>" in html
    assert html.count("document.querySelector('[data-widget=\"stepper\"]')") == 1
    assert html.count(".stepper button {") == 1
    assert html.count('data-widget="stepper">') == 1


def test_a_value_that_a_template_lacks_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "own.html").write_text("{{ missing }}")
    with pytest.raises(UndefinedError, match="missing"):
        report.render(tmp_path / "own.html")


def test_a_page_supports_phones_and_dark_mode(page: str) -> None:
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


def test_numbers_are_in_number_cells() -> None:
    html = report.table(["n"], [["-1.5e-16"], ["12%"], ["one"]])
    assert html.count('class="number"') == 2


def test_black_lines_follow_the_colour_of_the_page(figure: Markup) -> None:
    assert "currentColor" in figure
    assert "#000000" not in figure
    assert "<?xml" not in figure
    assert 'aria-label="a `line` &amp; more"' in figure


def test_the_same_figure_gives_the_same_html() -> None:
    def once() -> str:
        drawing = Figure()
        drawing.add_subplot().plot([1, 2])
        return report.figure(drawing, "a line")

    assert once() == once()


def write_data(folder: Path, data: object) -> str:
    template = folder / "data.html"
    template.write_text('<script type="application/json">{{ data | tojson }}</script>')
    return report.render(template, data=data)


def test_data_cannot_end_its_element(tmp_path: Path) -> None:
    html = write_data(tmp_path, {"name": "</script><script>alert(1)</script>"})
    assert html.count("</script>") == 1


def test_data_that_is_not_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_data(tmp_path, {"value": float("nan")})
