"""Draws the pictures of docs/plots.md: `python docs/pictures/plots.py` (needs the extra `plots`).

With `--report` also report.png, a picture of the page, for which it needs Chromium.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib
from sklearn.datasets import load_wine

import lloydformer as lf

FOLDER = Path(__file__).with_name("plots")
KINDS = ("map", "silhouettes", "sizes", "profiles", "centers")
NAMES = ["full-bodied", "dark", "light"]


def fit() -> tuple[lf.KMeans, object]:
    """The wines of the page, and the model."""
    wines = lf.data.open_dataset(load_wine(as_frame=True).data, scale="standard")
    return lf.RelocatingKMeans(3, random_state=0).fit(wines), wines


def draw(folder: Path) -> None:
    matplotlib.use("Agg")
    model, wines = fit()
    for kind in KINDS:
        figure = model.plot(wines, kind, names=NAMES)
        options = {"optimize": True}
        figure.savefig(folder / f"{kind}.png", dpi=100, pil_kwargs=options)
        matplotlib.pyplot.close(figure)


def photograph_report(path: Path) -> None:
    model, wines = fit()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("no chromium on this machine to open the page with")
    with tempfile.TemporaryDirectory() as folder:
        page = lf.report(model, wines, Path(folder) / "page.html", title="Wines", names=NAMES)
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={folder}/profile", "--window-size=1100,1150"]
        command += [f"--screenshot={path}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    draw(FOLDER)
    if "--report" in sys.argv:
        photograph_report(FOLDER / "report.png")
