"""The tables of docs/symmetric.md are those of the result, and its words are true of them."""

import json
import runpy
from pathlib import Path

import lloydformer as lf

ROOT = Path(__file__).parents[4]
SCRIPT = runpy.run_path(str(ROOT / "benchmarks" / "symmetric_page.py"))
PAGE = (ROOT / "docs" / "symmetric.md").read_text(encoding="utf-8")
RESULT = json.loads((ROOT / "benchmarks/results/read_symmetric.json").read_text(encoding="utf-8"))
ROWS = RESULT["rows"]


def test_every_table_of_the_page_is_the_one_of_the_result():
    assert SCRIPT["fill_tables"](PAGE, RESULT) == PAGE, "run: python benchmarks/symmetric_page.py"
    assert sorted(SCRIPT["places"](PAGE)) == ["centers", "experiments", "looks", "numbers"]


def test_another_number_makes_another_page():
    changed = json.loads(json.dumps(RESULT))
    changed["rows"]["Lloyd"]["paper"]["log_objective"] = 9.8765
    assert "| Lloyd | 9.877 |" in SCRIPT["fill_tables"](PAGE, changed)


def excess(name, which="paper", kind="excess"):
    return ROWS[name][which][kind]


def lost(name, which="paper"):
    """Of what was won over Lloyd's algorithm, the part that a change loses."""
    learned = excess("as learned", which)
    return (excess(name, which) - learned) / (excess("Lloyd", which) - learned)


def steps():
    return [(which, step) for which, found in RESULT["steps"].items() for step in found]


def test_several_temperatures_are_the_heart_of_it():
    for name in (
        "all heads as sharp as the sharpest",
        "strides of the two soft heads given to the sharpest",
    ):
        assert min(lost(name, which) for which in ("paper", "many")) > 0.5
    for which in ("paper", "many", "real"):
        assert lost("all heads as soft as the softest", which) > 1
    assert all(step["sharpness"] == sorted(step["sharpness"]) for _, step in steps())


def test_centers_divide_the_labour():
    for found in RESULT["steps"].values():
        assert found[0]["poor"]["soft"] > found[0]["rich"]["soft"]
        assert found[0]["poor"]["sharp"] < found[0]["rich"]["sharp"]
    assert excess("as learned", kind="solved") > 95
    assert excess("all centers alike in their strides", kind="solved") < 80
    assert lost("all centers alike") > 0.5


def test_the_softest_head_leads_a_center_away_from_its_own_points():
    looks = RESULT["looks"]
    assert looks[0]["points"] > 512 / 2
    assert looks[0]["own_poor"] < 0.2
    assert looks[-1]["own_poor"] > 0.6
    assert all(head["own_poor"] < head["own_rich"] for head in looks)


def test_it_overshoots_and_that_helps_where_clusters_are_many_or_overlap():
    assert all(sum(step["strides"]) > 1 for _, step in steps())
    assert abs(lost("strides that sum to 1")) < 0.01
    assert all(lost("strides that sum to 1", which) > 0.005 for which in ("many", "real"))


def test_it_looks_for_badly_served_points():
    assert all(step["served"] > 0 for _, step in steps())
    assert all(lost("blind to badly served points", which) > 0.05 for which in ("many", "real"))


def test_repulsion_is_learned_and_hardly_needed():
    assert all(step["aparts"][1] > 0.5 and step["apart_sharpness"][1] > 1 for _, step in steps())
    assert abs(lost("no repulsion")) < 0.01
    assert all(lost("no repulsion", which) < 0.05 for which in ("many", "real"))


def test_it_knows_where_it_stands():
    assert excess("no margin", kind="solved") < 5
    for name in ("time stands still at the start", "time stands still at the end"):
        assert all(lost(name, which) > 0.04 for which in ("paper", "many", "real"))
    for name in ("no clusters", "no cost", "no tail"):
        assert all(lost(name, which) < 0.06 for which in ("paper", "many", "real"))
    assert lost("no invariant") > 0.5
    assert lost("no invariant") < 1


def test_the_picture_is_drawn_and_small(tmp_path):
    script = ROOT / "docs" / "pictures" / "symmetric-steps.py"
    runpy.run_path(str(script))["draw"](tmp_path / "steps.png")
    assert 20_000 < (tmp_path / "steps.png").stat().st_size < 250_000
    assert script.with_suffix(".png").stat().st_size < 250_000


def test_the_picture_shows_what_its_caption_says():
    points, centers = runpy.run_path(str(ROOT / "docs/pictures/symmetric-steps.py"))["problem"]()
    lloyd = lf.Circuit(lf.recipes.lloyd(), 2, 8)(points, centers, 10)
    learned = lf.learning.load_pretrained().circuit(2, 8)(points, centers, 10)
    most = [trace.labels[-1].view(8, 40).mode(dim=1).values for trace in (lloyd, learned)]
    assert [len(of_clusters.unique()) for of_clusters in most] == [6, 8]
