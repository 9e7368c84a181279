"""The page of a fit is complete and self-contained."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lloydformer as lf

RNG = np.random.default_rng(0)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--virtual-time-budget=5000")  # fmt: skip


@pytest.fixture(scope="module")
def fits():
    """Folders of fits, by their options."""
    return {}


@pytest.fixture
def page(command, fits, tmp_path_factory, monkeypatch):
    """A function: the page of a fit with these options, on 400 rows with one outlier.

    Tests with the same options share the folder of their fit, and none of them changes it.
    """

    def made(*options):
        if options in fits:
            monkeypatch.chdir(fits[options])
        else:
            monkeypatch.chdir(tmp_path_factory.mktemp("fit"))
            rng = np.random.default_rng(0)
            middles = np.array([[0, 0], [9, 0], [0, 9]])[np.arange(400) % 3]
            points = middles + rng.normal(size=(400, 2))
            points[7] = [100, 100]
            frame = pd.DataFrame(points * [1, 1000], columns=["<b>**width**", "`height`"])
            frame.to_csv("points.csv", index=False)
            assert command("fit", "points.csv", "--report", *options)[0] == 0
            fits[options] = Path.cwd()
        return Path("points-clusters/report.html").read_text(encoding="utf-8")

    return made


def cells(html):
    """The rows of all tables, as text."""
    rows = re.findall(r"<tr>(.*?)</tr>", html, flags=re.DOTALL)
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in rows]


def test_the_page_has_all_parts_and_loads_nothing(page):
    html = page("-k", "3", "--scale", "standard")
    for heading in ("The clusters", "Columns", "Profiles", "Examples", "Centers", "Settings"):
        assert f"<h2>{heading}</h2>" in html
    assert html.count("<svg") == 7
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", html)
    assert "<b>**width" not in html
    centers = pd.read_csv("points-clusters/centers.csv").to_numpy()
    shown = numbers(cells(part(html, "Centers"))[1:])
    np.testing.assert_allclose(shown, centers, rtol=1e-3)
    head, far, *_ = cells(part(html, "Farthest rows"))
    farthest = pd.read_csv("points-clusters/labels.csv").sort_values("distance").iloc[-1]
    assert head == ["cluster", "distance", "row", "&lt;b&gt;**width**", "`height`"]
    row = int(farthest["row"])
    values = pd.read_csv("points.csv").iloc[row - 1]
    wanted = [farthest["cluster"], farthest["distance"], row, *values]
    np.testing.assert_allclose(numbers([far])[0], wanted, rtol=1e-3)


def test_the_profiles_are_medians_ranges_and_z_scores(page):
    html = page("-k", "3", "--scale", "standard")
    frame = pd.read_csv("points.csv")
    own = pd.read_csv("points-clusters/labels.csv")["cluster"]
    cards = re.findall(r"<article.*?</article>", part(html, "Profiles"), flags=re.DOTALL)
    assert len(cards) == 3
    for j, card in enumerate(cards):
        shown = {row[0]: row[1:] for row in cells(card)[1:]}
        for name, column in (("&lt;b&gt;**width**", "<b>**width**"), ("`height`", "`height`")):
            mean, overall = frame[column][own == j].mean(), frame[column].mean()
            z = (mean - overall) / frame[column].std(ddof=0)
            for cell, values in zip(
                shown[name], (frame[column][own == j], frame[column]), strict=False
            ):
                low, median, high = values.quantile([0.25, 0.5, 0.75])
                found = re.fullmatch(r"(.*)<small>(.*) to (.*)</small>", cell)
                range_of = [median, low, high] if found else [median]
                texts = found.groups() if found else (cell,)
                np.testing.assert_allclose(numbers([texts])[0], range_of, rtol=6e-3, atol=1e-6)
            assert float(shown[name][2]) == pytest.approx(z, abs=0.006)
            assert (f"{'high' if z > 0 else 'low'} {name} (" in card) == (abs(z) >= 0.5)
        assert f"{(own == j).sum():,} row" in card
    centers = lf.RelocatingKMeans.from_pretrained("points-clusters/model").cluster_centers_
    examples = cells(part(html, "Examples"))[1:]
    first_rows = {row[0]: row for row in reversed(examples)}
    typical = [row[:1] + row[2:] for _, row in sorted(first_rows.items())]
    assert {row[1].split()[0] for row in examples} == {"typical", "edge"}
    scaled = (frame - frame.mean()) / frame.std(ddof=0)
    for j, (cluster, row, *values) in enumerate(typical):
        middle = (centers[j] - frame.mean()) / frame.std(ddof=0)
        nearest = (scaled - middle).pow(2).sum(axis=1).idxmin()
        assert (cluster, int(row)) == (str(j), nearest + 1)
        np.testing.assert_allclose(numbers([values])[0], frame.iloc[nearest], rtol=1e-3)


def test_numbers_are_plain(page):
    html = page("-k", "3")
    assert not re.search(r"\de[-+]\d", re.sub(r"<(style|svg).*?</\1>", "", html, flags=re.DOTALL))
    assert re.search(r'<td class="number">\d,\d\d\d</td>', html)


def test_advice_stands_on_the_page(page):
    html = page("-k", "3", "--scale", "none")
    assert (
        "<strong>Advice:</strong> column `height` carries more than 99.9% of the variance" in html
    )
    assert "<strong>Advice:</strong> column <b>" not in html
    assert "<strong>Advice:</strong> column &lt;b&gt;**width**: values up to 16 deviations" in html


def test_words_and_names_of_rows_are_shown_as_the_file_has_them(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"who": [f"<i>{i}" for i in range(60)], "city": ["Rome", "Köln"] * 30,
                          "age": np.arange(60) % 2 * 40 + RNG.random(60)})  # fmt: skip
    frame.loc[3, "age"] = np.nan
    frame.to_csv("people.csv", index=False)
    options = ["--one-hot", "city", "--id-column", "who", "--missing", "drop"]
    assert command("fit", "people.csv", "-k", "2", "--report", *options)[0] == 0
    html = (tmp_path / "people-clusters" / "report.html").read_text(encoding="utf-8")
    far = cells(part(html, "Farthest rows"))
    assert far[0] == ["cluster", "distance", "row", "who", "city", "age"]
    for _, _, row, who, city, age in far[1:]:
        own = frame.iloc[int(row) - 1]
        assert (who, city) == (f"&lt;i&gt;{int(row) - 1}", own["city"])
        assert float(age) == pytest.approx(own["age"], rel=1e-3)
    assert "city is Köln in 100% of its rows (49% of all)" in html
    assert "1 of 60 rows with missing values dropped" in html


@pytest.mark.parametrize("criterion", ["gap", "calinski-harabasz"])
def test_the_curve_of_the_criterion_is_on_the_page(page, criterion):
    html = page("-k", "2:4", "--select", criterion, "--scale", "standard")
    assert html.count("<svg") == 10
    assert f"<figcaption>{criterion.capitalize()}: k = " in html


def test_the_default_criterion_is_a_score(page):
    html = page("--scale", "standard", "-k", "2:4")
    assert re.search(r"<figcaption>Score: k = \d has the best one and is shown", html)
    assert "auto" not in html.split("The number of clusters")[1].split("<h2>")[0].lower()


def test_the_bic_of_mixtures_is_on_the_page(page):
    html = page("-k", "1:3", "--algorithm", "mixture", "--select", "bic", "--scale", "standard")
    assert "<figcaption>BIC: k = " in html


def part(html, heading):
    """What stands below a heading."""
    return html.split(f"<h2>{heading}</h2>")[1].split("<h2>")[0]


def numbers(rows):
    return np.array([[float(cell.replace(",", "")) for cell in row] for row in rows])


def test_the_rows_left_out_are_listed(page):
    html = page("-k", "3", "--algorithm", "trimmed", "--keep", "0.98", "--n-init", "5")
    out = pd.read_csv("points-clusters/labels.csv").query("outlier == 1")
    listed = {int(row[2]) for row in cells(part(html, "Farthest rows"))[1:]}
    assert listed == set(out["row"])
    assert f"{len(listed)} of the {len(listed)} rows left out" in html


def test_a_range_of_k_adds_two_curves(page):
    html = page("-k", "2:5", "--scale", "standard")
    assert "The number of clusters" in html
    assert html.count("<svg") == 10


@pytest.mark.parametrize("algorithm", ["soft", "spherical", "robust", "medoids"])
def test_the_page_names_the_algorithm(page, algorithm):
    assert f"<strong>{algorithm}</strong>" in page("-k", "3", "--algorithm", algorithm)


def test_with_many_clusters_the_largest_are_drawn(page):
    html = page("-k", "90")
    assert "the 40 largest clusters" in html
    assert len(cells(part(html, "Centers"))) == 91  # all centers, and the head
    assert html.count("<article") == 40


def test_one_cluster_has_no_silhouettes(page):
    html = page("-k", "1")
    assert "1 clusters" not in html
    assert "ilhouette" not in html  # there is none
    assert html.count("<svg") == 3


def test_the_page_tells_that_max_iter_was_reached(page):
    assert "after 1 iteration, the most allowed, in" in page("-k", "3", "--max-iter", "1")


def test_fewer_clusters_than_requested_are_noted_on_the_page(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": [1.0, 1.0, 2.0]}).to_csv("same.csv", index=False)
    assert command("fit", "same.csv", "-k", "3", "--report", "-o", "same")[0] == 0
    with open("same/report.html", encoding="utf-8") as file:
        assert "<p>Note: k 3: Number of distinct clusters (2) found smaller" in file.read()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine to open the page with")
def test_the_page_fits_a_narrow_screen(page, tmp_path):
    probe = (
        "<script>document.title = [document.documentElement.scrollWidth <= innerWidth, "
        "document.querySelectorAll('svg').length]</script></body>"
    )
    file = tmp_path / "report.html"
    file.write_text(page("-k", "12").replace("</body>", probe), encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}",
               "--window-size=500,900", "--dump-dom", file.as_uri()]  # fmt: skip
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "<title>true,7</title>" in found.stdout


def test_columns_that_were_not_clustered_have_profiles(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, y = np.random.default_rng(0), np.arange(300) % 3
    points = np.array([[0, 0], [9, 0], [0, 9]])[y] + rng.normal(size=(300, 2))
    frame = pd.DataFrame(points, columns=["a", "b"])
    frame["plan"] = np.array(["basic", "family", "student"])[y]
    frame["age"] = np.where(np.arange(300) == 7, np.nan, 20 + 20 * y + rng.normal(size=300))
    frame["joined"] = pd.to_datetime("2024-01-01") + pd.to_timedelta(100 * y, unit="D")
    frame["who"] = [f"customer-{i}" for i in range(300)]
    frame.loc[5, "a"] = np.nan
    frame.to_csv("p.csv", index=False)
    options = ["--columns", "a,b", "--missing", "drop", "--report"]
    assert command("fit", "p.csv", "-k", "3", *options)[0] == 0
    html = Path("p-clusters/report.html").read_text(encoding="utf-8")
    labels = pd.read_csv("p-clusters/labels.csv")["cluster"]
    own = int(labels[2])  # a row of the last group
    card = re.findall(r"<article.*?</article>", part(html, "Profiles"), flags=re.DOTALL)[own]
    sentence = re.search(r"Not clustered: .*?</p>", card).group()
    assert "plan is student in 100%" in sentence
    assert "late joined (median 2024-07-19, of all rows 2024-04-10)" in sentence
    assert "high age (median 60, of all rows 40)" in sentence
    assert "Not shown, as they name the rows: who" in html
    frame.drop(columns=["who", "joined", "age", "plan"]).to_csv("q.csv", index=False)
    assert command("fit", "q.csv", "-k", "3", "--missing", "drop", "--report")[0] == 0
    assert "not clustered" not in Path("q-clusters/report.html").read_text(encoding="utf-8")
