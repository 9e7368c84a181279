"""Pages are assembled from parts, and need no other file."""

import re
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure

from lloydformer import report
from lloydformer.report.parts import inline
from lloydformer.report.stepper import stepper

VOID = {"meta", "link", "input", "br"}


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
def figure() -> report.Part:
    drawing = Figure()
    drawing.add_subplot().plot([1, 2])
    return report.figure(drawing, "a `line` & more")


@pytest.fixture(scope="module")
def page(figure: report.Part) -> str:
    words = "a < b & `c`"
    parts = [
        report.heading(words, level=1),
        report.text(words, words, lead=True),
        report.table(["name", "value"], [[words, "-1.5e-16"]], caption=words),
        report.section(figure, kind="columns"),
        report.details(words, report.code("if a < b:\n    pass")),
        stepper(3),
        stepper(3),
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


def test_a_page_needs_no_network(page: str) -> None:
    assert "default-src 'none'" in page
    names = re.findall(r"https?://[^\s\"']+", page)
    assert {name for name in names if not name.startswith("http://www.w3.org/")} == set()
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)


def test_styles_and_scripts_are_included_once(page: str) -> None:
    assert page.count("document.querySelector('[data-widget=\"stepper\"]')") == 1
    assert page.count(".stepper button {") == 1
    assert page.count('data-widget="stepper">') == 2


def test_a_page_supports_phones_and_dark_mode(page: str) -> None:
    assert 'name="viewport"' in page
    assert "prefers-color-scheme: dark" in page


def test_numbers_are_in_number_cells() -> None:
    html = report.table(["n"], [["-1.5e-16"], ["12%"], ["one"]]).html
    assert html.count('class="number"') == 2


def test_black_lines_follow_the_colour_of_the_page(figure: report.Part) -> None:
    assert "currentColor" in figure.html
    assert "#000000" not in figure.html
    assert "<?xml" not in figure.html
    assert 'aria-label="a `line` &amp; more"' in figure.html


def test_the_same_figure_gives_the_same_html() -> None:
    def once() -> str:
        drawing = Figure()
        drawing.add_subplot().plot([1, 2])
        return report.figure(drawing, "a line").html

    assert once() == once()


def test_data_cannot_end_its_element() -> None:
    part = report.widget("stepper", "", {"name": "</script><script>alert(1)</script>"})
    assert part.html.count("</script>") == 1


def test_data_that_is_not_json_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        report.widget("stepper", "", {"value": float("nan")})
