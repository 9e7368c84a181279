"""The page as one file: opened from disk, with the network off."""

import pytest
from explorer_page import Explorer

from lloydformer.app.explorer.page_files import build_single_file

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
