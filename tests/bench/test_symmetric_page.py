"""The tables of docs/symmetric.md are those of the result, and its words are true of them."""

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "symmetric_page.py"))
PAGE = (ROOT / "docs" / "symmetric.md").read_text(encoding="utf-8")
RESULT = json.loads((ROOT / "benchmarks/results/read_symmetric.json").read_text(encoding="utf-8"))
ROWS = RESULT["rows"]


def test_every_table_of_the_page_is_the_one_of_the_result():
    assert SCRIPT["filled"](PAGE, RESULT) == PAGE, "run: python benchmarks/symmetric_page.py"
    assert sorted(SCRIPT["places"](PAGE)) == ["centers", "experiments", "numbers"]


def test_another_number_makes_another_page():
    changed = json.loads(json.dumps(RESULT))
    changed["rows"]["Lloyd"]["paper"]["log_objective"] = 9.8765
    assert "| Lloyd | 9.877 |" in SCRIPT["filled"](PAGE, changed)


def test_the_picture_is_drawn_and_small(tmp_path):
    script = ROOT / "docs" / "pictures" / "symmetric-steps.py"
    runpy.run_path(str(script))["draw"](tmp_path / "steps.png")
    assert 20_000 < (tmp_path / "steps.png").stat().st_size < 250_000
    assert script.with_suffix(".png").stat().st_size < 250_000
