"""The tables of docs/speed.md are those of the results."""

import json
from pathlib import Path
from statistics import geometric_mean

from lloydformer.jobs.bench.page import filled, places
from lloydformer.jobs.bench.questions import QUESTIONS
from lloydformer.jobs.bench.result import load
from lloydformer.jobs.hardware import SLOWER

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
RESULTS = ROOT / "benchmarks" / "results"


def test_every_table_of_the_page_is_the_one_of_its_result():
    assert filled(PAGE, RESULTS) == PAGE, "run: python benchmarks/tables.py"


def test_every_question_has_its_place_on_the_page():
    assert places(PAGE) == [f"bench_{name}" for name in QUESTIONS]


def test_another_number_makes_another_page(tmp_path):
    times = {"median": 0.25, "times": 1.0, "objective": 1.0}
    result = {"question": "small", "provenance": {"versions": {}},
              "rows": {"some points": {"contenders": {"ours": times}, "ahead": None}}}  # fmt: skip
    (tmp_path / "bench_small.json").write_text(json.dumps(result))
    page = filled(PAGE, tmp_path)
    assert "| some points | 250 ms |  |\n" in page
    assert filled(page, tmp_path) == page


def test_doctor_says_what_was_measured_of_the_chunked_engine():
    rows = load(RESULTS / "bench_iteration.json")["rows"].values()
    found = [row["contenders"]["lloydformer, chunked"]["times"] for row in rows]
    assert f"{SLOWER:.0f}" == f"{geometric_mean(found):.0f}"
