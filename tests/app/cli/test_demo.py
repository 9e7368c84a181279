"""The demo, with few points and layers."""

import json
import re
import sys
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner, Result

from lloydformer.app.cli import app, demo
from lloydformer.app.jobs import demo as demo_run
from lloydformer.app.jobs.demo import (
    CircuitRun,
    load_images,
    make_cases,
    make_plane,
    run_circuits,
    to_directions,
)
from lloydformer.app.jobs.demo_page import demo_page, outside_rows
from lloydformer.circuits import recipes

N_LAYERS = 3


@pytest.fixture(scope="module")
def runs() -> list[CircuitRun]:
    small = [make_plane(0, n_points=40), load_images(0, n_points=60)]
    return run_circuits([case for p in small for case in make_cases(p, seed=0)], N_LAYERS)


@pytest.fixture(scope="module")
def page(runs: list[CircuitRun]) -> str:
    return demo_page(runs, seed=0)


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> partial[Result]:
    """The command on small data, with few layers."""
    monkeypatch.setattr(demo, "N_LAYERS", N_LAYERS)
    monkeypatch.setattr(demo_run, "make_plane", partial(make_plane, n_points=40))
    monkeypatch.setattr(demo_run, "load_images", partial(load_images, n_points=60))
    return partial(CliRunner().invoke, app.application(["demo"]))


def test_every_row_of_the_table_is_equal_to_its_algorithm(runs: list[CircuitRun]) -> None:
    names = [recipe.name for recipe in recipes.table()]
    assert [run.case.recipe.name for run in runs] == 2 * names
    assert all(run.equal for run in runs)


def test_the_same_seed_gives_the_same_data() -> None:
    np.testing.assert_array_equal(make_plane(3).points, make_plane(3).points)
    assert not np.array_equal(make_plane(3).points, make_plane(4).points)
    np.testing.assert_array_equal(load_images(3).points, load_images(4).points)
    assert not np.array_equal(load_images(3).centers, load_images(4).centers)


def test_directions_are_unit_vectors() -> None:
    for problem in (make_plane(0), load_images(0)):
        lengths = np.linalg.norm(to_directions(problem).points, axis=1)
        np.testing.assert_allclose(lengths, 1.0)


def test_the_page_shows_every_recipe(page: str) -> None:
    found = re.findall(r"<code>lf\.recipes\.(\w+)\(\)</code>", page)
    assert found == [recipe.name for recipe in recipes.table()]
    assert page.count("<canvas data-head=") == 4 * len(found)
    assert page.count("Equal to the plain algorithm") == len(found)


def test_the_page_marks_what_a_recipe_replaces(page: str) -> None:
    rows = re.findall(r'<table class="row">(.*?)</table>', page)
    assert [len(re.findall("<mark>", row)) for row in rows] == [0, 3, 3, 2, 1, 1, 1]


def test_the_page_holds_every_layer(page: str) -> None:
    data = [json.loads(text) for text in re.findall(r'application/json">(.*?)</script>', page)]
    assert len(data) == len(recipes.table())
    for run in data:
        assert len(run["centers"]) == len(run["objective"]) == N_LAYERS + 1
        assert all(len(head["layers"]) == N_LAYERS for head in run["attention"].values())


def test_all_on_the_page_means_every_recipe(runs: list[CircuitRun]) -> None:
    plane = runs[: len(recipes.table())]
    cells = {row[0].strip("`"): row[-1] for row in outside_rows(plane)}
    used = {run.case.recipe.name: dict(run.trace.outside[0].items()) for run in plane}
    for name, words in cells.items():
        users = {recipe: own[name] for recipe, own in used.items() if name in own}
        everywhere = len(users) == len(plane) and len(set(users.values())) == 1
        assert words.startswith("all: ") == everywhere
        assert (words == "not used") == (not users)
        if not everywhere:  # each user is named once, each value is written once
            assert sorted(re.findall(r"`(\w+)`", words)) == sorted(users)
            values = [group.rpartition("` ")[2] for group in words.split("; ") if users]
            assert values == list(dict.fromkeys(users.values()))
    assert "`soft`" not in cells["ties"]
    assert cells["ties"].endswith("` first")


def test_the_page_is_small(page: str) -> None:
    assert len(page) < 1_000_000


def test_the_lines_of_code_on_the_page_run(page: str) -> None:
    [snippet] = re.findall(r"<pre><code>(.*?)</code></pre>", page, flags=re.DOTALL)
    names: dict[str, Any] = {}
    exec(unescape(snippet), names)
    trace = names["trace"]
    assert trace.centers.shape == (11, 5, 2)
    assert trace.labels.shape == (10, 200)
    assert trace["layers.3.encoder_cross.attention"].shape == (200, 5)


def test_it_prints_a_table_and_writes_the_page(invoke: partial[Result], tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    output = tmp_path / "new" / "page.html"
    result = invoke(["demo", "--output", str(output)])
    assert result.exit_code == 0
    assert len(re.findall(r"\bequal\b", result.stdout)) == 2 * len(recipes.table())
    assert f"page: {output}\n" in result.stderr
    assert output.read_text().startswith("<!DOCTYPE html>")
    assert torch.get_num_threads() == threads


def test_json_is_one_object(invoke: partial[Result], tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    result = invoke(["demo", "--json", "--output", str(output), "--seed", "1"])
    found = json.loads(result.stdout)
    assert (found["seed"], found["page"]) == (1, str(output))
    assert list(found["rows"]) == [recipe.name for recipe in recipes.table()]
    assert found["rows"]["lloyd"]["digits"]["labels_differing"] == 0


def test_an_existing_page_is_not_replaced(invoke: partial[Result], tmp_path: Path) -> None:
    output = tmp_path / "page.html"
    output.write_text("mine")
    result = invoke(["demo", "--output", str(output)])
    assert "--force" in str(result.exception)
    assert output.read_text() == "mine"
    # -o is the short option, as in the other commands
    assert invoke(["demo", "-o", str(output), "--force"]).exit_code == 0
    assert output.read_text() != "mine"


def test_without_output_the_page_is_in_the_current_folder(
    invoke: partial[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "page: lloydformer-demo.html\n" in invoke(["demo"]).stderr
    again = invoke(["demo"])
    assert "lloydformer-demo.html exists; pass --force to replace it" in str(again.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["lloydformer-demo.html"]


def test_without_matplotlib_it_prints_how_to_get_the_page(
    invoke: partial[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    output = tmp_path / "page.html"
    result = invoke(["demo", "--output", str(output)])
    assert result.exit_code == 0
    assert 'pip install "lloydformer[plots]"' in result.stderr
    assert not output.exists()


def test_status_is_1_if_a_circuit_differs(
    invoke: partial[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lloydformer.app.jobs.demo.TOLERANCE", -1.0)
    result = invoke(["demo", "--output", str(tmp_path / "page.html")])
    assert result.exit_code == 1
    assert "differs" in result.stdout


def test_ctrl_c_prints_how_many_runs_are_done(
    invoke: partial[Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = iter([demo_run.layer_by_layer])

    def compare(trial: Any) -> Any:
        if (once := next(compared, None)) is None:
            raise KeyboardInterrupt
        return once(trial)

    monkeypatch.setattr(demo_run, "layer_by_layer", compare)
    result = invoke(["demo", "--output", str(tmp_path / "page.html")])
    assert result.exit_code == 130
    assert "stopped: 1 of 14 runs were done; no page written" in result.stderr
    assert list(tmp_path.iterdir()) == []
