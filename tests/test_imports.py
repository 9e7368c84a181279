"""Importing does little, rooms import only from rooms before them, and there are no circles."""

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError

from import_graph import (
    PACKAGE,
    ROOMS,
    ROOT,
    import_cycle,
    import_graph,
    imports,
    read_sources,
    room_of,
    wrong_imports,
)
from lloydformer.numerics.clusters import kmeans_objective

SOURCES = read_sources()
HEAVY = {
    *("IPython", "dask", "distributed", "fastapi", "flask", "http.server", "huggingface_hub"),
    *("importlib.metadata", "ipywidgets", "matplotlib", "numpy", "onnx", "plotly", "rich", "scipy"),
    *("sklearn", "torch", "tornado", "typer", "uvicorn", "webbrowser"),
}
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
QUOTED = re.compile(r"`([\w./-]+/[\w./-]*?|\w+\.py(?=::))(?:::(\w+))?`")


@cache
def graph() -> dict[str, set[str]]:
    """The import graph; read by the first test that needs it, not while tests are collected."""
    return import_graph(SOURCES)


def test_import_lloydformer_loads_nothing_heavy_and_prints_nothing():
    code = "import sys, json, lloydformer; print(json.dumps(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(json.loads(found.stdout)) == set()
    assert found.stderr == ""


def test_shapes_in_annotations_are_checked_while_tests_run():
    with pytest.raises(TypeCheckError, match="kmeans_objective"):
        kmeans_objective(torch.zeros(5, 2), torch.zeros(3, 7))


def test_every_room_has_its_place():
    assert {room_of(module) for module in SOURCES} - {""} == set(ROOMS)


def test_rooms_import_only_from_rooms_before_them():
    assert sum(map(len, graph().values())) > 900
    assert wrong_imports(graph()) == []


def test_no_modules_import_each_other_in_a_circle():
    assert import_cycle(graph()) == []


def test_the_algorithms_share_nothing_with_other_rooms_but_noise_and_constants():
    ours = set().union(*(names for name, names in graph().items() if "algorithms" in name))
    assert {name for name in ours if "algorithms" not in name} == {
        "lloydformer.numerics.noise",
        "lloydformer.numerics.search_constants",
    }


def test_no_production_code_imports_the_algorithms_that_it_is_compared_with():
    """Estimators name the algorithm that they are compared with, and use no more of it."""
    users = {
        (room_of(module), name)
        for module, names in graph().items()
        for name in names
        if room_of(name) == "algorithms" and room_of(module) not in ("algorithms", "paper")
    }
    assert users == {("estimators", "lloydformer.algorithms")}


def changed(module: str, line: str) -> dict[str, set[str]]:
    """Return the graph after a line was added to a module."""
    return graph() | {module: graph()[module] | set(imports(line, SOURCES))}


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("lloydformer.circuits.heads", "import lloydformer.app.cli.app"),
        ("lloydformer.plans.means", "def run():\n    from lloydformer.engines import choose"),
        ("lloydformer.plans.means", "if TYPE_CHECKING:\n    import lloydformer.solving.rules"),
        ("lloydformer.numerics.noise", "from lloydformer import Circuit"),
    ],
)
def test_an_import_of_a_later_room_is_noticed(module, line):
    assert len(wrong_imports(changed(module, line))) == 1


def test_a_circle_inside_a_room_is_noticed():
    found = changed("lloydformer.plans.session", "from lloydformer.plans.means import MeansPlan")
    assert {"lloydformer.plans.session", "lloydformer.plans.means"} <= set(import_cycle(found))


def test_relative_imports_are_refused():
    with pytest.raises(ValueError, match="line 1: relative import"):
        imports("from . import rules", SOURCES)


def defined_names(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = getattr(node, "targets", [getattr(node, "target", node)])
        names |= {getattr(t, "id", getattr(t, "name", "")) for t in targets}
    return names


@pytest.mark.parametrize(("path", "name"), sorted(set(QUOTED.findall(PAGE))))
def test_every_path_in_the_architecture_page_exists(path, name):
    outside = path.startswith(("tests/", "docs/", "tools/", "benchmarks/", "examples/", "src/"))
    place = (ROOT if outside else PACKAGE) / path
    assert place.is_dir() if path.endswith("/") else place.is_file()
    if name:
        assert name in defined_names(place)
