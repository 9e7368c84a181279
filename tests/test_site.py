"""The documentation site: built without warnings, no dead link, nothing from other servers."""

import html
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from html.parser import HTMLParser
from operator import attrgetter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import explorer_page
import pytest
from numpydoc.docscrape import ClassDoc, FunctionDoc

pytest.importorskip("mkdocs")
pytestmark = pytest.mark.long  # builds the whole site
ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools" / "site"))

from api_pages import public_names  # noqa: E402


class Page(HTMLParser):
    """What a page links to, what it loads, and the anchors in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        if tag == "link" and values.get("href") and values.get("rel") != "canonical":
            self.loaded.append(values["href"])
        if tag in ("script", "img", "iframe") and values.get("src"):
            self.loaded.append(values["src"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {
        **os.environ,
        "NO_MKDOCS_2_WARNING": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]),
    }
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-4000:]
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def dead(site: Path, page: Path, link: str, pages: dict[Path, Page]) -> bool:
    """Does a link lead to no file, or to no anchor of its page?"""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if target.is_dir():
        target /= "index.html"
    if not target.exists() or site.resolve() not in target.resolve().parents:
        return True
    return bool(parts.fragment) and unquote(parts.fragment) not in pages[target].anchors


def test_every_link_and_anchor_leads_somewhere(site, pages):
    found = defaultdict(set)
    for path, page in pages.items():
        if path.name != "404.html":  # which is shown at any address
            found[path.name] = {x for x in page.links + page.loaded if dead(site, path, x, pages)}
    assert {name: links for name, links in found.items() if links} == {}


def test_a_dead_link_is_found(site, pages):
    page = site / "estimators.html"
    assert not dead(site, page, "walk.html", pages)
    assert dead(site, page, "walks.html", pages)
    assert dead(site, page, "#no-such-heading", pages)
    assert not dead(site, page, "#parameters", pages)


def test_nothing_is_loaded_from_other_servers(pages):
    loaded = {address for page in pages.values() for address in page.loaded}
    assert {address for address in loaded if urlsplit(address).netloc} == set()


@pytest.mark.skipif(bool(explorer_page.missing()), reason="needs Chromium and playwright")
def test_no_page_is_wider_than_a_phone(site, pages):
    with explorer_page.chromium() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        wide = []
        for path in pages:
            page.goto(path.as_uri())
            if page.evaluate("document.documentElement.scrollWidth") > 390:
                wide.append(path.name)
    assert wide == []


def test_every_public_name_has_a_page_with_all_parameters(site):
    names = {name: full for group in public_names().values() for name, full in group.items()}
    assert len(names) > 60
    for name, full in names.items():
        text = (site / "api" / f"{name}.html").read_text(encoding="utf-8")
        assert f'id="{full}"' in text, name
        value = _value(full)
        if isinstance(value, type):
            wanted = [entry.name for entry in ClassDoc(value)["Parameters"]]
        elif callable(value):
            wanted = [entry.name for entry in FunctionDoc(value)["Parameters"]]
        else:
            continue
        shown = set(re.findall(r"<code>([^<]+)</code>", text))
        asked = {one.strip(" *") for entry in wanted for one in entry.split(",")}
        assert {one for one in asked if one not in shown and f"*{one}" not in shown} <= {
            "args", "kwargs"
        }, name  # fmt: skip


def _value(full: str):
    module, _, name = full.rpartition(".")
    return getattr(sys.modules[module], name)


def test_types_are_shown_as_they_are_written(site):
    page = html.unescape((site / "api" / "RobustKMeans.html").read_text(encoding="utf-8"))
    assert '{"sparsemax", "softmax"} or TopK' in page
    assert "ndarray of shape (n_iter_ + 1,)" in page


def test_formulas_need_no_script(site):
    page = (site / "api" / "SoftKMeans.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert "arithmatex" not in page


def test_the_index_of_the_search_is_a_local_script(site):
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert "inverse_temperature" in index
    assert "RobustKMeans" in index


QUESTIONS = tomllib.loads((ROOT / "tests/support/questions.toml").read_text(encoding="utf-8"))
FIRST_PAGE = 10  # results


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")
def test_the_search_answers_what_users_ask(site, tmp_path):
    assert len(QUESTIONS) >= 40
    asked = tmp_path / "questions.json"
    asked.write_text(json.dumps(list(QUESTIONS)), encoding="utf-8")
    (worker,) = site.glob("assets/javascripts/workers/search.*.min.js")
    program = ROOT / "tests" / "support" / "site_search.mjs"
    command = ["node", program, worker, site / "search" / "search_index.js", asked]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {asked: pages[:FIRST_PAGE] for asked, pages in json.loads(done.stdout).items()}
    missed = {a: pages for a, pages in found.items() if not set(pages) & set(QUESTIONS[a])}
    assert missed == {}


FULL_NAMES = {name: full for group in public_names().values() for name, full in group.items()}


def test_every_heading_of_the_reference_is_an_import_path(site):
    paths = {}
    for page in (site / "api").glob("*.html"):
        heading = re.search(r"<h1[^>]*>(.*?)</h1>", page.read_text(encoding="utf-8"), re.DOTALL)
        words = html.unescape(re.sub(r"<[^>]+>", " ", heading[1])).split()
        paths[page.stem] = next((word for word in words if word.startswith("lloydformer.")), "")
    del paths["index"]
    assert "lloydformer.recipes.recombining" in paths.values()
    for name, path in paths.items():
        assert path.endswith(f".{name}"), path
        module = path.removeprefix("lloydformer.").split(".")[:-1]
        # Some are modules, some attributes such as `lloydformer.recipes`.
        for_users = attrgetter(".".join([*module, name]))(importlib.import_module("lloydformer"))
        assert for_users is _value(FULL_NAMES[name]), path
