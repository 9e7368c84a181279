"""The still picture of the README is the one that its script draws."""

import runpy
from pathlib import Path

import matplotlib.image as mpimg
import numpy as np

SCRIPT = Path(__file__).parents[2] / "docs" / "pictures" / "demo.py"
SHOWN = SCRIPT.with_suffix(".png")


def test_the_script_draws_the_picture_that_is_shown(tmp_path: Path) -> None:
    """One pixel in ten thousand may differ, where a line is rounded to the next pixel."""
    runpy.run_path(str(SCRIPT))["draw"](tmp_path / "demo.png")
    drawn, shown = mpimg.imread(tmp_path / "demo.png"), mpimg.imread(SHOWN)
    assert drawn.shape == shown.shape
    other = np.abs(drawn - shown).max(axis=2) > 0.1
    assert other.mean() < 1e-4, f"run: python {SCRIPT}"
    assert SHOWN.stat().st_size < 250_000
