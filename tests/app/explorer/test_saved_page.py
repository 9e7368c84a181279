"""The page as one file: opened from disk, with the network off."""

import numpy as np
import pytest
from explorer_page import Explorer

import lloydformer as lf
from lloydformer.app.explorer.embedded import EmbeddedPage
from lloydformer.app.explorer.page_files import build_single_file
from lloydformer.circuits.serialise import serialise

pytestmark = pytest.mark.long

MOST_BYTES = 1_000_000


@pytest.fixture
def from_disk(browser):
    """Opens a file without a network; the page must not complain."""
    opened = []

    def open_file(path, fragment=""):
        opened.append(Explorer(browser, path.as_uri() + fragment, offline=True))
        return opened[-1]

    yield open_file
    for one in opened:
        one.close()


def saved(page, path):
    with page.page.expect_download() as found:
        page.choose("Save", "page")
    found.value.save_as(path)
    return path


def test_the_page_in_one_file_runs_and_saves_itself(explore, from_disk, tmp_path):
    page = explore("#recipe=trimmed&data=outliers")
    page.page.click("#sandbox .plot", position={"x": 40, "y": 50})
    page.page.click('[data-head="encoder_self"]')
    page.page.click('[data-break="off"]')
    page.step(3)
    first = from_disk(saved(page, tmp_path / "first.html"))
    second = from_disk(saved(first, tmp_path / "second.html"))
    for copy in (first, second):
        assert copy.centers() == page.centers()
        assert copy.page.locator(".broken-list li").count() == 1
        copy.step()
    page.step()
    assert second.centers() == page.centers()
    assert (tmp_path / "second.html").stat().st_size < MOST_BYTES


def test_what_the_command_writes(from_disk, tmp_path):
    path = tmp_path / "page.html"
    points = [[0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 6.0]]
    path.write_text(build_single_file({"points": points, "centers": points[1:3]}), encoding="utf-8")
    assert path.stat().st_size < MOST_BYTES
    page = from_disk(path)
    page.step()
    assert page.centers() == [[0.0, 0.5], [5.0, 5.5]]
    page.page.click("text=Copy link")
    assert "points=0%2C0%3B" in page.page.input_value(".copied")


def test_pictures(explore, tmp_path):
    page = explore("#recipe=lloyd&data=three&layer=3")
    for figure in ("plot", "layer", "objective"):
        for kind, first in (("svg", b"<svg"), ("png", b"\x89PNG")):
            with page.page.expect_download() as found:
                page.choose("Save", f"{kind} {figure}")
            path = tmp_path / found.value.suggested_filename
            found.value.save_as(path)
            assert path.name == f"{figure}.{kind}"
            assert path.read_bytes().startswith(first)
            assert path.stat().st_size > 2000
            assert b"var(--" not in path.read_bytes()


@pytest.mark.parametrize(
    ("state", "in_sandbox"),
    [
        ({"points": [[0.0, 0.0], [1.0, 0.0], [9.0, 9.0], [9.0, 8.0]]}, True),
        ({"recipe": serialise(lf.recipes.soft(2.0))}, True),
        ({}, False),
    ],
    ids=["points", "recipe", "neither"],
)
def test_it_opens_where_the_points_and_the_recipe_of_the_user_are(
    browser, tmp_path, state, in_sandbox
):
    path = tmp_path / "page.html"
    path.write_text(build_single_file(state), encoding="utf-8")
    page = browser.new_page()
    try:
        page.goto(path.as_uri())
        page.wait_for_selector("#sandbox .point")
        top = page.evaluate("document.getElementById('sandbox').getBoundingClientRect().top")
        assert (abs(top) < 100) == in_sandbox
    finally:
        page.close()


def test_a_notebook_does_not_scroll_to_the_page_in_it(browser):
    """The frame is far below, and scrolls inside of itself only."""
    frame = EmbeddedPage(None, np.eye(2), np.eye(2))._repr_html_()
    page = browser.new_page()
    try:
        page.set_content(f'<div style="height: 3000px"></div>{frame}')
        inner = page.frames[1]
        inner.wait_for_selector("#sandbox .point")
        assert inner.evaluate("window.scrollY") > 0
        assert page.evaluate("window.scrollY") == 0
    finally:
        page.close()
