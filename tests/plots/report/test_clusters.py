"""`lf.report` writes a page that says what the model found, and in which clusters can be named."""

import re
import shutil

import numpy as np
import pandas as pd
import pytest

import lloydformer as lf

RNG = np.random.default_rng(0)
MIDDLES = np.array([[0.0, 0.0, 5.0], [9.0, 0.0, 5.0], [0.0, 9.0, 5.0]])
X = pd.DataFrame(
    MIDDLES[np.arange(90) % 3] + RNG.normal(size=(90, 3)), columns=["long", "wide", "<i>"]
)
MODEL = lf.KMeans(3, init=MIDDLES, random_state=7).fit(X)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    extra = {"town": np.where(MODEL.labels_ == 1, "Oslo <3", "Rome"), "nr": np.arange(90)}
    assert lf.report(MODEL, X, path, names={1: "long & thin"}, extra=extra) == path
    return path


def test_the_page_begins_with_what_was_found(page):
    html = page.read_text(encoding="utf-8")
    lead = re.search(r'<p class="lead">(.*?)</p>', html).group(1)
    assert lead.startswith("90 rows with 3 columns fall into 3 groups of 30 (")
    assert "They differ most in " in lead
    assert "The groups are clearly separate" in lead
    assert "objective" not in lead


def test_the_page_is_self_contained_and_escapes_names(page):
    html = page.read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", html)
    assert "<i>" not in html.replace("<i style", "").replace('<i class="low" style', "")
    assert "long &amp; thin" in html
    assert "Oslo &lt;3" in html
    assert "Not shown, as they name the rows: nr." in html


def test_the_settings_are_those_that_were_changed(page):
    settings = page.read_text(encoding="utf-8").split("<h2>Settings</h2>")[1]
    assert "<td>random_state</td>" in settings
    assert "max_iter" not in settings
    assert "Clustered by <strong>KMeans</strong>: objective <strong>" in settings


def test_only_pages_of_this_package_are_replaced(page, tmp_path):
    before = page.read_text(encoding="utf-8")
    lf.report(MODEL, X, page, title="Another")
    assert "<h1>Another</h1>" in page.read_text(encoding="utf-8")
    page.write_text(before, encoding="utf-8")
    other = tmp_path / "notes.html"
    other.write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"path: .*notes.html exists and is not a page"):
        lf.report(MODEL, X, other)
    assert other.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "model",
    [
        lf.KMeans(1),
        lf.KMedoids(3, metric="manhattan", random_state=0),
        lf.TrimmedKMeans(3, keep=0.9, random_state=0),
        lf.SphericalKMeans(3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_pages_of_other_models(model, tmp_path):
    rows = X.to_numpy() + 20
    path = lf.report(model.fit(rows), rows, tmp_path / "page.html", sample_weight=np.full(90, 2.0))
    html = path.read_text(encoding="utf-8")
    assert html.count("<article") == model.n_clusters
    assert "nan" not in re.sub(r"<(style|svg|script).*?</\1>", "", html, flags=re.DOTALL).split()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine to open the page with")
def test_clusters_are_named_in_the_page(page, tmp_path):
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
        errors = []
        tab.on("pageerror", lambda error: errors.append(error))
        tab.goto(page.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        # No number runs into the bar next to it.
        covered = """cells => cells.filter(cell => {
            const range = document.createRange();
            range.selectNodeContents(cell.previousElementSibling);
            return range.getBoundingClientRect().right > cell.getBoundingClientRect().left;
        }).length"""
        assert tab.locator(".profile td.z").evaluate_all(covered) == 0
        tab.locator('.name[data-cluster="0"]').click()
        tab.keyboard.type("<b>small</b>")
        tab.keyboard.press("Enter")
        tab.reload()  # the name stays in the browser
        assert tab.locator('.name[data-cluster="0"]').inner_text() == "<b>small</b>"
        examples = tab.locator("table", has_text="typical")
        assert examples.locator("td").first.inner_text() == "0 <b>small</b>"
        code = tab.locator("#names-code").text_content()
        assert code == 'names={0: "<b>small</b>", 1: "long & thin"}'
        with tab.expect_download() as download:
            tab.locator("#save-page").click()
        saved = tmp_path / "saved.html"
        download.value.save_as(saved)
        other = browser.new_context().new_page()  # another browser, without kept names
        other.goto(saved.as_uri())
        assert other.locator('.name[data-cluster="0"]').inner_text() == "<b>small</b>"
        assert errors == []
        browser.close()
