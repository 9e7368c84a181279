"""The page as one file: it needs no other file, and begins with the given state."""

import json
import re
from html import unescape

import pytest
from javascript import CHROMIUM, dumped
from small_page import make_small_page

import lloydformer as lf
from lloydformer.app.explorer.page_files import build_single_file, fill_index
from lloydformer.circuits.serialise import serialise


@pytest.fixture
def small_page(tmp_path):
    return make_small_page(tmp_path / "page")


def test_the_state_is_in_the_page_and_no_text_of_it_is_markup(small_page):
    state = {"recipe": {"name": "</script><script>alert(1)</script>"}, "points": [[0.5, -1e-7]]}
    page = fill_index(state, small_page)
    assert page.count("<script") == 2
    found = re.search(r'id="initial-state">(.*?)</script>', page, re.S)[1]
    assert json.loads(found) == state


def test_a_page_without_a_place_for_the_state_is_refused(small_page):
    (small_page / "index.html").write_text("<!doctype html>", encoding="utf-8")
    with pytest.raises(ValueError, match=r"index\.html: found no script with the id initial-state"):
        fill_index({}, small_page)


def test_one_file_has_everything_and_no_relative_import_is_left(small_page):
    page = build_single_file({}, small_page)
    assert "src=" not in page
    assert "href=" not in page
    assert "body { color: red; }" in page
    imports = json.loads(re.search(r'<script type="importmap">(.*?)</script>', page)[1])["imports"]
    assert set(imports) >= {
        "page/small.js",
        "page/late.js",
        "page/recipes.js",
        "page/interpreter/index.js",
        "page/interpreter/parts.js",
    }


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: no page is opened")
def test_the_file_runs_from_disk(small_page, tmp_path):
    points = [[0.0], [1.0], [5.0], [10.0], [11.0]]
    state = {
        "recipe": serialise(lf.recipes.trimmed(keep=0.5)),
        "points": points,
        "centers": [[0.0], [11.0]],
    }
    alone = tmp_path / "alone" / "page.html"
    alone.parent.mkdir()
    alone.write_text(build_single_file(state, small_page), encoding="utf-8")
    found = re.search(r'data-found="([^"]*)"', dumped(alone.as_uri(), tmp_path / "profile"))
    assert json.loads(unescape(found[1])) == ["trimmed", 0.5, 11, "späť"]


def test_the_page_itself_is_one_file_under_a_megabyte():
    page = build_single_file({})
    assert 100_000 < len(page.encode()) < 1_000_000
    assert re.findall(r'(?:src|href)="(?!data:|#|https?:)', page) == []
