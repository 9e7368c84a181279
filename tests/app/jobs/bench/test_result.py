"""Numbers and tables of results, and the tables of docs/speed.md."""

import json
import re
import runpy
from pathlib import Path
from statistics import geometric_mean

import pytest

from lloydformer.app.jobs.bench.questions import QUESTIONS, mean_ahead
from lloydformer.app.jobs.bench.result import (
    format_seconds,
    load_result,
    relative_excess,
)
from lloydformer.app.jobs.doctor import SLOWER

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
MIXTURES = (ROOT / "docs" / "mixtures.md").read_text(encoding="utf-8")
RESULTS = ROOT / "benchmarks" / "results"
with pytest.MonkeyPatch.context() as patch:  # the script imports one that is next to it
    patch.syspath_prepend(str(ROOT / "benchmarks"))
    SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "tables.py"))
fill_tables, markdown_table = SCRIPT["fill_tables"], SCRIPT["markdown_table"]


@pytest.mark.parametrize("path", SCRIPT["PAGES"], ids=lambda path: path.stem)
def test_every_table_of_a_page_is_the_one_of_its_result(path):
    page = path.read_text(encoding="utf-8")
    assert "<!-- table of " in page
    assert fill_tables(page, RESULTS) == page, "run: python benchmarks/tables.py"


@pytest.mark.parametrize(
    ("script", "page", "record"),
    [
        ("medoids_page", "medoids", "medoids"),
        ("recombining_page", "recombining", "recombining"),
        ("relocating_page", "relocating", "relocating"),
        ("gpu_algorithms", "gpu", "gpu_algorithms"),
    ],
)
def test_every_page_with_a_script_of_its_own_is_that_of_its_record(
    script, page, record, monkeypatch, tmp_path
):
    """Pictures are not compared: they are drawn in a folder of their own."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    fill = runpy.run_path(str(ROOT / "benchmarks" / f"{script}.py"))["fill_page"]
    monkeypatch.setitem(fill.__globals__, "PICTURES", tmp_path)
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    result = json.loads((RESULTS / f"{record}.json").read_text(encoding="utf-8"))
    assert fill(text, result) == text, f"run: python benchmarks/{script}.py"


def test_every_question_has_its_place_on_the_page():
    assert re.findall(r"<!-- table of (bench_\w+) -->", PAGE) == [
        f"bench_{name}" for name in QUESTIONS
    ]


def test_another_number_makes_another_page(tmp_path):
    times = {"median": 0.25, "times": 1.0, "objective": 1.0}
    result = {
        "question": "small",
        "provenance": {"versions": {}},
        "rows": {"some points": {"contenders": {"ours": times}, "ahead": None}},
    }
    (tmp_path / "bench_small.json").write_text(json.dumps(result))
    page = fill_tables(PAGE, tmp_path)
    assert "| some points | 250 ms |  |\n" in page
    assert fill_tables(page, tmp_path) == page


def test_a_record_of_mixtures_makes_their_table(tmp_path):
    times = {"iteration": 2.0, "predict_proba": 1.5, "score_samples": 1.0}
    case = {"n": 100_000, "d": 16, "k": 10, "kind": "diag", "lloydformer": times}
    ratios = dict.fromkeys(times, 4.0)
    rows = [{**case, "dtype": dtype, "ratios": ratios} for dtype in ("float32", "float64")]
    (tmp_path / "mixtures_time.json").write_text(json.dumps({"rows": rows}))
    page = fill_tables(MIXTURES, tmp_path)
    line = "| 100,000 x 16, k 10 | diagonal | float32 | 2 ms (4.0) | 1.5 ms (4.0) | 1 ms (4.0) |\n"
    assert line in page
    assert "| geometric mean |  | float64 | (4.0) | (4.0) | (4.0) |\n" in page


def test_doctor_says_what_was_measured_of_the_chunked_engine():
    rows = load_result(RESULTS / "bench_iteration.json")["rows"].values()
    found = [row["contenders"]["lloydformer, chunked"]["times"] for row in rows]
    assert f"{SLOWER:.0f}" == f"{geometric_mean(found):.0f}"


def test_times_means_and_tables_are_formatted():
    assert [format_seconds(s) for s in (2.5, 0.0123, 4.567e-5, 3e-9)] == [
        "2.5 s",
        "12.3 ms",
        "45.7 µs",
        "3 ns",
    ]
    assert mean_ahead(
        {"a": {"ahead": 2.0}, "b": {"ahead": 8.0}, "c": {"ahead": None}}
    ) == pytest.approx(4)
    assert mean_ahead({"c": {"ahead": None}}) is None
    row = {
        "contenders": {
            "a": {"objective": 2.0, "median": 1e-3},
            "b": {"objective": 2.2, "median": 2e-3},
        },
        "ahead": 2.0,
    }
    assert relative_excess(row, "b") == pytest.approx(0.1)
    result = {"rows": {"noise": row}, "provenance": {"versions": {"b": "1.2"}}}
    assert markdown_table(result).splitlines() == [
        "| data | a | b 1.2 | ahead |",
        "| --- | --- | --- | --- |",
        "| noise | 1 ms | 2 ms | 2.00 |",
    ]


def test_a_contender_that_a_row_lacks_has_an_empty_cell():
    one, two = {"a": {"median": 1.0}}, {"b": {"median": 1.0}}
    rows = {"one": {"contenders": one, "ahead": None}, "two": {"contenders": two, "ahead": None}}
    lines = markdown_table({"rows": rows, "provenance": {"versions": {}}}).splitlines()
    assert lines[2:] == ["| one | 1 s |  |  |", "| two |  | 1 s |  |"]


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_comparison_of_the_readme_is_that_of_the_results():
    assert "<!-- table of comparison -->" in README
    assert fill_tables(README, RESULTS) == README, "run: python benchmarks/tables.py"


def test_the_comparison_agrees_with_the_pages():
    """Its objectives are those of docs/relocating.md, which another script writes."""
    page = (ROOT / "docs" / "relocating.md").read_text(encoding="utf-8")
    for name in ("`RelocatingKMeans`", "k-means++ 10"):
        row = re.search(rf"^\| {re.escape(name)} \| [^|]* \| ([\d.]+ %), (\d+ ms) \|$", page, re.M)
        assert f"{row[1]} in {row[2]}" in README
    rows = load_result(RESULTS / "bench_iteration.json")["rows"].values()
    times = [row["contenders"]["scikit-learn"]["times"] for row in rows]
    assert f"{min(times):.1f} to {max(times):.1f}" in README
