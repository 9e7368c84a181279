"""The page of a fit is complete and self-contained."""

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--virtual-time-budget=5000")  # fmt: skip


@pytest.fixture
def page(command, tmp_path, monkeypatch):
    """A function: the page of a fit with these options, on 400 rows with one outlier."""

    def made(*options):
        monkeypatch.chdir(tmp_path)
        rng = np.random.default_rng(0)
        points = np.array([[0, 0], [9, 0], [0, 9]])[np.arange(400) % 3] + rng.normal(size=(400, 2))
        points[7] = [100, 100]
        frame = pd.DataFrame(points * [1, 1000], columns=["<b>width", "height"])
        frame.to_csv("points.csv", index=False)
        assert command("fit", "points.csv", "--report", *options)[0] == 0
        return (tmp_path / "points-clusters" / "report.html").read_text(encoding="utf-8")

    return made


def cells(html):
    """The rows of all tables, as text."""
    rows = re.findall(r"<tr>(.*?)</tr>", html, flags=re.DOTALL)
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in rows]


def test_the_page_has_all_parts_and_loads_nothing(page):
    html = page("-k", "3", "--scale", "standard")
    for heading in ("The clusters", "Centers", "Farthest rows", "Settings"):
        assert f"<h2>{heading}</h2>" in html
    assert html.count("<svg") == 4
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", html)
    assert "<b>width" not in html
    centers = pd.read_csv("points-clusters/centers.csv").to_numpy()
    wanted = [[str(int(j)), f"{int(n):,}", *(f"{v:.4g}" for v in c)] for j, n, *c in centers]
    assert [row for row in cells(html) if len(row) == 4][1:] == wanted
    far = next(row for row in cells(html) if len(row) == 3 and row[0] != "row")
    farthest = pd.read_csv("points-clusters/labels.csv").sort_values("distance").iloc[-1]
    assert far == [f"{farthest['row']:.0f}", f"{farthest['cluster']:.0f}",
                   f"{farthest['distance']:.4g}"]  # fmt: skip


def test_the_rows_left_out_are_listed(page):
    html = page("-k", "3", "--algorithm", "trimmed", "--keep", "0.98", "--n-init", "5")
    out = pd.read_csv("points-clusters/labels.csv").query("outlier == 1")
    listed = {int(row[0]) for row in cells(html) if len(row) == 3 and row[0] != "row"}
    assert listed == set(out["row"])
    assert f"{len(listed)} of the {len(listed)} rows left out" in html


def test_a_range_of_k_adds_two_curves(page):
    html = page("-k", "2:5", "--scale", "standard")
    assert "The number of clusters" in html
    assert html.count("<svg") == 6


@pytest.mark.parametrize("algorithm", ["soft", "spherical", "robust", "medoids"])
def test_the_page_names_the_algorithm(page, algorithm):
    assert f"<strong>{algorithm}</strong>" in page("-k", "3", "--algorithm", algorithm)


def test_with_many_clusters_the_largest_are_drawn(page):
    html = page("-k", "90")
    assert "the 40 largest clusters" in html
    assert len([row for row in cells(html) if len(row) == 4]) == 91  # all centers, and the head


def test_one_cluster_has_no_silhouettes(page):
    html = page("-k", "1")
    assert "1 clusters" not in html
    assert "ilhouette" not in html  # there is none
    assert html.count("<svg") == 3


def test_the_page_tells_that_max_iter_was_reached(page):
    assert "after 1 iteration, the most allowed, in" in page("-k", "3", "--max-iter", "1")


def test_fewer_clusters_than_requested_are_noted_on_the_page(page, command):
    page("-k", "3")
    pd.DataFrame({"a": [1.0, 1.0, 2.0]}).to_csv("same.csv", index=False)
    assert command("fit", "same.csv", "-k", "3", "--report", "-o", "same")[0] == 0
    with open("same/report.html", encoding="utf-8") as file:
        assert "<p>Note: k 3: Number of distinct clusters (2) found smaller" in file.read()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine to open the page with")
def test_the_page_fits_a_narrow_screen(page, tmp_path):
    page("-k", "12")
    file = tmp_path / "points-clusters" / "report.html"
    probe = (
        "<script>document.title = [document.documentElement.scrollWidth <= innerWidth, "
        "document.querySelectorAll('svg').length]</script></body>"
    )
    file.write_text(file.read_text(encoding="utf-8").replace("</body>", probe), encoding="utf-8")
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={tmp_path / 'profile'}",
               "--window-size=500,900", "--dump-dom", file.as_uri()]  # fmt: skip
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "<title>true,4</title>" in found.stdout
