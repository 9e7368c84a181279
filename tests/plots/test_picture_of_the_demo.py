"""The image in the README can be drawn again."""

import runpy
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / "pictures" / "demo.py"


def test_it_is_drawn_and_small(tmp_path: Path) -> None:
    picture = tmp_path / "demo.png"
    runpy.run_path(str(SCRIPT))["draw"](picture)
    assert 20_000 < picture.stat().st_size < 250_000
    assert SCRIPT.with_suffix(".png").stat().st_size < 250_000
