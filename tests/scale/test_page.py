"""The tables of docs/scale.md and docs/notes/cluster-costs.md are those of the results."""

import json

import pytest
from cost_model import Problem, lloyd_pass
from fitted import compare_fits, load
from scale_charts import CHARTS
from scale_page import _PLACE, PAGES, SIMULATED, fill_page
from scale_tables import TABLES, amount, seconds
from simulate import fan_ins, iterations, ring, troubles

TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
FOUND = json.loads(SIMULATED.read_text(encoding="utf-8"))


def test_every_table_of_the_page_is_the_one_of_the_results():
    assert fill_page(TEXT, load(), FOUND) == TEXT, "run: python benchmarks/scale/scale_page.py"
    assert {match[2] for match in _PLACE.finditer(TEXT)} == {*TABLES, *CHARTS}


def test_another_number_makes_another_page():
    changed = json.loads(json.dumps(FOUND))
    changed["iterations"][0]["map"] = 5999.0
    assert "100 min" not in TEXT
    assert "100 min" in fill_page(TEXT, load(), changed)


def test_the_results_are_those_of_the_model(monkeypatch):
    """On 10 and 100 workers, which take no time."""
    for name in ("SIZES", "FAN_INS"):
        monkeypatch.setitem(iterations.__globals__, name, {"SIZES": (10, 100)}.get(name, (2, 16)))
    few = [row for row in FOUND["iterations"] if row["workers"] <= 100]
    assert iterations() == [pytest.approx(row) for row in few]
    stored = {(r["d"], r["workers"], r["fan_in"]): r["seconds"] for r in FOUND["fan_ins"]}
    for row in fan_ins():
        assert row["seconds"] == pytest.approx(stored[row["d"], row["workers"], row["fan_in"]])
    assert troubles()[0] == pytest.approx(FOUND["troubles"][0])


def test_the_simulator_is_near_the_runs():
    """Of one rank closely; of two as closely as a machine with other work on it allows."""
    for n, d, k, size, took, expected in compare_fits(load()):
        least = {1: 0.65, 2: 0.45}[size]
        assert least < expected / took < 1.35, (n, d, k, size)


def test_an_all_gather_grows_with_the_ranks_and_a_tree_hardly():
    one = lloyd_pass(Problem(10**9, 16, 64))
    assert ring(Problem(10**9, 16, 64), 1000, one) > 5 * ring(Problem(10**9, 16, 64), 100, one)
    trees = {r["workers"]: r["tree"] for r in FOUND["iterations"][:4]}
    assert trees[10_000] < 5 * trees[10]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (3.14e-5, "31 µs"),
        (0.0123, "12 ms"),
        (0.123, "123 ms"),
        (1.0, "1 s"),
        (99.0, "99 s"),
        (110.0, "110 s"),
        (600.0, "10 min"),
        (7300.0, "2 h"),
    ],
)
def test_seconds_in_words(value, words):
    assert seconds(value) == words


def test_bytes_in_words():
    assert [amount(n) for n in (9, 9224, 1.04e6, 6.4e9, 2e13)] == [
        "9 B",
        "9.22 kB",
        "1.04 MB",
        "6.4 GB",
        "20 TB",
    ]
